import type { Settings } from '../../core/config/schema.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/config/subscriber-defaults.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/until.ts'
import type { Lane } from '../dispatch/lane.ts'
import { LEAVING_MAX_THREADS } from './lane-pool.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'

/** A lane that reads streams has this long to acknowledge its last events, beyond the time limits of its subscribers, milliseconds. */
const READ_GRACE_MS = 5000
/** Sockets of a lane that drains are closed when nothing of them is being handled, and in any case after this, milliseconds. */
const SOCKET_GRACE_MS = 5000

/** Close code and reason of the sockets of a lane that drains: their clients connect again, and find another lane. */
export const RESTART = [1012, 'service restart'] as const

export interface LaneReplacementOptions {
  settings: Settings
  /** Starts a thread for a slot. */
  spawn: (slot: LaneSlot) => LaneThread
  /** A lane that has booted takes part from now on. */
  open: (lane: Lane) => void
  /** A lane gets no new work. */
  onLeaving: (lane: Lane) => void
  /** True while a lane that drains has work that only the primary knows of. */
  isBusy: (lane: Lane) => boolean
  isStopping: () => boolean
}

/** A thread that was started to take over a slot. */
export interface Replacement {
  fresh: LaneThread
  /** Why it did not boot; null when it did. */
  fault: string | null
}

/** Replaces a thread that still runs by another one: when the code is new, or when the old thread stands still. */
export class LaneReplacement {
  readonly #options: LaneReplacementOptions
  /** Threads that are about to take over a slot, and those whose slot was taken over. */
  readonly outsideSlots = new Set<LaneThread>()

  constructor(options: LaneReplacementOptions) {
    this.#options = options
  }

  get #leaving(): number {
    return [...this.outsideSlots].filter(({ isLost, lane }) => isLost || lane.state === 'draining').length
  }

  /** Starts a thread beside the one that is in the slot, and waits for its boot. */
  async start(slot: LaneSlot): Promise<Replacement> {
    const { isStopping } = this.#options
    await until(() => this.#leaving < LEAVING_MAX_THREADS || isStopping(), Number.POSITIVE_INFINITY)
    const fresh = this.#options.spawn(slot)
    this.outsideSlots.add(fresh)
    const fault = await new Promise<string | null>((resolve) => {
      fresh.onBootEnd = resolve
    })
    fresh.onBootEnd = null
    // It may have died right after its manifest.
    if (fresh.isLost) return { fresh, fault: fault ?? fresh.deathMessage ?? 'its thread was ended' }
    return { fresh, fault }
  }

  /** Ends a thread that is not needed after all. It takes no part, so no work of others is in flight there. */
  discard(fresh: LaneThread): void {
    if (fresh.isLost) return
    const hasBooted = fresh.lane.manifest !== null
    fresh.lane.state = 'draining'
    if (hasBooted) fresh.lane.post({ type: 'drain' })
    else fresh.abort.abort()
  }

  /** Puts a thread into the slot. Resolves when the threads that were there have finished their work; their native calls may take longer. */
  async takeOver(slot: LaneSlot, fresh: LaneThread): Promise<void> {
    await Promise.all(this.install(slot, fresh).map((each) => this.drain(each)))
  }

  /** Puts a thread into the slot. @returns the threads that were there: they still get work until they are drained */
  install(slot: LaneSlot, fresh: LaneThread): LaneThread[] {
    const replaced = [slot.thread, slot.standby].filter((each) => each !== null && !each.isLost) as LaneThread[]
    this.outsideSlots.delete(fresh)
    slot.thread = fresh
    slot.standby = null
    slot.isRetried = false
    this.#options.open(fresh.lane)
    return replaced
  }

  /** Gives a lane no new work, and ends it when it has finished what it has: requests and events have their own time limits, all else has the handlers'. */
  async drain(thread: LaneThread): Promise<void> {
    const { lane } = thread
    const hadBooted = lane.state === 'ready'
    this.outsideSlots.add(thread)
    lane.state = 'draining'
    this.#options.onLeaving(lane)
    lane.sockets.closeWhenIdle(...RESTART)
    if (!hadBooted) thread.abort.abort()
    await this.#workDone(thread)
    if (thread.isDying) return
    lane.sockets.closeAll(...RESTART)
    lane.post({ type: 'drain' })
  }

  /** Waits until a draining lane has finished its work, each kind of work up to its own time limit. */
  async #workDone(thread: LaneThread): Promise<void> {
    const { lane } = thread
    const { settings, isBusy, isStopping } = this.#options
    const startedMs = steadyMs()
    const handlerDeadlineMs = startedMs + settings.httpHandlerTimeoutMs
    const socketDeadlineMs = startedMs + SOCKET_GRACE_MS
    const readDeadlineMs = startedMs + longestSubscriberMs(lane) + READ_GRACE_MS
    const hasWork = (): boolean => {
      const nowMs = steadyMs()
      return (
        lane.requestsInFlight > 0 ||
        lane.deliveriesInFlight > 0 ||
        (lane.filesOpen > 0 && nowMs < handlerDeadlineMs) ||
        (lane.sockets.size > 0 && nowMs < socketDeadlineMs) ||
        (lane.isReading && nowMs < readDeadlineMs) ||
        (nowMs < handlerDeadlineMs && isBusy(lane))
      )
    }
    await until(() => !hasWork() || thread.isLost || isStopping(), Number.POSITIVE_INFINITY)
  }
}

function longestSubscriberMs({ manifest }: Lane): number {
  const subscriptions = manifest?.subscriptions ?? []
  return Math.max(0, ...subscriptions.map(({ options }) => options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs))
}
