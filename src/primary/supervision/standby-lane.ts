import type { Lane } from '../dispatch/lane.ts'
import type { LaneReplacement } from './lane-replacement.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** A lane that has stood still this long is helped out for, before it is known whether it will go on; or at half its time, when that is less. */
const STANDBY_AFTER_MS = 1000

export interface StandbyLaneOptions {
  laneStallMs: number
  slots: readonly LaneSlot[]
  replacement: LaneReplacement
  /** True while lanes die so often that none is started at once. */
  isPaused: (nowMs: number) => boolean
  /** A thread takes part from now on. */
  open: (lane: Lane) => void
  /** The lane has died meanwhile, and nobody is there to take its slot. */
  restart: (slot: LaneSlot) => void
  isStopping: () => boolean
}

/**
 * A further thread for a lane that stands still: the others shall not carry its share until it is known whether it will go on.
 * The thread inherits the slot should the other one end.
 */
export class StandbyLane {
  readonly #options: StandbyLaneOptions
  /** A plugin that computes for seconds again and again must not start a thread each time. */
  readonly #intensity = new RestartIntensity()

  constructor(options: StandbyLaneOptions) {
    this.#options = options
  }

  /** The loop of a thread stands still: it is helped out for in time. */
  tend(still: LaneThread): void {
    if (still.watch.stillMs < Math.min(STANDBY_AFTER_MS, this.#options.laneStallMs / 2)) return
    const slot = this.#placeOf(still)
    if (slot === undefined || slot.isStandbyStarting || slot.standby !== null || this.#options.isStopping()) return
    const nowMs = Date.now()
    if (this.#options.isPaused(nowMs) || this.#intensity.isExceeded(nowMs)) return
    this.#intensity.note(nowMs)
    void this.#relieve(slot, still)
  }

  async #relieve(slot: LaneSlot, still: LaneThread): Promise<void> {
    const { replacement, isStopping, open, restart } = this.#options
    slot.isStandbyStarting = true
    const { fresh, fault } = await replacement.call(slot)
    slot.isStandbyStarting = false
    const isNeeded = slot.thread === still && !(still.lane.state === 'ready' && still.watch.isTurning)
    if (fault !== null || !isNeeded || isStopping()) {
      replacement.dismiss(fresh)
      if (slot.thread.lane.state === 'dead') restart(slot)
      return
    }
    replacement.others.delete(fresh)
    slot.standby = fresh
    if (still.lane.state === 'dead') this.inherit(slot)
    open(fresh.lane)
  }

  /** The thread that stood still has ended: the one that helps out stays. */
  inherit(slot: LaneSlot): void {
    slot.thread = slot.standby!
    slot.standby = null
    slot.restarts++
  }

  /** The loop of a thread turns: whoever helps out for it finishes what it has. */
  end(thread: LaneThread): void {
    const slot = this.#placeOf(thread)
    const standby = slot?.standby
    if (!slot || !standby || standby.lane.state === 'dead') return
    slot.standby = null
    void this.#options.replacement.retire(standby)
  }

  #placeOf(thread: LaneThread): LaneSlot | undefined {
    return this.#options.slots.find((slot) => slot.thread === thread)
  }
}
