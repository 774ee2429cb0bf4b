// Another thread for a slot: for one that has died or leaves, for new code, on standby.

import type { Settings } from '../../core/config/schema.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import { describeDeath } from './black-box.ts'
import type { LaneRegistrar } from './lane-registrar.ts'
import {
  LAST_LANE_MAX_PAUSE_MS,
  type LaneSet,
  type LaneSlot,
  type LaneThread,
  RESTART_WINDOW_MS,
  RestartIntensity,
} from './lane-set.ts'
import { type LaneStarter, LEAVING_MAX_THREADS } from './lane-starter.ts'

/** Sockets of a lane that drains are closed when nothing of them is being handled, and in any case after this, milliseconds. */
const SOCKET_GRACE_MS = 5000

const STOPPING = 'the service is stopping'

/** Close code and reason of the sockets of a lane that drains: their clients connect again, and find another lane. */
export const RESTART = [1012, 'service restart'] as const

/** Where too many threads are leaving, a new one waits this long for one of them, milliseconds: twice what an `onStop` takes at most by default. */
const PLACE_MAX_MS = 60_000

/** A thread that was started to take over a slot. */
interface Replacement {
  /** Null where none could be started. */
  fresh: LaneThread | null
  /** Why it did not boot; null when it did. */
  fault: string | null
}

/** A standby starts when a lane has stood still this long by its own doing, before it is known whether it will go on; or at half of its time, when that is less. */
const STANDBY_AFTER_MS = 1000
/** The same where no lane is left that could do anything meanwhile. */
const STANDBY_ALONE_AFTER_MS = 250

/** Gives a slot another thread: when its own has died, is worn out or stands still, and when the code is new. */
export class LaneReplacement {
  readonly lanes: LaneSet
  readonly starter: LaneStarter
  readonly registrar: LaneRegistrar
  readonly #settings: Settings
  /** Of lanes that are not on demand. */
  readonly #deaths = new RestartIntensity()
  /** A plugin that computes for seconds again and again must not start a thread each time. */
  readonly #standbys = new RestartIntensity()

  constructor(settings: Settings, lanes: LaneSet, starter: LaneStarter, registrar: LaneRegistrar) {
    this.#settings = settings
    this.lanes = lanes
    this.starter = starter
    this.registrar = registrar
  }

  /** False while so many threads are leaving that no further one may start beside them. */
  get #hasPlace(): boolean {
    const leaving = [...this.lanes.outside].filter(({ isLost, state }) => isLost || state === 'draining')
    return leaving.length < LEAVING_MAX_THREADS
  }

  /** Starts a thread beside the one that is in the slot, and waits for its boot. */
  async start(slot: LaneSlot): Promise<Replacement> {
    await until(() => this.#hasPlace || this.lanes.isStopping, steadyMs() + PLACE_MAX_MS)
    if (this.lanes.isStopping) return { fresh: null, fault: STOPPING }
    if (!this.#hasPlace) {
      const fault = `${LEAVING_MAX_THREADS} threads that were replaced have not left within ${PLACE_MAX_MS / 1000} s`
      return { fresh: null, fault }
    }
    const fresh = this.starter.start(slot.index, slot.role)
    this.lanes.outside.add(fresh)
    const fault = await fresh.booted
    if (this.lanes.isStopping) return { fresh, fault: STOPPING }
    return { fresh, fault: fault ?? this.#endOf(fresh) }
  }

  /** Why a thread that has booted is of no use any more; null while it is. */
  #endOf({ isLost, box }: LaneThread): string | null {
    if (!isLost) return null
    return box === null ? 'its thread was ended' : describeDeath(box)
  }

  /**
   * Replaces the threads in the slots at the same moment, or none of them.
   * @param refusal why a new thread that has booted is not taken; null when it is
   * @returns why the old ones stay; null when they were replaced. `drained` resolves when those have finished their work
   */
  async replace(
    slots: readonly LaneSlot[],
    refusal: (fresh: LaneThread) => string | null = () => null,
  ): Promise<{ fault: string | null; drained: Promise<unknown> }> {
    const started = await Promise.all(slots.map((slot) => this.start(slot)))
    const fault = started.map((each) => each.fault ?? refusal(each.fresh!)).find((each) => each !== null) ?? null
    if (fault !== null) for (const { fresh } of started) this.discard(fresh)
    const takenOver = fault === null ? slots.map((slot, n) => this.takeOver(slot, started[n]!.fresh!)) : []
    return { fault, drained: Promise.all(takenOver) }
  }

  /** Ends a thread that is not needed after all. It takes no part, so no work of others is in flight there. */
  discard(fresh: LaneThread | null): void {
    if (!fresh?.become('draining')) return
    this.lanes.outside.add(fresh)
    if (fresh.manifest !== null) fresh.post({ type: 'drain' })
    else fresh.abort.abort()
  }

  /** Puts a thread into the slot. Resolves when the threads that were there have finished their work; their native calls may take longer. */
  async takeOver(slot: LaneSlot, fresh: LaneThread): Promise<void> {
    const replaced = [slot.thread, slot.standby].filter((each) => each !== null && !each.isLost) as LaneThread[]
    this.lanes.outside.delete(fresh)
    slot.thread = fresh
    slot.standby = null
    this.starter.open(fresh)
    await Promise.all(replaced.map((each) => this.drain(each)))
  }

  /** Gives a lane no new work, and ends it when it has finished what it has: requests and events have their own time limits, all else has the handlers'. */
  async drain(thread: LaneThread): Promise<void> {
    const hadBooted = thread.state === 'ready'
    this.lanes.outside.add(thread)
    thread.become('draining')
    this.registrar.leaving(thread)
    this.lanes.changed()
    thread.sockets.closeWhenIdle(...RESTART)
    if (!hadBooted) thread.abort.abort()
    await this.#workDone(thread)
    if (thread.isLost) return
    thread.sockets.closeAll(...RESTART)
    thread.post({ type: 'drain' })
  }

  /** Waits until a draining lane has finished its work, each kind of work up to its own time limit. */
  async #workDone(thread: LaneThread): Promise<void> {
    const startedMs = steadyMs()
    const handlerDeadlineMs = startedMs + this.#settings.httpHandlerTimeoutMs
    const socketDeadlineMs = startedMs + SOCKET_GRACE_MS
    const hasWork = (): boolean => {
      const nowMs = steadyMs()
      return (
        thread.requestsInFlight > 0 ||
        thread.deliveriesInFlight > 0 ||
        (thread.requests.files > 0 && nowMs < handlerDeadlineMs) ||
        (thread.sockets.size > 0 && nowMs < socketDeadlineMs) ||
        (nowMs < handlerDeadlineMs && this.registrar.isBusy(thread))
      )
    }
    await until(() => !hasWork() || thread.isLost || this.lanes.isStopping, Number.POSITIVE_INFINITY)
  }

  // ── new code ──────────────────────────────────────────────────────────────

  /**
   * Replaces all lanes: one after another, each when the one before has finished its work, so that the process is never short of lanes. In
   * development, where somebody waits for the change, at the same moment: no request meets the old code any more. When it throws, the lanes that were
   * not replaced stay.
   * @throws when a new lane does not boot, or boots with fewer plugins than the old ones
   */
  async reload(isDevelopment: boolean): Promise<void> {
    const takeBack = this.starter.beginGeneration()
    const { slots } = this.lanes
    for (const batch of isDevelopment ? [slots] : slots.map((slot) => [slot])) {
      if (this.lanes.isStopping) throw new Error(STOPPING)
      const { fault, drained } = await this.replace(batch, (fresh) => this.#refusalOf(fresh))
      const [{ index, thread }] = batch as [LaneSlot]
      if (fault !== null) {
        takeBack()
        throw new Error(index === 0 ? fault : `${fault} (lanes before ${index} have the new code)`)
      }
      if (isDevelopment) drained.catch((error) => this.registrar.onFault(thread, error))
      else await drained
    }
  }

  #refusalOf(fresh: LaneThread): string | null {
    if (this.lanes.isStopping) return STOPPING
    // It may have died since.
    return this.#endOf(fresh) ?? this.registrar.refusalOf(fresh.manifest!)
  }

  // ── after a death ─────────────────────────────────────────────────────────

  /**
   * A thread has died, or is dying: another one takes its place.
   * @param isRetried the next one does not die of the same: it starts at once
   */
  died(thread: LaneThread, isRetried: boolean): void {
    const slot = this.lanes.slotOf(thread)
    if (slot.standby === thread) slot.standby = null
    if (slot.thread === thread && slot.standby?.state === 'ready') this.#promote(slot)
    if (slot.thread === thread && slot.standby === null) {
      if (isRetried) this.restart(slot)
      else this.#restartLater(slot)
    } else this.#deaths.recordDeath(steadyMs())
    this.lanes.changed()
  }

  #restartLater(slot: LaneSlot): void {
    const onDemand = this.lanes.onDemandOf(slot.role)
    const intensity = onDemand?.intensity ?? this.#deaths
    const nowMs = steadyMs()
    const dueMs = intensity.recordDeath(nowMs)
    const pauseMs = onDemand === null && this.lanes.isLast(slot) ? Math.min(dueMs, LAST_LANE_MAX_PAUSE_MS) : dueMs
    if (pauseMs > 0) {
      this.registrar.log(
        'ERROR',
        `${intensity.count(nowMs)} lanes died within ${RESTART_WINDOW_MS / 1000} s: the next start of lane ${slot.index} waits ${pauseMs} ms`,
      )
    }
    slot.restartTimer = setTimeout(() => {
      slot.restartTimer = undefined
      this.restart(slot)
    }, pauseMs)
  }

  /** Does nothing when a reload was faster, and for a lane on demand that is not wanted. */
  restart(slot: LaneSlot): void {
    const isWanted = this.lanes.onDemandOf(slot.role)?.isWanted ?? true
    if (this.lanes.isStopping || !isWanted || !slot.thread.isLost) return
    slot.restarts++
    slot.thread = this.starter.start(slot.index, slot.role)
    this.lanes.changed()
  }

  // ── standby ───────────────────────────────────────────────────────────────

  /**
   * Called at each check while the loop of a thread stands still. When that takes long a further thread starts beside it, so that the other lanes do
   * not carry its share until it is known whether it will go on. If it ends, the standby takes its slot.
   */
  onStill(still: LaneThread): void {
    const afterMs = this.#isAnyAtWork ? STANDBY_AFTER_MS : STANDBY_ALONE_AFTER_MS
    if (still.watchdog.ownMs >= Math.min(afterMs, this.#settings.laneStallMs / 2)) void this.relieve(still)
  }

  /** Starts a standby, unless there is one. Resolves when it serves, or does not boot. */
  async relieve(thread: LaneThread): Promise<void> {
    const slot = this.#slotOf(thread)
    if (slot === undefined || slot.standby !== null || this.lanes.isStopping) return
    const nowMs = steadyMs()
    // While lanes die that often, none is started at once, and none that would have to wait: the slot would wait with it for its restart.
    if (this.#deaths.isExceeded(nowMs) || this.#standbys.isExceeded(nowMs) || !this.#hasPlace) return
    this.#standbys.recordDeath(nowMs)
    const standby = this.starter.start(slot.index, slot.role)
    slot.standby = standby
    const fault = await standby.booted
    const goesOn = thread.holder === null && thread.state === 'ready' && thread.watchdog.isResponsive
    if (fault === null && slot.standby === standby && slot.thread === thread && !goesOn) {
      if (thread.isLost) this.#promote(slot)
      return this.starter.open(standby)
    }
    if (slot.standby === standby) slot.standby = null
    this.discard(standby)
    // It has died meanwhile, and no thread is there for its slot.
    if (slot.thread.isLost) this.#restartLater(slot)
  }

  /** Some lane works, or is about to. */
  get #isAnyAtWork(): boolean {
    return this.lanes.slots.some(
      ({ thread, standby }) =>
        standby?.state === 'starting' || [thread, standby].some((each) => each?.state === 'ready' && each.responsive),
    )
  }

  /** The thread in the slot has ended: its standby takes the slot. */
  #promote(slot: LaneSlot): void {
    slot.thread = slot.standby!
    slot.standby = null
    slot.restarts++
  }

  /** Called at each check while the loop of a thread turns. Its standby is not needed any more, and ends when it has finished its work. */
  onResponsive(thread: LaneThread): void {
    const slot = this.#slotOf(thread)
    const standby = slot?.standby
    if (!slot || standby?.state !== 'ready' || thread.holder !== null) return
    slot.standby = null
    void this.drain(standby)
  }

  #slotOf(thread: LaneThread): LaneSlot | undefined {
    return this.lanes.slots.find((slot) => slot.thread === thread)
  }
}
