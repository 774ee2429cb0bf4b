// The same on every database, so that a plugin behaves alike on each.

/** Milliseconds that a statement or a transaction waits for its turn, or for a connection. */
export const WAIT_MS = 5000
/** Milliseconds without a statement after which a transaction is rolled back: others wait for what it holds. */
export const TRANSACTION_IDLE_MS = 10_000
/** Most statements and transactions of one thread that wait at once; further ones are refused with `unavailable`. */
export const MAX_WAITING = 65_536
/** Milliseconds that closing leaves to what is under way. */
export const STOP_WAIT_MS = 2000
