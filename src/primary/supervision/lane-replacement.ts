import type { Settings } from '../../core/config/schema.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Berth, Place } from './lane-thread.ts'

/** Beyond its subscribers' time limits, for what a lane that reads streams acknowledges last, milliseconds. */
const READ_GRACE_MS = 5000
const RETIRE_LOOK_MS = 10
/** Sockets of a lane that ends are closed as soon as nothing of them is being handled, and in any case after this, milliseconds. */
const SOCKET_GRACE_MS = 5000

/** Close code and reason of what a lane leaves: its clients connect again, and find another. */
const RESTART = [1012, 'service restart'] as const

export interface SuccessionOptions {
  settings: Settings
  /** Starts a thread for a place. */
  spawn: (place: Place) => Berth
  /** A lane that has booted takes part from now on. */
  open: (lane: Lane) => void
  /** A lane gets no new work. */
  onLeaving: (lane: Lane) => void
  /** True while a lane that is leaving has work that only the primary knows of. */
  isBusy: (lane: Lane) => boolean
  isStopping: () => boolean
}

/** How a thread takes a lane over from another that still runs: when the code is new, or when the old one stands still. */
export class Succession {
  readonly #options: SuccessionOptions
  /** Threads that are to take over, and those that have been taken over from. */
  readonly others = new Set<Berth>()

  constructor(options: SuccessionOptions) {
    this.#options = options
  }

  /** Starts a thread beside the one that is in the place. @returns why it did not boot, or null */
  async call(place: Place): Promise<{ fresh: Berth; fault: string | null }> {
    const fresh = this.#options.spawn(place)
    this.others.add(fresh)
    const fault = await new Promise<string | null>((resolve) => {
      fresh.arrived = resolve
    })
    fresh.arrived = null
    // It may have died right behind its manifest.
    if (fresh.lane.state === 'dead') return { fresh, fault: fault ?? fresh.deathMessage ?? 'its thread was ended' }
    return { fresh, fault }
  }

  /** It is not needed after all: it takes no part, and nothing is in flight there. */
  dismiss(fresh: Berth): void {
    if (fresh.lane.state !== 'dead') fresh.lane.state = 'draining'
    fresh.abort.abort()
  }

  /** It takes the place. Resolves when the thread that was there has ended. */
  async takeOver(place: Place, fresh: Berth): Promise<void> {
    await Promise.all(this.succeed(place, fresh).map((each) => this.retire(each)))
  }

  /** It takes the place. @returns those that were there: they still get work until they are retired */
  succeed(place: Place, fresh: Berth): Berth[] {
    const leaving = [place.berth, place.relief].filter((each) => each !== null && each.lane.state !== 'dead') as Berth[]
    this.others.delete(fresh)
    place.berth = fresh
    place.relief = null
    place.isRetried = false
    this.#options.open(fresh.lane)
    return leaving
  }

  /** No new work for it; it ends when it has finished what it has: requests and events have their own time limits, all else has the handlers'. */
  async retire(berth: Berth): Promise<void> {
    const { lane } = berth
    const hadBooted = lane.state === 'ready'
    this.others.add(berth)
    lane.state = 'draining'
    this.#options.onLeaving(lane)
    lane.sockets.leave(...RESTART)
    if (!hadBooted) berth.abort.abort()
    const { httpHandlerTimeoutMs, shutdownTimeoutMs } = this.#options.settings
    const deadlineMs = Date.now() + httpHandlerTimeoutMs
    const graceEndMs = Date.now() + SOCKET_GRACE_MS
    const readDeadlineMs = Date.now() + longestSubscriberMs(lane) + READ_GRACE_MS
    const isBusy = (): boolean =>
      lane.requestsInFlight > lane.streamsOpen ||
      lane.deliveriesInFlight > 0 ||
      (lane.filesOpen > 0 && Date.now() < deadlineMs) ||
      (lane.sockets.size > 0 && Date.now() < graceEndMs) ||
      (lane.isReading && Date.now() < readDeadlineMs) ||
      (Date.now() < deadlineMs && this.#options.isBusy(lane))
    while (isBusy() && lane.state === 'draining' && !this.#options.isStopping()) {
      await new Promise((resolve) => setTimeout(resolve, RETIRE_LOOK_MS))
    }
    lane.sockets.closeAll(...RESTART)
    lane.post({ type: 'drain' })
    const timeout = setTimeout(() => berth.abort.abort(), shutdownTimeoutMs)
    await berth.ended
    clearTimeout(timeout)
  }
}

/** Time limit of a subscriber that names none, milliseconds. */
const SUBSCRIBER_TIMEOUT_MS = 30_000

function longestSubscriberMs({ manifest }: Lane): number {
  const limits = manifest?.subscriptions.map(({ options }) => options.timeoutMs ?? SUBSCRIBER_TIMEOUT_MS) ?? []
  return Math.max(0, ...limits)
}
