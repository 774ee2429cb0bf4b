// The clocks of a time zone: what they show at a moment, and when they show a time. Times on them are milliseconds, as if they were UTC.

const MINUTE_MS = 60_000
/** Longer than any clock is set forward or back. */
const AROUND_MS = 36 * 60 * MINUTE_MS

export class WallClock {
  readonly #format: Intl.DateTimeFormat

  /** @throws RangeError for a zone that the IANA data base does not have */
  constructor(timeZone: string) {
    const [numeric, hourCycle] = ['numeric', 'h23'] as const
    const parts = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric, second: numeric }
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone, calendar: 'iso8601', hourCycle, ...parts })
  }

  /** What the clocks show at a moment. */
  at(ms: number): number {
    const part = Object.fromEntries(this.#format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
    const { year, month, day, hour, minute, second } = part as Record<string, number>
    const wholeMs = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!)
    return wholeMs + (((ms % 1000) + 1000) % 1000)
  }

  /** The first moment at which the clocks show a time; the end of the gap if they leave it out. */
  firstOf(wallMs: number): number {
    const [early, late] = [this.#offset(wallMs - AROUND_MS), this.#offset(wallMs + AROUND_MS)]
    const shown = [wallMs - Math.max(early, late), wallMs - Math.min(early, late)].find((ms) => this.at(ms) === wallMs)
    return shown ?? this.changeAfter(wallMs - AROUND_MS, wallMs + AROUND_MS)!
  }

  /** The first moment after one, and up to another, from which on the clocks are set differently; null for none. Two changes that cancel each other out are none. */
  changeAfter(fromMs: number, toMs: number): number | null {
    const offset = this.#offset(fromMs)
    if (this.#offset(toMs) === offset) return null
    let [before, after] = [fromMs, toMs]
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2)
      if (this.#offset(middle) === offset) before = middle
      else after = middle
    }
    return after
  }

  #offset(ms: number): number {
    return this.at(ms) - ms
  }
}
