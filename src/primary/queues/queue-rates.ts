// How many events come and go, by subscriber, over the last minute.

/** Interval of the samples, milliseconds, and how many of them make the minute. */
export const SAMPLE_MS = 5000
const SAMPLES = 12

/** Counters since the start of the process. */
export interface Counted {
  readonly published: number
  readonly ended: number
}

export interface Rates {
  /** In the last minute. */
  readonly in: number
  readonly out: number
}

interface Sample {
  readonly atMs: number
  readonly counted: ReadonlyMap<string, Counted>
}

const NOTHING: Counted = { published: 0, ended: 0 }

export class QueueRates {
  readonly #samples: Sample[] = []

  /** @param counted by queue */
  add(atMs: number, counted: ReadonlyMap<string, Counted>): void {
    this.#samples.push({ atMs, counted })
    if (this.#samples.length > SAMPLES + 1) this.#samples.shift()
  }

  /** @param now the counters of a queue now; a process that is younger than a minute counts what it has seen */
  of(queue: string, now: Counted): Rates {
    const before = this.#samples[0]?.counted.get(queue) ?? NOTHING
    // New code may have a new subscriber of the same name, which counts from zero.
    return {
      in: now.published < before.published ? now.published : now.published - before.published,
      out: now.ended < before.ended ? now.ended : now.ended - before.ended,
    }
  }
}
