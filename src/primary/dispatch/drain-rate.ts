/** A quick lane answers as many requests as it may hold within this, milliseconds: who waits for a place there is begun soon. */
const QUICK_MS = 300
/** A window ends after this many looks. Long enough that a thread that had to wait for the machine does not look slow. */
const WINDOW_LOOKS = 5
const WINDOW_MS = 100
/** Time that one look counts at most, milliseconds: a primary that was held up for longer did not read the answers either. */
const LOOK_MAX_MS = 50

/** How fast a lane answers. One that is not full answers little because it is asked little: that does not make it slow. */
export class DrainRate {
  /** What the last window told that told anything. */
  verdict: 'unknown' | 'quick' | 'slow' = 'unknown'
  readonly #fullLoad: number
  #answers = 0
  #looks = 0
  #fullLooks = 0
  #lookedMs = 0
  #elapsedMs = 0
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
  whenFull(): DrainRate['verdict'] {
    this.#wasFull = true
    if (this.#isQuick(Math.max(WINDOW_MS, this.#elapsedMs))) this.verdict = 'quick'
    return this.verdict
  }

  /** Called every 20 ms (`LOOK_MS`). @param isFull the lane has no room just now */
  look(nowMs: number, isFull: boolean): void {
    this.#elapsedMs += Math.min(nowMs - this.#lookedMs, LOOK_MAX_MS)
    this.#lookedMs = nowMs
    if (isFull || this.#wasFull) this.#fullLooks++
    this.#wasFull = false
    if (++this.#looks < WINDOW_LOOKS) return
    if (this.#isQuick(this.#elapsedMs)) this.verdict = 'quick'
    else if (this.#fullLooks === WINDOW_LOOKS) this.verdict = 'slow'
    this.#answers = 0
    this.#looks = 0
    this.#fullLooks = 0
    this.#elapsedMs = 0
  }

  #isQuick(elapsedMs: number): boolean {
    return this.#answers * QUICK_MS >= this.#fullLoad * elapsedMs
  }
}
