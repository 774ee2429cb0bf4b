import type { Lane } from '../dispatch/lane.ts'
import type { Succession } from './lane-replacement.ts'
import type { Berth, Place } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** A lane that has stood still this long is helped out for, before it is known whether it will go on; or at half its time, when that is less. */
const RELIEF_MS = 1000

export interface ReliefOptions {
  laneStallMs: number
  places: readonly Place[]
  succession: Succession
  /** True while lanes die so often that none is started at once. */
  isPaused: (nowMs: number) => boolean
  /** A thread takes part from now on. */
  open: (lane: Lane) => void
  /** The lane has died meanwhile, and nobody is there to take its place. */
  restart: (place: Place) => void
  isStopping: () => boolean
}

/**
 * A further thread for a lane that stands still: the others shall not carry its share until it is known whether it will go on.
 * The thread inherits the place should the other one end.
 */
export class Relief {
  readonly #options: ReliefOptions
  /** A plugin that computes for seconds again and again must not start a thread each time. */
  readonly #intensity = new RestartIntensity()

  constructor(options: ReliefOptions) {
    this.#options = options
  }

  /** The loop of a thread stands still: it is helped out for in time. */
  tend(still: Berth): void {
    if (still.watch.stillMs < Math.min(RELIEF_MS, this.#options.laneStallMs / 2)) return
    const place = this.#placeOf(still)
    if (place === undefined || place.isRelieving || place.relief !== null || this.#options.isStopping()) return
    const nowMs = Date.now()
    if (this.#options.isPaused(nowMs) || this.#intensity.isExceeded(nowMs)) return
    this.#intensity.note(nowMs)
    void this.#relieve(place, still)
  }

  async #relieve(place: Place, still: Berth): Promise<void> {
    const { succession, isStopping, open, restart } = this.#options
    place.isRelieving = true
    const { fresh, fault } = await succession.call(place)
    place.isRelieving = false
    const isNeeded = place.berth === still && !(still.lane.state === 'ready' && still.watch.isTurning)
    if (fault !== null || !isNeeded || isStopping()) {
      succession.dismiss(fresh)
      if (place.berth.lane.state === 'dead') restart(place)
      return
    }
    succession.others.delete(fresh)
    place.relief = fresh
    if (still.lane.state === 'dead') this.inherit(place)
    open(fresh.lane)
  }

  /** The thread that stood still has ended: the one that helps out stays. */
  inherit(place: Place): void {
    place.berth = place.relief!
    place.relief = null
    place.restarts++
  }

  /** The loop of a thread turns: whoever helps out for it finishes what it has. */
  end(berth: Berth): void {
    const place = this.#placeOf(berth)
    const relief = place?.relief
    if (!place || !relief || relief.lane.state === 'dead') return
    place.relief = null
    void this.#options.succession.retire(relief)
  }

  #placeOf(berth: Berth): Place | undefined {
    return this.#options.places.find((place) => place.berth === berth)
  }
}
