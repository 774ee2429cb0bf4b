import type { EventRecord } from '#heddle'

/** Records that one frame takes. */
export const SAMPLE_MAX_RECORDS = 200
/** New trees that one frame takes at most; fewer while those that are there have no room to grow. */
const ROOTS_MAX = 100
const ROOTS_MIN = 5
const ROOTS_STEP = 5
/** Left-out events that are remembered, twice: their children are left out too. */
const LEFT_OUT_MAX = 16_384

/** Chooses what is shown of a flood: fewer trees, and those as whole as there is room; never leaves without their roots. Nobody counts by it. */
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

  /** A frame is sent, the next one is empty. */
  next(): void {
    this.#rootsMax = this.#isCramped
      ? Math.max(ROOTS_MIN, this.#rootsMax >> 1)
      : Math.min(ROOTS_MAX, this.#rootsMax + ROOTS_STEP)
    this.#taken = 0
    this.#roots = 0
    this.#isCramped = false
  }
}
