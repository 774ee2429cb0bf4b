/** Of durations, the share that is above the mark. */
const SHARE = 0.01
/** How far one duration moves the mark, as a part of it. */
const STEP = 0.05
const UP = 1 + STEP * (1 - SHARE)
const DOWN = 1 - STEP * SHARE
/** Marks for which there is room at first. */
const FIRST_MARKS = 64

/**
 * For each kind of work the duration that one in a hundred exceeds, found by small steps: up by much when one is above, down by little when
 * one is below, so that it stands still where a hundredth is above. Source: stochastic approximation of a quantile (Robbins and Monro, 1951).
 */
export class SlowMarks {
  #marks = new Float64Array(FIRST_MARKS)

  /** True for about one in a hundred durations of this kind: the longest ones. @param kind a number of the caller's, from 0 on */
  isAbove(kind: number, ms: number): boolean {
    if (kind >= this.#marks.length) this.#grow(kind)
    const mark = this.#marks[kind]!
    if (mark === 0) {
      this.#marks[kind] = ms
      return false
    }
    const isAbove = ms > mark
    this.#marks[kind] = mark * (isAbove ? UP : DOWN)
    return isAbove
  }

  #grow(kind: number): void {
    const marks = new Float64Array(2 * (kind + 1))
    marks.set(this.#marks)
    this.#marks = marks
  }
}
