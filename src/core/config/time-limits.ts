// How long a start may take, and an end takes at most: every supervisor's limit is one of these, and the tests of `deploy/` compare.
import type { Settings } from './schema.ts'

/** Beyond SHUTDOWN_TIMEOUT_MS, for closing everything, milliseconds. */
export const SHUTDOWN_GRACE_MS = 2000
/** Beyond that, for the end of all threads, milliseconds. */
const END_GRACE_MS = 2000
/** What a supervisor adds, milliseconds: on a busy machine a process is late with its own end, too. */
const SUPERVISOR_MARGIN_MS = 6000
/** How long a supervisor waits for a start, milliseconds: one that migrates a large table, or starves, takes minutes, and whoever gives it up takes the next process away as well. */
export const START_MAX_MS = 3_600_000

type Stops = Pick<Settings, 'shutdownDelayMs' | 'shutdownTimeoutMs'>

/** The time within which a process that was told to stop has ended by itself. */
export const stopMaxMs = ({ shutdownDelayMs, shutdownTimeoutMs }: Stops): number =>
  shutdownDelayMs + shutdownTimeoutMs + SHUTDOWN_GRACE_MS + END_GRACE_MS

/** The time after which a supervisor may kill it. */
export const killAfterMs = (settings: Stops): number => stopMaxMs(settings) + SUPERVISOR_MARGIN_MS
