import type { Lane } from '../dispatch/lane.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** The quarantine lane ends when nobody has wanted it for this long. */
const QUARANTINE_IDLE_MS = 10_000

export interface QuarantineLaneOptions {
  /** Makes its slot, with a thread in it. */
  fillSlot: () => LaneSlot
  /** Starts a thread in its slot, unless one is there. */
  restart: (slot: LaneSlot) => void
  /** Ends a thread when it has finished what it has. */
  retire: (thread: LaneThread) => Promise<void>
  /** A lane gets no new work. */
  onLeaving: (lane: Lane) => void
}

/** The lane for events that lanes died of: it is there while it is wanted, and somewhat longer. */
export class QuarantineLane {
  /** Of its own: an event that kills every lane it is tried in must not slow down the others' restarts. */
  readonly intensity = new RestartIntensity()
  readonly #options: QuarantineLaneOptions
  #slot: LaneSlot | null = null
  #isWanted = false
  #idleTimer: NodeJS.Timeout | undefined

  constructor(options: QuarantineLaneOptions) {
    this.#options = options
  }

  /** Null until it has been wanted for the first time. */
  get slot(): LaneSlot | null {
    return this.#slot
  }

  get isWanted(): boolean {
    return this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    clearTimeout(this.#idleTimer)
    if (!isWanted) this.#restLater()
    else if (this.#slot === null) this.#slot = this.#options.fillSlot()
    else if (this.#slot.timer === undefined) this.#options.restart(this.#slot)
  }

  /** Its thread is up. */
  opened(): void {
    if (!this.#isWanted) this.#restLater()
  }

  #restLater(): void {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = setTimeout(() => {
      if (!this.#isWanted) this.retire()
    }, QUARANTINE_IDLE_MS).unref()
  }

  /** It finishes its suspect, and comes anew when it is wanted again. */
  retire(): void {
    const thread = this.#slot?.thread
    if (thread?.lane.state === 'ready') void this.#options.retire(thread)
  }

  /** A handler in it was given up: what comes next must find nothing of it. When it has ended it starts anew, if it is wanted. */
  renew(): void {
    const thread = this.#slot?.thread
    if (thread === undefined || thread.lane.state === 'dead') return
    thread.lane.state = 'draining'
    this.#options.onLeaving(thread.lane)
    thread.abort.abort()
  }

  /** Nothing starts or ends by itself any more. */
  stop(): void {
    clearTimeout(this.#slot?.timer)
    clearTimeout(this.#idleTimer)
  }
}
