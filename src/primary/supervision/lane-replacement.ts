import type { Settings } from '../../core/config/schema.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'

/** Beyond its subscribers' time limits, for what a lane that reads streams acknowledges last, milliseconds. */
const READ_GRACE_MS = 5000
const RETIRE_LOOK_MS = 10
/** Sockets of a lane that ends are closed as soon as nothing of them is being handled, and in any case after this, milliseconds. */
const SOCKET_GRACE_MS = 5000

/** Close code and reason of what a lane leaves: its clients connect again, and find another. */
const RESTART = [1012, 'service restart'] as const

export interface LaneReplacementOptions {
  settings: Settings
  /** Starts a thread for a slot. */
  spawn: (slot: LaneSlot) => LaneThread
  /** A lane that has booted takes part from now on. */
  open: (lane: Lane) => void
  /** A lane gets no new work. */
  onLeaving: (lane: Lane) => void
  /** True while a lane that is leaving has work that only the primary knows of. */
  isBusy: (lane: Lane) => boolean
  isStopping: () => boolean
}

/** How a thread takes a lane over from another that still runs: when the code is new, or when the old one stands still. */
export class LaneReplacement {
  readonly #options: LaneReplacementOptions
  /** Threads that are to take over, and those that have been taken over from. */
  readonly others = new Set<LaneThread>()

  constructor(options: LaneReplacementOptions) {
    this.#options = options
  }

  /** Starts a thread beside the one that is in the slot. @returns why it did not boot, or null */
  async call(slot: LaneSlot): Promise<{ fresh: LaneThread; fault: string | null }> {
    const fresh = this.#options.spawn(slot)
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
  dismiss(fresh: LaneThread): void {
    if (fresh.lane.state !== 'dead') fresh.lane.state = 'draining'
    fresh.abort.abort()
  }

  /** It takes the slot. Resolves when the thread that was there has ended. */
  async takeOver(slot: LaneSlot, fresh: LaneThread): Promise<void> {
    await Promise.all(this.succeed(slot, fresh).map((each) => this.retire(each)))
  }

  /** It takes the slot. @returns those that were there: they still get work until they are retired */
  succeed(slot: LaneSlot, fresh: LaneThread): LaneThread[] {
    const leaving = [slot.thread, slot.standby].filter(
      (each) => each !== null && each.lane.state !== 'dead',
    ) as LaneThread[]
    this.others.delete(fresh)
    slot.thread = fresh
    slot.standby = null
    slot.isRetried = false
    this.#options.open(fresh.lane)
    return leaving
  }

  /** No new work for it; it ends when it has finished what it has: requests and events have their own time limits, all else has the handlers'. */
  async retire(thread: LaneThread): Promise<void> {
    const { lane } = thread
    const hadBooted = lane.state === 'ready'
    this.others.add(thread)
    lane.state = 'draining'
    this.#options.onLeaving(lane)
    lane.sockets.closeWhenIdle(...RESTART)
    if (!hadBooted) thread.abort.abort()
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
    const timeout = setTimeout(() => thread.abort.abort(), shutdownTimeoutMs)
    await thread.ended
    clearTimeout(timeout)
  }
}

/** Time limit of a subscriber that names none, milliseconds. */
const SUBSCRIBER_TIMEOUT_MS = 30_000

function longestSubscriberMs({ manifest }: Lane): number {
  const limits = manifest?.subscriptions.map(({ options }) => options.timeoutMs ?? SUBSCRIBER_TIMEOUT_MS) ?? []
  return Math.max(0, ...limits)
}
