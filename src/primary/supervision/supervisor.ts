import { availableParallelism } from 'node:os'
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { Settings } from '../../core/config/schema.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import type { Holder, Manifest, SharedMemories } from '../../transport/messages.ts'
import type { Lane, LaneListener, LaneRole, UnfinishedWork } from '../dispatch/lane.ts'
import { describeDeath, type LaneDeath, laneDeath } from './black-box.ts'
import type { FlightMirror } from './crash-report.ts'
import {
  LAST_LANE_MAX_PAUSE_MS,
  type LaneSlot,
  LaneSlots,
  type LaneThread,
  OnDemandLane,
  RESTART_WINDOW_MS,
  RestartIntensity,
  slotWith,
} from './lane-set.ts'
import { type LaneHistory, LaneStarter, type LaneTracing } from './lane-starter.ts'
import { CoreUse } from './processor-time.ts'
import { LaneReplacement, RESTART, RollingReload, StandbyLane } from './replacement.ts'
import { SlowBoot } from './slow-boot.ts'
import { type StackFrame, stopThread } from './stack-probe.ts'
import { CHECK_MS, type Standstill, type TerminationReason } from './watchdog.ts'

/** Black boxes that are kept of each lane. */
const DEATHS_KEPT = 5
/** Who has left no descriptor for the next lane has this long to leave, milliseconds. */
const HOLDER_LEAVES_MS = 5000

/** A plugin that stands still for this long where no other lane answers, or one, is kept away from it, milliseconds. */
const STALLED_MS = [250, 1000]

export interface SupervisorOptions {
  settings: Settings
  shared: SharedMemories
  /** Somebody waits for each change of the code: new lanes come up sooner, and take over together. */
  isDevelopment: boolean
  /** Null while tracing is off. */
  tracing: () => LaneTracing | null
  /** Null where no history is kept. */
  history: () => LaneHistory | null
  /** Plugins that earlier processes died of while they booted, by file, each with the reason. */
  barred: Record<string, string>
  /** What earlier processes died of in this lane, newest first. */
  pastDeaths: (index: number) => BlackBox[]
  /** Null without a guardian. */
  flightMirror: FlightMirror | null
  /** Told everything that a lane says, except for its end. */
  listener: LaneListener
  /** A lane has reported what it hosts. It is ready when this has given it its routes. */
  onBooted: (lane: Lane) => void
  /** Why new code is refused, by the manifest of its first lane; null when it is taken. */
  refusalOf: (manifest: Manifest) => string | null
  /** The loop of a lane stands still, or the lane is gone: the work that it has not begun may go elsewhere. */
  onUnresponsive: (lane: Lane) => void
  /** A lane stands still so long that hardly another one is left. */
  onStalled: (lane: Lane, stack: readonly StackFrame[] | null) => void
  /** The loop of a lane turns again after it stood still for so long that its stack was taken. */
  onRecovered: (lane: Lane, standstill: Standstill) => void
  /** A plugin that lanes run without, because it took long to boot, has turned out not to boot. */
  onLeftOut: (file: string, reason: string) => void
  /** Handlers that do not settle hold so many places of a lane that it is replaced. */
  onWornOut: (lane: Lane) => void
  /** A lane has died, or is dying: then it gets nothing more, and what it has may still be answered. @returns what is kept of it */
  onDeath: (lane: Lane, death: LaneDeath) => BlackBox
  /** A lane that has died is gone. @param unfinished what it has not answered */
  onGone: (lane: Lane, unfinished: UnfinishedWork, box: BlackBox) => void
  /** A lane gets no new work, and ends as soon as it has none. */
  onLeaving: (lane: Lane) => void
  /** True while a lane that is leaving has work that only the primary knows of. */
  isBusy: (lane: Lane) => boolean
  /** A lane has ended because it was told to. */
  onLeft: (lane: Lane, unfinished: UnfinishedWork) => void
  /** The set of lanes that take work has changed. */
  onChange: () => void
}

/** Keeps N lanes alive: starts them, watches them, replaces them when they die or their code is new. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #starter: LaneStarter
  readonly #slots: LaneSlots
  readonly #replacement: LaneReplacement
  readonly #rollingReload: RollingReload
  readonly #standby: StandbyLane
  readonly #slowBoot: SlowBoot
  /** For events that lanes died of, one at a time. */
  readonly #quarantine: OnDemandLane
  /** For the requests of plugins that are under suspicion. */
  readonly #probation: OnDemandLane
  readonly #intensity = new RestartIntensity()
  readonly #coreUse = new CoreUse(
    () => this.#slots.threads,
    (message) => this.#log('WARNING', message),
  )
  #checkTimer: NodeJS.Timeout | undefined
  #checkedMs = steadyMs()
  readonly #bootWaiters: (() => void)[] = []
  #isStopping = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    const slots: LaneSlot[] = []
    const {
      settings,
      shared,
      isDevelopment,
      tracing,
      history,
      flightMirror,
      listener,
      onRecovered,
      refusalOf,
      isBusy,
    } = options
    const isStopping = (): boolean => this.#isStopping
    const open = (lane: Lane): void => this.#open(lane)
    this.#starter = new LaneStarter({
      settings,
      shared,
      isPrewarmed: isDevelopment,
      tracing,
      history,
      barred: options.barred,
      flightMirror,
      listener,
      all: () => this.#slots.all,
      onBooted: open,
      onRecovered,
      onHeld: (lane) =>
        this.#log('INFO', `Lane ${lane.index} stands at a breakpoint: nothing in it is late until it goes on`),
      onDying: (thread) => this.#onDying(thread),
      onForsaken: ({ index }) =>
        this.#log(
          'WARNING',
          `Lane ${index} stood at a breakpoint of a debugger that is gone, and goes on. A reload (SIGHUP) ends such breakpoints`,
        ),
      onEnd: (thread, error) => this.#onEnd(thread, error),
      log: (message, fields) => this.#log('ERROR', message, fields),
    })
    const replacement = new LaneReplacement({
      settings,
      spawn: ({ index, role }) => this.#starter.start(index, role),
      open,
      onLeaving: (lane) => {
        options.onLeaving(lane)
        this.#changed()
      },
      isBusy,
      isStopping,
    })
    this.#replacement = replacement
    this.#rollingReload = new RollingReload({
      slots,
      replacement,
      beginGeneration: () => this.#starter.beginGeneration(),
      refusalOf,
      isStopping,
      onFault: listener.onFault,
    })
    this.#standby = new StandbyLane({
      laneStallMs: settings.laneStallMs,
      slots,
      replacement,
      isPaused: (nowMs) => this.#intensity.isExceeded(nowMs),
      open,
      restart: (slot) => this.#restartLater(slot),
      isStopping,
    })
    this.#slowBoot = new SlowBoot({
      slots,
      barred: this.#starter.barred,
      replacement,
      spawn: ({ index, role }, isTrial) => this.#starter.start(index, role, isTrial),
      isServed: () => this.#slots.ready.length > 0,
      isStopping,
      onLeftOut: options.onLeftOut,
      onChange: () => this.#changed(),
      onFault: listener.onFault,
    })
    const onDemand = (index: number, role: LaneRole): OnDemandLane =>
      new OnDemandLane({
        fillSlot: () => this.#fillSlot(index, role),
        restart: (slot) => this.#restart(slot),
        drain: (thread) => replacement.drain(thread),
        giveUp: (thread) => this.#giveUp(thread),
      })
    this.#quarantine = onDemand(settings.lanes, 'quarantine')
    this.#probation = onDemand(settings.lanes + 1, 'probation')
    this.#slots = new LaneSlots({
      lanesWanted: settings.lanes,
      slots,
      quarantine: this.#quarantine,
      probation: this.#probation,
      outside: replacement.outsideSlots,
    })
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    this.#startLanes()
    this.#checkTimer = setInterval(() => this.#checkThreads(), CHECK_MS)
  }

  /** Resolves when no plugin is booting any more that others did not wait for. */
  allBooted(): Promise<void> {
    return this.#slowBoot.over()
  }

  /** Every thread's lane, its state and its deaths. */
  get lanes(): LaneSlots {
    return this.#slots
  }

  /** Resolves when every lane is up, or has failed once. */
  async booted(): Promise<void> {
    while (!this.#slots.isBootOver) await new Promise<void>((resolve) => this.#bootWaiters.push(resolve))
  }

  #changed(): void {
    if (!this.#isStopping) this.#startLanes()
    this.#options.onChange()
    for (const wake of this.#bootWaiters.splice(0)) wake()
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /** The lane on demand of this role; null for a regular lane. */
  #onDemand(role: LaneRole): OnDemandLane | null {
    if (role === 'regular') return null
    return role === 'quarantine' ? this.#quarantine : this.#probation
  }

  /** Starts lanes that have not started yet: so many that no more boot than there are cores, because together they would only take longer. */
  #startLanes(): void {
    const due = Math.min(availableParallelism() - this.#slots.booting, this.#slots.missing)
    for (let n = 0; n < due; n++) {
      const index = this.#slots.next
      this.#slots.add({ ...this.#fillSlot(index, 'regular'), deaths: this.#options.pastDeaths(index) })
    }
  }

  #fillSlot(index: number, role: LaneRole): LaneSlot {
    return slotWith(this.#starter.start(index, role))
  }

  #open(lane: Lane): void {
    // It died right after its manifest, or was told to leave meanwhile.
    if (lane.state !== 'starting') return
    this.#options.onBooted(lane)
    lane.state = 'ready'
    // A plugin that it has not waited for may have ended its lane meanwhile.
    for (const [file, reason] of Object.entries(this.#starter.barred.reasons)) this.#options.onLeftOut(file, reason)
    this.#onDemand(lane.role)?.opened()
    this.#changed()
  }

  // ── watch ─────────────────────────────────────────────────────────────────

  #checkThreads(): void {
    const nowMs = steadyMs()
    const elapsedMs = Math.max(0, nowMs - this.#checkedMs)
    this.#checkedMs = nowMs
    this.#options.flightMirror?.beginLook()
    this.#coreUse.look(nowMs)
    for (const thread of this.#slots.threads)
      this.#reportingFaults(thread.lane, () => this.#check(thread, nowMs, elapsedMs))
  }

  #check(thread: LaneThread, nowMs: number, elapsedMs: number): void {
    const { lane, watchdog } = thread
    if (lane.state !== 'dead') lane.expire(nowMs)
    if (thread.isLost) return this.#checkLeaving(thread, elapsedMs)
    if (watchdog.terminationReason !== null) return
    if (watchdog.isHeld) lane.hold(elapsedMs)
    const terminationReason = watchdog.check(nowMs, elapsedMs)
    this.#options.flightMirror?.look(lane, watchdog.stillMs)
    if (lane.state === 'ready' && !thread.isWornOut && lane.isWornOut(nowMs)) void this.#renew(thread)
    if (lane.state !== 'starting') {
      lane.responsive = watchdog.isResponsive
      if (lane.responsive) this.#standby.onResponsive(thread)
      else this.#onStill(thread)
    } else if (terminationReason === null) this.#slowBoot.look(thread)
    if (terminationReason !== null) void this.#terminate(thread, terminationReason)
  }

  /** Handlers that do not settle hold the places of a lane: another takes over, and it leaves with them. */
  async #renew(thread: LaneThread): Promise<void> {
    const { lane } = thread
    const slot = this.#slots.slotOf(lane)
    if (slot.thread !== thread || this.#isStopping) return
    thread.isWornOut = true
    this.#options.onWornOut(lane)
    if (slot.role !== 'regular') return void this.#onDemand(slot.role)!.renew()
    const { fresh, fault } = await this.#replacement.start(slot)
    if (fault !== null || slot.thread !== thread || thread.isLost || this.#isStopping)
      return this.#replacement.discard(fresh)
    await this.#replacement.takeOver(slot, fresh)
  }

  /** The files that a handler has opened there leave the others none: they are closed with the lane. Where it is the only one, another takes over first. */
  async endHolder(lane: Lane, holder: Holder): Promise<void> {
    const thread = this.#slots.threads.find((each) => each.lane === lane)
    const isEnding = (): boolean => thread!.isLost || thread!.watchdog.terminationReason !== null
    if (thread === undefined || isEnding()) return
    thread.holder = holder
    if (lane.role === 'regular' && lane.state === 'ready' && this.#slots.isLast(this.#slots.slotOf(lane))) {
      await this.#standby.relieve(thread)
    }
    if (!isEnding() && !this.#isStopping) await this.#terminate(thread, 'descriptors')
  }

  #checkLeaving(thread: LaneThread, elapsedMs: number): void {
    const { lane, watchdog, abort } = thread
    if (abort.signal.aborted || !watchdog.checkLeaving(elapsedMs)) return
    this.#log('WARNING', `Lane ${lane.index} does not leave: its thread is ended`)
    this.#options.flightMirror?.lastResort(lane, thread.box)
    abort.abort()
  }

  async #terminate(thread: LaneThread, reason: TerminationReason): Promise<void> {
    const outcome = await thread.watchdog.terminate(reason)
    if (thread.isLost || outcome === 'held' || outcome === 'ended') return
    if (outcome === 'stuck') {
      const unfinished = this.#giveUp(thread)
      return this.#onDeath(thread, null, unfinished)
    }
    thread.lane.post({ type: 'leave' })
    this.#onDying(thread)
  }

  /** Reads what the lane has written, though it cannot ring; gives the work that it has not begun to others; starts a standby in time. */
  #onStill(thread: LaneThread): void {
    thread.lane.collect()
    this.#options.onUnresponsive(thread.lane)
    this.#standby.onStill(thread)
    const { lane, watchdog } = thread
    if (lane.role !== 'regular' || watchdog.isHeld) return
    const others = this.#slots.regularSlots.filter(({ thread: { lane } }) => lane.state === 'ready' && lane.responsive)
    const { ownMs, lastStack } = watchdog
    // The stack tells who it is, where it can be taken.
    const afterMs = STALLED_MS[others.length]! * (lastStack === null ? 2 : 1)
    if (others.length <= 1 && ownMs >= afterMs) this.#options.onStalled(lane, lastStack)
  }

  // ── death ─────────────────────────────────────────────────────────────────

  /** Something in the lane ends it. Its place is taken at once; what it has is finished, and its thread leaves. */
  #onDying(thread: LaneThread): void {
    const { lane } = thread
    if (thread.isLost || this.#isStopping) return
    thread.isDying = true
    if (lane.state === 'ready') {
      this.#options.onUnresponsive(lane)
      lane.sockets.closeWhenIdle(...RESTART)
    }
    lane.state = 'draining'
    this.#replacement.outsideSlots.add(thread)
    const unfinished = { requests: lane.placedRequests, unreadDeliveries: new Set<number>() }
    this.#bury(thread, laneDeath(thread, null, unfinished, this.#options.settings.laneMemoryMb))
  }

  /** All that is in flight in a lane is given up. Its thread leaves, and ends by itself. */
  #giveUp(thread: LaneThread): UnfinishedWork {
    const { lane } = thread
    if (!this.#isStopping) this.#options.onUnresponsive(lane)
    this.#replacement.outsideSlots.add(thread)
    const unfinished = lane.dispose()
    thread.children.end(lane.heartbeat.task)
    return unfinished
  }

  #onEnd(thread: LaneThread, error: unknown): void {
    const { lane } = thread
    this.#replacement.outsideSlots.delete(thread)
    if (lane.state === 'dead') return thread.children.end()
    const wasTold =
      thread.abort.signal.aborted && thread.watchdog.terminationReason === null && !lane.flight.hasExitReport
    lane.responsive = false
    lane.hasEnded = true
    if (!this.#isStopping) this.#options.onUnresponsive(lane)
    const unfinished = lane.dispose()
    thread.children.end()
    if (thread.box !== null) this.#onGone(thread, unfinished)
    else if (wasTold || this.#isStopping) this.#onLeft(thread, unfinished)
    else this.#onDeath(thread, error, unfinished)
  }

  #onLeft(thread: LaneThread, unfinished: UnfinishedWork): void {
    const { lane } = thread
    const slot = this.#slots.slotOf(lane)
    if (slot.standby === thread) slot.standby = null
    this.#reportingFaults(lane, () => this.#options.onLeft(lane, unfinished))
    thread.onBootEnd?.('it was ended')
    // It was leaving when it was wanted again.
    if (slot.thread === thread && this.#onDemand(slot.role)?.isWanted) this.#restart(slot)
  }

  #onDeath(thread: LaneThread, error: unknown, unfinished: UnfinishedWork): void {
    this.#bury(thread, laneDeath(thread, error, unfinished, this.#options.settings.laneMemoryMb))
    this.#onGone(thread, unfinished)
  }

  #onGone({ lane, box }: LaneThread, unfinished: UnfinishedWork): void {
    if (box !== null) this.#reportingFaults(lane, () => this.#options.onGone(lane, unfinished, box))
  }

  /** Reports the death of a lane, and starts another thread in its place. */
  #bury(thread: LaneThread, death: LaneDeath): void {
    const { lane } = thread
    const slot = this.#slots.slotOf(lane)
    if (slot.standby === thread) slot.standby = null
    const box = this.#reportingFaults(lane, () => this.#options.onDeath(lane, death))
    thread.deathMessage = describeDeath(death, box?.guilty)
    if (box !== undefined) {
      thread.box = box
      slot.deaths = [box, ...slot.deaths].slice(0, DEATHS_KEPT)
    }
    const isBetter = this.#starter.barred.laneDied(thread, death, box?.guilty?.line)
    thread.onBootEnd?.(thread.deathMessage)
    if (slot.thread === thread && slot.standby !== null) this.#standby.promote(slot)
    if (slot.thread === thread && !slot.isStandbyStarting) {
      slot.isRetried = isBetter
      if (thread.holder === null) this.#restartLater(slot)
      // Plugins that cannot be read do not boot.
      else void withTimeout(thread.ended, HOLDER_LEAVES_MS, undefined).then(() => this.#restartLater(slot))
    } else this.#intensity.recordDeath(steadyMs())
    this.#changed()
  }

  /** A fault in the rest of the primary must not keep the supervisor from its work: it is reported, and nothing else happens. */
  #reportingFaults<T>(lane: Lane, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      this.#options.listener.onFault(lane, error)
      return undefined
    }
  }

  #restartLater(slot: LaneSlot): void {
    const onDemand = this.#onDemand(slot.role)
    if (onDemand?.isWanted === false) return
    const intensity = onDemand?.intensity ?? this.#intensity
    const dueMs = slot.isRetried ? 0 : intensity.recordDeath(steadyMs())
    const pauseMs = onDemand === null && this.#slots.isLast(slot) ? Math.min(dueMs, LAST_LANE_MAX_PAUSE_MS) : dueMs
    if (pauseMs > 0) {
      this.#log(
        'ERROR',
        `${intensity.recent} lanes died within ${RESTART_WINDOW_MS / 1000} s: the next start of lane ${slot.index} waits ${pauseMs} ms`,
      )
    }
    slot.restartTimer = setTimeout(() => {
      slot.restartTimer = undefined
      this.#restart(slot)
    }, pauseMs)
  }

  /** Does nothing when a reload was faster. */
  #restart(slot: LaneSlot): void {
    if (this.#isStopping || !slot.thread.isLost) return
    slot.restarts++
    slot.isRetried = false
    slot.thread = this.#starter.start(slot.index, slot.role)
    this.#changed()
  }

  #log(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    const record = { level, message, timestampMs: Date.now(), identity: 'supervisor' }
    this.#options.listener.onLog(null, fields === undefined ? record : { ...record, fields })
  }

  // ── quarantine ────────────────────────────────────────────────────────────

  /** While it is wanted there is one lane more, for events that lanes died of. */
  wantQuarantine(isWanted: boolean): void {
    if (!this.#isStopping) this.#quarantine.want(isWanted)
  }

  /** A handler in the quarantine lane was given up: nothing of it must be left for the next event. */
  renewQuarantine(): void {
    this.#quarantine.renew()
  }

  /** While it is wanted there is one lane more, for plugins that are under suspicion. */
  wantProbation(isWanted: boolean): void {
    if (!this.#isStopping) this.#probation.want(isWanted)
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /**
   * Replaces all lanes by new threads that load the code anew; each old one finishes its work.
   * @throws when a new lane does not boot, or boots with fewer plugins than the old ones: those that have not been replaced stay
   */
  async reload(): Promise<void> {
    await this.#slowBoot.giveUp()
    await (this.#options.isDevelopment ? this.#rollingReload.allAtOnce() : this.#rollingReload.oneByOne())
    this.#quarantine.drain()
    this.#probation.drain()
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Ends all lanes in order: each runs its `onStop` and closes its tools. What takes longer than the timeout is given up. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true
    for (const { restartTimer } of this.#slots.regularSlots) clearTimeout(restartTimer)
    this.#quarantine.stop()
    this.#probation.stop()
    const threads = this.#slots.threads
    for (const { lane, abort } of threads) {
      if (lane.state === 'ready') {
        lane.state = 'draining'
        lane.post({ type: 'drain' })
      } else if (lane.state === 'starting') abort.abort()
    }
    await withTimeout(Promise.all(threads.map(({ ended }) => ended)), timeoutMs, undefined)
    clearInterval(this.#checkTimer)
    this.#giveUpAll()
    await this.#destroyUnused()
  }

  /**
   * Gives up whatever the lanes do.
   * @param deadlineMs by `steadyMs`
   * @returns how many threads have not ended by then: native calls of theirs are under way
   */
  async abandon(deadlineMs: number): Promise<number> {
    this.#isStopping = true
    this.#giveUpAll()
    await until(() => this.#starter.lanesRunning === 0, deadlineMs)
    await this.#destroyUnused()
    await until(() => this.#starter.threadsRunning === 0, deadlineMs)
    return this.#starter.threadsRunning
  }

  /** Each thread that can leave does so, and ends by itself: to end it costs the process an abort while a native call of it is under way. */
  #giveUpAll(): void {
    for (const thread of this.#slots.threads) {
      const { lane, watchdog, abort } = thread
      if (lane.state === 'starting') abort.abort()
      else if (lane.state !== 'dead') this.#onLeft(thread, this.#giveUp(thread))
      if (!watchdog.isResponsive) void stopThread(lane.heartbeat.threadId)
    }
  }

  /** Threads that wait for a lane end, too, when no lane is left. */
  async #destroyUnused(): Promise<void> {
    if (this.#starter.lanesRunning === 0) await this.#starter.destroy()
  }
}

/**
 * The supervisor, for the parts of the primary that are built before it. It is built last, because its lanes report to all of these
 * parts, and they ask about the lanes: this link closes the circle before the first lane starts.
 */
export class SupervisorLink {
  #supervisor: Supervisor | null = null

  connect(supervisor: Supervisor): void {
    this.#supervisor = supervisor
  }

  get supervisor(): Supervisor {
    if (this.#supervisor === null) throw new Error('The supervisor is not built yet')
    return this.#supervisor
  }
}
