import type { EventRecord } from '#heddle'

/** Most records of one frame. */
export const SAMPLE_MAX_RECORDS = 200
/** Most new trees of one frame. There are fewer while the existing trees have no room to grow. */
const ROOTS_MAX = 100
const ROOTS_MIN = 5
const ROOTS_STEP = 5
/** Left-out events that each of the two sets remembers, since their children are left out too. */
const LEFT_OUT_MAX = 16_384

/** Samples a flood of events: fewer trees, each as complete as there is room, and no event without its root. The counts of events do not depend on it. */
export class TreeSample {
  #taken = 0
  #roots = 0
  #rootsMax = ROOTS_MAX
  #isCramped = false
  #leftOut = new Set<string>()
  #leftOutBefore = new Set<string>()

  takes({ id, parent_id }: EventRecord): boolean {
    if (parent_id === null ? this.#takesRoot() : this.#takesChild(parent_id)) {
      this.#taken++
      return true
    }
    if (this.#leftOut.size >= LEFT_OUT_MAX) {
      this.#leftOutBefore = this.#leftOut
      this.#leftOut = new Set()
    }
    this.#leftOut.add(id)
    return false
  }

  #takesRoot(): boolean {
    if (this.#roots >= this.#rootsMax || this.#taken >= SAMPLE_MAX_RECORDS) return false
    this.#roots++
    return true
  }

  #takesChild(parentId: string): boolean {
    if (this.#leftOut.has(parentId) || this.#leftOutBefore.has(parentId)) return false
    if (this.#taken < SAMPLE_MAX_RECORDS) return true
    this.#isCramped = true
    return false
  }

  /** Begins the next frame. */
  next(): void {
    this.#rootsMax = this.#isCramped
      ? Math.max(ROOTS_MIN, this.#rootsMax >> 1)
      : Math.min(ROOTS_MAX, this.#rootsMax + ROOTS_STEP)
    this.#taken = 0
    this.#roots = 0
    this.#isCramped = false
  }
}
