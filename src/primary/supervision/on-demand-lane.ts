import type { LaneSlot, LaneThread } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** It ends when it has not been wanted for this long. */
const IDLE_MS = 10_000

export interface OnDemandLaneOptions {
  /** Makes its slot, with a thread in it. */
  fillSlot: () => LaneSlot
  /** Starts a thread in its slot, unless one is there. */
  restart: (slot: LaneSlot) => void
  /** Ends a thread when it has finished its work. */
  drain: (thread: LaneThread) => Promise<void>
  /** Gives up all that is in flight in a thread, which then ends. */
  giveUp: (thread: LaneThread) => void
}

/** A lane beside the regular ones, for work that is under suspicion. It runs while it is wanted, and a little longer. */
export class OnDemandLane {
  /** Counted apart from the other lanes: what kills every lane it is tried in must not slow down their restarts. */
  readonly intensity = new RestartIntensity()
  readonly #options: OnDemandLaneOptions
  #slot: LaneSlot | null = null
  #isWanted = false
  #idleTimer: NodeJS.Timeout | undefined

  constructor(options: OnDemandLaneOptions) {
    this.#options = options
  }

  /** Null until it has been wanted for the first time. */
  get slot(): LaneSlot | null {
    return this.#slot
  }

  get isWanted(): boolean {
    return this.#isWanted
  }

  /** True while it does not run because nothing needs it. */
  get isIdle(): boolean {
    return this.#slot?.thread.isLost === true && !this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    clearTimeout(this.#idleTimer)
    if (!isWanted) this.#drainLater()
    else if (this.#slot === null) this.#slot = this.#options.fillSlot()
    else if (this.#slot.restartTimer === undefined) this.#options.restart(this.#slot)
  }

  /** Its thread is up. */
  opened(): void {
    if (!this.#isWanted) this.#drainLater()
  }

  #drainLater(): void {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = setTimeout(() => {
      if (!this.#isWanted) this.drain()
    }, IDLE_MS).unref()
  }

  /** Finishes what it has, and ends. It starts again when it is wanted again. */
  drain(): void {
    const thread = this.#slot?.thread
    if (thread?.lane.state === 'ready') void this.#options.drain(thread)
  }

  /** Ends the thread because a handler in it was given up: nothing of it must be left for what comes next. A new thread starts if it is wanted. */
  renew(): void {
    const thread = this.#slot?.thread
    if (thread === undefined || thread.isLost) return
    this.#options.giveUp(thread)
    if (this.#isWanted) this.#options.restart(this.#slot!)
  }

  /** Nothing starts or ends by itself any more. */
  stop(): void {
    clearTimeout(this.#slot?.restartTimer)
    clearTimeout(this.#idleTimer)
  }
}
