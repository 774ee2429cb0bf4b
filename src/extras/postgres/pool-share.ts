import type { ThreadRef } from '../../contracts/tool.ts'

/** For a transaction, and a plain statement that is sent meanwhile. */
const PRIMARY_MAX = 2

/** The connection on which the primary hears of notifications. */
const LISTENING = 1

/** What is left of RDB_MAX_POOL for the pools of the threads. */
export const pooled = (maxPool: number): number => Math.max(1, maxPool - LISTENING)

export interface PoolShare {
  /** Most connections of this thread. */
  max: number
  /** Connections that it keeps open. */
  min: number
}

/**
 * One thread's share of the process's RDB_MAX_POOL, without the connection that listens, and RDB_MIN_POOL.
 *
 * The primary gets at most 2, for migrations, health checks and its own plugins, and never more than in an equal share. The lanes share
 * the rest; when it cannot be divided evenly, the first lanes have one more. Every thread gets at least one, so more threads than
 * RDB_MAX_POOL open more connections than that: see `isShort`. Only the lanes keep a minimum open.
 * While a lane and its successor run side by side, the process still keeps to RDB_MAX_POOL, except for the first connection of each
 * thread: see connection-budget.ts.
 *
 * Of 10 pooled connections: 1 lane: primary 2, lane 8. 3 lanes: primary 2, lanes 3, 3, 2. 7 lanes: primary 1, lanes 2, 2, 1, 1, 1, 1, 1.
 */
export function poolShare(total: { max: number; min: number }, lanes: number, thread: ThreadRef): PoolShare {
  const primary = Math.max(1, Math.min(PRIMARY_MAX, Math.floor(total.max / (lanes + 1))))
  if (thread.kind === 'primary') return { max: primary, min: 0 }
  const max = Math.max(1, part(total.max - primary, lanes, thread.index))
  return { max, min: Math.min(max, part(total.min, lanes, thread.index)) }
}

/** There are more threads than connections. */
export function isShort(max: number, lanes: number): boolean {
  return lanes + 1 > max
}

/** The lanes on demand, whose indexes follow the others and which exist only at times, get the share of the last lane. */
function part(whole: number, lanes: number, index: number): number {
  const lane = Math.min(index, lanes - 1)
  return Math.floor(whole / lanes) + (lane < whole % lanes ? 1 : 0)
}
