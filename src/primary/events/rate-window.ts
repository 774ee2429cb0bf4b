// How many deliveries of a limit may begin at a time.

/** At most `max` in any `perMs` milliseconds. */
export interface RateLimit {
  /** Subscribers with the same name share it. */
  readonly name: string
  readonly max: number
  readonly perMs: number
}

/** A limit of a subscriber. */
export interface ShareLimit extends RateLimit {
  /** Number of the value in the share that each has a limit of its own; null: all share one. */
  readonly by: number | null
}

/** At most `max` at a time. */
export interface PermitLimit {
  readonly max: number
  /** Number of the value in the share that each has `max` of its own; null: all together. */
  readonly by: number | null
}

/** Parts of `perMs`: what was begun in one of them counts until all of it is `perMs` ago, so a limit is used up to a twentieth less. */
const PARTS = 20
/**
 * So much later than its limit lets it a handler may begin, milliseconds, and what has begun counts so much longer. A thread that is later gives the delivery
 * back, and the next may be twice as late, up to the longest.
 */
export const LATE_MS = 50
export const LATE_MAX_MS = 3200
/** Of shorter limits handlers may begin at any time, and each counts at most one part longer. */
const KEPT_FROM_MS = 1000

/** What was begun lately: until when it counts, and how many. Times are milliseconds since any time; the earliest comes first. */
export type RateState = [untilMs: number, begun: number][]

const partOf = ({ perMs }: RateLimit): number => Math.max(1, Math.ceil(perMs / PARTS))

export const isKept = ({ perMs }: RateLimit): boolean => perMs >= KEPT_FROM_MS

/** What is let begin now counts until then. @param lateMs how much later it may begin */
function untilOf(limit: RateLimit, nowMs: number, lateMs: number): number {
  const partMs = partOf(limit)
  return (Math.floor(nowMs / partMs) + 1) * partMs + limit.perMs + (isKept(limit) ? lateMs : Math.min(partMs, LATE_MS))
}

/** @returns how many may begin now, and if none may, how long to wait, milliseconds */
export function leftIn(state: RateState, limit: RateLimit, nowMs: number): { left: number; waitMs: number } {
  const untilMs = untilOf(limit, nowMs, LATE_MAX_MS)
  // The clock was ahead, or the limit was longer: nothing counts longer than what begins now.
  for (const entry of state) entry[0] = Math.min(entry[0], untilMs)
  while (state.length > 0 && state[0]![0] <= nowMs) state.shift()
  const left = Math.max(0, limit.max - state.reduce((sum, [, begun]) => sum + begun, 0))
  return { left, waitMs: left > 0 ? 0 : Math.max(1, Math.ceil(state[0]![0] - nowMs)) }
}

/** Puts down that some begin now. */
export function putDown(state: RateState, limit: RateLimit, nowMs: number, begun: number, lateMs: number): void {
  const untilMs = untilOf(limit, nowMs, lateMs)
  let at = state.length
  while (at > 0 && state[at - 1]![0] > untilMs) at--
  const before = state[at - 1]
  if (before !== undefined && before[0] === untilMs) before[1] += begun
  else state.splice(at, 0, [untilMs, begun])
}

/** One that was put down has not begun. The earliest goes: what is kept counts at least as long as it has to. */
export function takeBack(state: RateState, nowMs: number): void {
  while (state.length > 0 && state[0]![0] <= nowMs) state.shift()
  const earliest = state[0]
  if (earliest !== undefined && --earliest[1] === 0) state.shift()
}

/** Above so long a time a limit gives back what has not begun. A shorter one soon has room again, milliseconds. */
export const GIVES_BACK_FROM_MS = 2 * LATE_MAX_MS

/** What is left of a limit, counted once in each part of `perMs`: what ends to count within it is seen when nothing is left. */
export class RateAllowance {
  readonly state: RateState = []
  #untilMs = 0
  #left = 0

  /** Counts. */
  count(limit: RateLimit, nowMs: number): void {
    this.#left = leftIn(this.state, limit, nowMs).left
    this.#untilMs = untilOf(limit, nowMs, 0)
  }

  /** True if one more is known to be left. */
  isLeft(limit: RateLimit, nowMs: number): boolean {
    return this.#left > 0 && this.#untilMs === untilOf(limit, nowMs, 0)
  }

  /** One has not begun. */
  takeBack(nowMs: number): void {
    takeBack(this.state, nowMs)
    this.#left = 0
  }

  /** One begins. */
  putDown(limit: RateLimit, nowMs: number, lateMs: number): void {
    this.#left--
    putDown(this.state, limit, nowMs, 1, lateMs)
  }
}
