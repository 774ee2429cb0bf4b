// The same on every database, so that a plugin behaves alike on each.

/** Milliseconds that a statement or a transaction waits for its turn, or for a connection. */
export const WAIT_MS = 5000
/** Milliseconds without a statement after which a transaction is rolled back, because others wait for its locks. */
export const TRANSACTION_IDLE_MS = 10_000
/** Most statements and transactions of one thread that may wait at once. Further ones are refused with `unavailable`. */
export const MAX_WAITING = 65_536
/** Milliseconds for which closing waits for running statements. */
export const STOP_WAIT_MS = 2000
