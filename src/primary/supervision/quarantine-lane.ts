import type { Lane } from '../dispatch/lane.ts'
import type { Berth, Place } from './lane-thread.ts'
import { RestartIntensity } from './restart-intensity.ts'

/** The quarantine lane ends when nobody has wanted it for this long. */
const QUARANTINE_IDLE_MS = 10_000

export interface QuarantineLaneOptions {
  /** Makes its place, with a thread in it. */
  settle: () => Place
  /** Starts a thread in its place, unless one is there. */
  restart: (place: Place) => void
  /** Ends a thread when it has finished what it has. */
  retire: (berth: Berth) => Promise<void>
  /** A lane gets no new work. */
  onLeaving: (lane: Lane) => void
}

/** The lane for events that lanes died of: it is there while it is wanted, and somewhat longer. */
export class QuarantineLane {
  /** Of its own: an event that kills every lane it is tried in must not slow down the others' restarts. */
  readonly intensity = new RestartIntensity()
  readonly #options: QuarantineLaneOptions
  #place: Place | null = null
  #isWanted = false
  #idleTimer: NodeJS.Timeout | undefined

  constructor(options: QuarantineLaneOptions) {
    this.#options = options
  }

  /** Null until it has been wanted for the first time. */
  get place(): Place | null {
    return this.#place
  }

  get isWanted(): boolean {
    return this.#isWanted
  }

  want(isWanted: boolean): void {
    this.#isWanted = isWanted
    clearTimeout(this.#idleTimer)
    if (!isWanted) this.#restLater()
    else if (this.#place === null) this.#place = this.#options.settle()
    else if (this.#place.timer === undefined) this.#options.restart(this.#place)
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
    const berth = this.#place?.berth
    if (berth?.lane.state === 'ready') void this.#options.retire(berth)
  }

  /** A handler in it was given up: what comes next must find nothing of it. When it has ended it starts anew, if it is wanted. */
  renew(): void {
    const berth = this.#place?.berth
    if (berth === undefined || berth.lane.state === 'dead') return
    berth.lane.state = 'draining'
    this.#options.onLeaving(berth.lane)
    berth.abort.abort()
  }

  /** Nothing starts or ends by itself any more. */
  stop(): void {
    clearTimeout(this.#place?.timer)
    clearTimeout(this.#idleTimer)
  }
}
