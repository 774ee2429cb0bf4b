/** A quick lane answers as many requests as it may hold within this, milliseconds: who waits for a place there is begun soon. */
const QUICK_MS = 300
/**
 * A window ends after this many looks (`LOOK_MS`): counted in looks, for a primary that was held up has read no answers either. Long
 * enough that a thread that had to wait for the machine does not look slow.
 */
const WINDOW_LOOKS = 5
const WINDOW_MS = 100

/** How fast a lane answers. One that is not full answers little because it is asked little: that does not make it slow. */
export class Pace {
  /** What the last window told that told anything. */
  verdict: 'unknown' | 'quick' | 'slow' = 'unknown'
  readonly #fullLoad: number
  #answers = 0
  #looks = 0
  #fullLooks = 0
  #sinceMs = 0
  /** Somebody found no room since the last look. */
  #wasFull = false

  /** @param fullLoad requests that the lane may hold */
  constructor(fullLoad: number) {
    this.#fullLoad = fullLoad
  }

  countAnswer(): void {
    this.#answers++
  }

  /** For who found no room: what is enough for a whole window is enough before its end. */
  whenFull(nowMs: number): Pace['verdict'] {
    this.#wasFull = true
    if (this.#isQuick(Math.max(WINDOW_MS, nowMs - this.#sinceMs))) this.verdict = 'quick'
    return this.verdict
  }

  /** Called regularly. @param isFull the lane has no room just now */
  look(nowMs: number, isFull: boolean): void {
    if (isFull || this.#wasFull) this.#fullLooks++
    this.#wasFull = false
    if (++this.#looks < WINDOW_LOOKS) return
    if (this.#isQuick(nowMs - this.#sinceMs)) this.verdict = 'quick'
    else if (this.#fullLooks === WINDOW_LOOKS) this.verdict = 'slow'
    this.#answers = 0
    this.#looks = 0
    this.#fullLooks = 0
    this.#sinceMs = nowMs
  }

  #isQuick(elapsedMs: number): boolean {
    return this.#answers * QUICK_MS >= this.#fullLoad * elapsedMs
  }
}
