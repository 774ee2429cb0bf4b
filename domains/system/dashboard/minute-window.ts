/** Length of a window. */
export const SECONDS = 60
/** Buckets grow by a quarter of an octave from 1 µs to 268 s: a percentile is off by 9 % at most. */
const BUCKETS_PER_OCTAVE = 4
const BUCKETS = 28 * BUCKETS_PER_OCTAVE

export type Outcome = 'succeeded' | 'failed' | 'refused'

/** How many there were, and how long they took. */
export class Tally {
  calls = 0
  errors = 0
  refused = 0
  readonly #buckets = new Uint32Array(BUCKETS)

  add(durationMs: number, outcome: Outcome): void {
    this.calls++
    if (outcome === 'failed') this.errors++
    else if (outcome === 'refused') this.refused++
    this.#buckets[bucketOf(durationMs)]!++
  }

  subtract(other: Tally): void {
    this.calls -= other.calls
    this.errors -= other.errors
    this.refused -= other.refused
    for (let n = 0; n < BUCKETS; n++) this.#buckets[n]! -= other.#buckets[n]!
  }

  clear(): void {
    this.calls = 0
    this.errors = 0
    this.refused = 0
    this.#buckets.fill(0)
  }

  /** The geometric middle of the percentile's bucket, in milliseconds with three significant digits; null where there was none. */
  percentile(share: number): number | null {
    if (this.calls === 0) return null
    let left = Math.ceil(this.calls * share)
    let bucket = 0
    while (bucket < BUCKETS - 1 && left > this.#buckets[bucket]!) left -= this.#buckets[bucket++]!
    return Number((2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE) / 1000).toPrecision(3))
  }
}

function bucketOf(durationMs: number): number {
  const bucket = Math.floor(Math.log2(durationMs * 1000) * BUCKETS_PER_OCTAVE)
  return bucket > 0 ? Math.min(bucket, BUCKETS - 1) : 0
}

/** A ring of the last 60 seconds, and their sum. Something that is added costs an increment, so its cost does not depend on how much there is. */
export class MinuteWindow {
  readonly minute = new Tally()
  readonly #seconds: (Tally | undefined)[] = new Array(SECONDS).fill(undefined)

  add(at: number, durationMs: number, outcome: Outcome): void {
    this.#seconds[at] ??= new Tally()
    this.#seconds[at].add(durationMs, outcome)
    this.minute.add(durationMs, outcome)
  }

  second(at: number): Tally | undefined {
    return this.#seconds[at]
  }

  /** Clears a second of the last minute, and takes it out of the sum. */
  clear(at: number): void {
    const second = this.#seconds[at]
    if (second === undefined || second.calls === 0) return
    this.minute.subtract(second)
    second.clear()
  }
}

/** The second of the ring for something that has ended so long ago; null when that is more than a minute. */
export function secondOf(at: number, endedMs: number, nowMs: number): number | null {
  const secondsAgo = Math.max(1, Math.ceil((nowMs - endedMs) / 1000))
  return secondsAgo >= SECONDS ? null : (at - secondsAgo + SECONDS) % SECONDS
}
