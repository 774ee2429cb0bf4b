/** Seconds for which a lane may be busy before it counts as not ready: a long turn of its loop is no fault. */
const GRACE_SECONDS = 2

/** Which lanes are ready. A lane that was ready and does not answer for a moment still is. */
export class LaneStates {
  /** Seconds since each lane was seen well. A lane that was never seen well is not in it. */
  #unwell = new Map()

  /** The first look: whoever is up counts as well. */
  begin(lanes) {
    this.#unwell.clear()
    this.#look(lanes, ({ state }) => state === 'ready')
  }

  /** Once a second. */
  look(lanes) {
    for (const [key, seconds] of this.#unwell) this.#unwell.set(key, seconds + 1)
    this.#look(lanes, ({ state, responsive }) => state === 'ready' && responsive)
  }

  isReady(lane) {
    return this.#unwell.get(keyOf(lane)) <= GRACE_SECONDS
  }

  #look(lanes, isWell) {
    for (const lane of lanes) if (isWell(lane)) this.#unwell.set(keyOf(lane), 0)
  }
}

/** A standby has the number of the lane that it stands in for. */
export const keyOf = ({ index, role }) => `${role} ${index}`

/** The name of a lane, everywhere on the page. */
export function laneTitle({ index, role }) {
  if (role === 'regular') return `Lane ${index}`
  if (role === 'relief') return `Standby for lane ${index}`
  return role === 'probation' ? 'Probation lane' : 'Quarantine lane'
}
