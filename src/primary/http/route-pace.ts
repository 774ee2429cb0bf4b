/** Answers that come within this on average, milliseconds, are quick: the time that it takes to wake a sleeping lane counts beside it. */
const QUICK_MS = 0.5
/** A longer time counts as this, milliseconds: one slow answer is soon forgotten. */
const MOST_MS = 4
/** How far one answer moves the average, as a part of the difference. */
const STEP = 1 / 16

/** How fast the answers of one route come, from their requests on: waiting in front of a lane counts, too. */
export class RoutePace {
  /** A route that is not known yet is not quick. */
  #averageMs = MOST_MS

  get isQuick(): boolean {
    return this.#averageMs < QUICK_MS
  }

  answered(ms: number): void {
    this.#averageMs += (Math.min(ms, MOST_MS) - this.#averageMs) * STEP
  }
}
