// How many deliveries of a limit may begin at a time.

/** At most `max` in any `perMs` milliseconds. */
export interface RateLimit {
  /** Subscribers with the same name share it. */
  readonly name: string
  readonly max: number
  readonly perMs: number
}

/** Parts of `perMs`: what was begun in one of them counts until all of it is `perMs` ago, so a limit is used up to a twentieth less. */
const PARTS = 20

/** What was begun lately: number of the part, and how many. Times are milliseconds since any time. */
export type RateState = [part: number, begun: number][]

/** @returns how many of those wanted may begin now, and if none may, how long to wait, milliseconds */
export function takeFrom(
  state: RateState,
  { max, perMs }: RateLimit,
  nowMs: number,
  wanted: number,
): { granted: number; waitMs: number } {
  const partMs = Math.max(1, Math.ceil(perMs / PARTS))
  const countsUntil = (part: number): number => (part + 1) * partMs + perMs
  while (state.length > 0 && countsUntil(state[0]![0]) <= nowMs) state.shift()
  const used = state.reduce((sum, [, begun]) => sum + begun, 0)
  const granted = Math.max(0, Math.min(wanted, max - used))
  if (granted === 0) return { granted, waitMs: Math.max(1, Math.ceil(countsUntil(state[0]![0]) - nowMs)) }
  const part = Math.floor(nowMs / partMs)
  const last = state.at(-1)
  // The clock may have been set back.
  if (last !== undefined && last[0] >= part) last[1] += granted
  else state.push([part, granted])
  return { granted, waitMs: 0 }
}
