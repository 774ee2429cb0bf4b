/** A fast lane answers as many requests as it may hold within this, milliseconds: a request that waits for room there is begun soon. */
const FAST_MS = 300
/** Samples in a window. Enough that a thread that had to wait for the machine does not look slow. */
const WINDOW_SAMPLES = 5
const WINDOW_MS = 100
/** Time that one sample counts at most, milliseconds: a primary that was held up for longer did not read the answers either. */
const SAMPLE_MAX_MS = 50

export type DrainSpeed = 'unknown' | 'fast' | 'slow'

/** How fast a lane answers. A lane that is not full has few answers because it has few requests, which does not make it slow. */
export class DrainRate {
  /** By the last window that allowed a conclusion. */
  speed: DrainSpeed = 'unknown'
  readonly #fullLoad: number
  #answers = 0
  #samples = 0
  #fullSamples = 0
  #sampledMs = 0
  #elapsedMs = 0
  /** A request found no room since the last sample. */
  #wasFull = false

  /** @param fullLoad requests that the lane may hold */
  constructor(fullLoad: number) {
    this.#fullLoad = fullLoad
  }

  countAnswer(): void {
    this.#answers++
  }

  /** Asked when a request has found no room. Answers that are enough for a whole window are enough before its end. */
  speedWhenFull(): DrainSpeed {
    this.#wasFull = true
    if (this.#isFast(Math.max(WINDOW_MS, this.#elapsedMs))) this.speed = 'fast'
    return this.speed
  }

  /** Called every 20 ms, at each check of the supervisor. @param isFull the lane has no room now */
  sample(nowMs: number, isFull: boolean): void {
    this.#elapsedMs += Math.min(nowMs - this.#sampledMs, SAMPLE_MAX_MS)
    this.#sampledMs = nowMs
    if (isFull || this.#wasFull) this.#fullSamples++
    this.#wasFull = false
    if (++this.#samples < WINDOW_SAMPLES) return
    if (this.#isFast(this.#elapsedMs)) this.speed = 'fast'
    else if (this.#fullSamples === WINDOW_SAMPLES) this.speed = 'slow'
    this.#answers = 0
    this.#samples = 0
    this.#fullSamples = 0
    this.#elapsedMs = 0
  }

  #isFast(elapsedMs: number): boolean {
    return this.#answers * FAST_MS >= this.#fullLoad * elapsedMs
  }
}
