/** Seconds for which a lane may be busy before it counts as not ready: a long turn of its loop is no fault. */
const GRACE_SECONDS = 2

/** How many of the regular lanes are ready. A lane that was ready and does not answer for a moment still is. */
export class ReadyLanes {
  ready = 0
  all = 0
  /** Seconds since each lane was seen well. A lane that was never seen well is not in it. */
  #unwell = new Map()

  /** The first look: whoever is up counts as well. */
  begin(lanes) {
    this.#unwell.clear()
    this.#look(lanes, ({ state }) => state === 'ready')
  }

  /** Once a second. */
  look(lanes) {
    for (const [index, seconds] of this.#unwell) this.#unwell.set(index, seconds + 1)
    this.#look(lanes, ({ state, responsive }) => state === 'ready' && responsive)
  }

  #look(lanes, isWell) {
    const regular = lanes.filter(({ role }) => role === 'regular')
    for (const lane of regular) if (isWell(lane)) this.#unwell.set(lane.index, 0)
    this.all = regular.length
    this.ready = regular.filter(({ index }) => this.#unwell.get(index) <= GRACE_SECONDS).length
  }
}
