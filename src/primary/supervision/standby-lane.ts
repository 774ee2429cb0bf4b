import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneReplacement } from './lane-replacement.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** A standby starts when a lane has stood still this long by its own doing, before it is known whether it will go on; or at half of its time, when that is less. */
const STANDBY_AFTER_MS = 1000
/** The same where no lane is left that could do anything meanwhile. */
const STANDBY_ALONE_AFTER_MS = 250

export interface StandbyLaneOptions {
  laneStallMs: number
  slots: readonly LaneSlot[]
  replacement: LaneReplacement
  /** True while lanes die so often that none is started at once. */
  isPaused: (nowMs: number) => boolean
  /** A thread takes part from now on. */
  open: (lane: Lane) => void
  /** The lane has died meanwhile, and no thread is there for its slot. */
  restart: (slot: LaneSlot) => void
  isStopping: () => boolean
}

/**
 * A further thread beside a lane that stands still, so that the other lanes do not carry its share until it is known whether it will
 * go on. If the lane ends, the standby takes its slot.
 */
export class StandbyLane {
  readonly #options: StandbyLaneOptions
  /** A plugin that computes for seconds again and again must not start a thread each time. */
  readonly #intensity = new RestartIntensity()

  constructor(options: StandbyLaneOptions) {
    this.#options = options
  }

  /** Called at each check while the loop of a thread stands still. Starts a standby when that takes long. */
  onStill(still: LaneThread): void {
    const afterMs = this.#isAnyAtWork ? STANDBY_AFTER_MS : STANDBY_ALONE_AFTER_MS
    if (still.watchdog.ownMs < Math.min(afterMs, this.#options.laneStallMs / 2)) return
    const slot = this.#slotOf(still)
    if (slot === undefined || slot.isStandbyStarting || slot.standby !== null || this.#options.isStopping()) return
    const nowMs = steadyMs()
    if (this.#options.isPaused(nowMs) || this.#intensity.isExceeded(nowMs)) return
    this.#intensity.recordDeath(nowMs)
    void this.#start(slot, still)
  }

  /** A thread is about to be ended, and no other lane serves. Resolves when one does that takes its slot then, or does not boot. */
  async relieve(thread: LaneThread): Promise<void> {
    const slot = this.#slotOf(thread)
    if (slot === undefined || slot.isStandbyStarting || slot.standby !== null) return
    const nowMs = steadyMs()
    if (this.#options.isPaused(nowMs) || this.#intensity.isExceeded(nowMs)) return
    this.#intensity.recordDeath(nowMs)
    await this.#start(slot, thread)
  }

  /** Some lane works, or is about to. */
  get #isAnyAtWork(): boolean {
    return this.#options.slots.some(
      ({ thread, standby, isStandbyStarting }) =>
        isStandbyStarting || [thread, standby].some((each) => each?.lane.state === 'ready' && each.lane.responsive),
    )
  }

  async #start(slot: LaneSlot, still: LaneThread): Promise<void> {
    const { replacement, isStopping, open, restart } = this.#options
    slot.isStandbyStarting = true
    const { fresh, fault } = await replacement.start(slot)
    slot.isStandbyStarting = false
    const goesOn = still.holder === null && still.lane.state === 'ready' && still.watchdog.isResponsive
    const isNeeded = slot.thread === still && !goesOn
    if (fault !== null || !isNeeded || isStopping()) {
      replacement.discard(fresh)
      if (slot.thread.isLost) restart(slot)
      return
    }
    replacement.outsideSlots.delete(fresh)
    slot.standby = fresh
    fresh.lane.isStandby = true
    if (still.isLost) this.promote(slot)
    open(fresh.lane)
  }

  /** The thread in the slot has ended: its standby takes the slot. */
  promote(slot: LaneSlot): void {
    slot.thread = slot.standby!
    slot.thread.lane.isStandby = false
    slot.standby = null
    slot.restarts++
  }

  /** Called at each check while the loop of a thread turns. Its standby is not needed any more, and ends when it has finished its work. */
  onResponsive(thread: LaneThread): void {
    const slot = this.#slotOf(thread)
    const standby = slot?.standby
    if (!slot || !standby || standby.isLost || thread.holder !== null) return
    slot.standby = null
    void this.#options.replacement.drain(standby)
  }

  #slotOf(thread: LaneThread): LaneSlot | undefined {
    return this.#options.slots.find((slot) => slot.thread === thread)
  }
}
