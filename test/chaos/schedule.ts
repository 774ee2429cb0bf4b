/** What kills a lane, and what only troubles the process. */
export const LETHAL = ['timer', 'rejection', 'exit', 'loop', 'heap', 'buffers', 'transaction'] as const
export const TROUBLE = ['hang', 'pause', 'reload'] as const
export type FaultKind = (typeof LETHAL)[number] | (typeof TROUBLE)[number] | 'poison'

export interface Fault {
  /** Milliseconds after the start. */
  readonly atMs: number
  readonly kind: FaultKind
  /** How long its handler waits before it strikes, milliseconds: other requests are then in the same lane. */
  readonly delayMs: number
}

/** A whole number from 0 up to, not including, `below`. */
export type Random = (below: number) => number

/** The first fault meets clients that are at work, and the last one leaves them time to see its end. */
const LEAD_MS = 1500
const TAIL_MS = 500
const MAX_DELAY_MS = 50
/** Milliseconds between two troubles: they cost no lane, so there are as many whatever the rate of deaths. */
const TROUBLE_GAP_MS = 6000
/** A short run has this many lethal faults all the same. */
const MIN_LETHAL = 3

/**
 * The faults of a run, in order.
 * Kinds come out of a bag that is shuffled and emptied before it is filled again, so that each kind comes equally often;
 * poison costs three lanes, and comes every second time.
 * @param gapMs between two lethal faults, on average
 */
export function faultsOf(random: Random, durationMs: number, gapMs: number): Fault[] {
  const spanMs = Math.max(0, durationMs - LEAD_MS - TAIL_MS)
  const lethal = Math.max(MIN_LETHAL, Math.round(spanMs / gapMs))
  let isPoisonous = false
  const nextLethal = bagOf<FaultKind>(random, () => {
    isPoisonous = !isPoisonous
    return isPoisonous ? [...LETHAL, 'poison'] : LETHAL
  })
  const nextTrouble = bagOf<FaultKind>(random, () => TROUBLE)
  return [
    ...spread(random, spanMs, lethal, nextLethal),
    ...spread(random, spanMs, Math.max(1, Math.round(spanMs / TROUBLE_GAP_MS)), nextTrouble),
  ].sort((a, b) => a.atMs - b.atMs)
}

/** One fault somewhere in each of `count` equal parts of the time. */
function spread(random: Random, spanMs: number, count: number, next: () => FaultKind): Fault[] {
  const partMs = spanMs / count
  return Array.from({ length: count }, (_, n) => ({
    atMs: Math.round(LEAD_MS + n * partMs + (random(1001) / 1000) * partMs),
    kind: next(),
    delayMs: random(MAX_DELAY_MS),
  }))
}

function bagOf<T>(random: Random, fill: () => readonly T[]): () => T {
  let bag: T[] = []
  return () => {
    if (bag.length === 0) bag = [...fill()]
    return bag.splice(random(bag.length), 1)[0]!
  }
}
