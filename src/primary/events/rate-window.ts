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
/** It counts so much longer, at most one part: handlers begin a little later than they are let, milliseconds. */
const LATE_MS = 50

/** What was begun lately: until when it counts, and how many. Times are milliseconds since any time; the earliest comes first. */
export type RateState = [untilMs: number, begun: number][]

const partOf = ({ perMs }: RateLimit): number => Math.max(1, Math.ceil(perMs / PARTS))

/** What is begun now counts until then. */
function untilOf(limit: RateLimit, nowMs: number): number {
  const partMs = partOf(limit)
  return (Math.floor(nowMs / partMs) + 1) * partMs + limit.perMs + Math.min(partMs, LATE_MS)
}

/** @returns how many may begin now, and if none may, how long to wait, milliseconds */
export function leftIn(state: RateState, limit: RateLimit, nowMs: number): { left: number; waitMs: number } {
  const untilMs = untilOf(limit, nowMs)
  // The clock was ahead, or the limit was longer: nothing counts longer than what begins now.
  for (const entry of state) entry[0] = Math.min(entry[0], untilMs)
  while (state.length > 0 && state[0]![0] <= nowMs) state.shift()
  const left = Math.max(0, limit.max - state.reduce((sum, [, begun]) => sum + begun, 0))
  return { left, waitMs: left > 0 ? 0 : Math.max(1, Math.ceil(state[0]![0] - nowMs)) }
}

/** Puts down that some begin now. */
export function putDown(state: RateState, limit: RateLimit, nowMs: number, begun: number): void {
  const untilMs = untilOf(limit, nowMs)
  const last = state.at(-1)
  if (last !== undefined && last[0] === untilMs) last[1] += begun
  else state.push([untilMs, begun])
}

/** What is left of a limit, counted once in each part of `perMs`: what ends to count within it is seen when nothing is left. */
export class RateAllowance {
  readonly state: RateState = []
  #untilMs = 0
  #left = 0

  /** Counts. */
  count(limit: RateLimit, nowMs: number): void {
    this.#left = leftIn(this.state, limit, nowMs).left
    this.#untilMs = untilOf(limit, nowMs)
  }

  /** True if one more is known to be left. */
  isLeft(limit: RateLimit, nowMs: number): boolean {
    return this.#left > 0 && this.#untilMs === untilOf(limit, nowMs)
  }

  /** One begins. */
  putDown(limit: RateLimit, nowMs: number): void {
    this.#left--
    putDown(this.state, limit, nowMs, 1)
  }
}
