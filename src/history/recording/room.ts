/** Bounds how often something is done in a second. */
export class Room {
  readonly #perSecond: number
  #untilMs = 0
  #taken = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** False where it was done often enough in this second. */
  isFree(nowMs: number): boolean {
    if (nowMs >= this.#untilMs) {
      this.#untilMs = (Math.floor(nowMs / 1000) + 1) * 1000
      this.#taken = 0
    }
    return this.#taken < this.#perSecond
  }

  /** Takes one, where there is any. */
  take(nowMs: number): boolean {
    if (!this.isFree(nowMs)) return false
    this.#taken++
    return true
  }
}
