import type { EventRecord } from '#heddle'

/** Records that one frame takes. New trees get half of it, so that those which are there can grow. */
export const SAMPLE_MAX_RECORDS = 200
const ROOTS_MAX_RECORDS = SAMPLE_MAX_RECORDS / 2
/** Left-out events that are remembered, twice: their children are left out too. */
const LEFT_OUT_MAX = 16_384

/** Chooses what is shown of a flood: whole trees, never leaves without their roots. Nobody counts by it. */
export class TreeSample {
  #taken = 0
  #leftOut = new Set<string>()
  #leftOutBefore = new Set<string>()

  takes({ id, parent_id }: EventRecord): boolean {
    const isOrphan = parent_id !== null && (this.#leftOut.has(parent_id) || this.#leftOutBefore.has(parent_id))
    if (!isOrphan && this.#taken < (parent_id === null ? ROOTS_MAX_RECORDS : SAMPLE_MAX_RECORDS)) {
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

  /** A frame is sent, the next one is empty. */
  next(): void {
    this.#taken = 0
  }
}
