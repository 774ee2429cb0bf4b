// Starts, watches, replaces and stops the lanes.
import { availableParallelism } from 'node:os'
import { relative } from 'node:path'
import { steadyMs } from '../../core/schedule/clock.ts'
import { Watcher } from '../../core/schedule/thread-clock.cjs'
import { type ThreadsTime, until } from '../../core/schedule/waiting.ts'
import type { Holder } from '../../transport/messages.ts'
import type { Lane, UnfinishedWork } from '../dispatch/lane.ts'
import { describeDeath, type LaneDeath, laneDeath } from './black-box.ts'
import { CoreShares } from './core-shares.ts'
import { isDebugged } from './debugger.ts'
import type { LaneParts } from './lane-parts.ts'
import type { LaneRegistrar } from './lane-registrar.ts'
import { type LaneSet, LaneSlot, type LaneThread, type OnDemandLane } from './lane-set.ts'
import { LaneStarter, type ThreadOwner } from './lane-starter.ts'
import { LaneReplacement, RESTART } from './replacement.ts'
import { SlowBoot } from './slow-boot.ts'
import { stopThread } from './stack-probe.ts'
import { CHECK_MAX_MS, CHECK_MS, type TerminationReason } from './watchdog.ts'

/** Crash reports kept of each lane. */
const DEATHS_KEPT = 5
/** A stop does not wait for a lane whose loop has been blocked for this long, milliseconds of own time. */
const STOP_STALL_MS = 2000
/** A dying lane without requests hands its events over after this long, milliseconds. */
const HANDS_OVER_MS = 30_000
/** A plugin is isolated when it has blocked a lane for this long while no, or one, other lane answers; milliseconds of own time. */
const BLOCKED_MS = [250, 1000]

/** Keeps N lanes alive, and replaces them when they die or their code is new. */
export class Supervisor implements ThreadOwner {
  readonly #parts: LaneParts
  readonly #lanes: LaneSet
  readonly #registrar: LaneRegistrar
  readonly #starter: LaneStarter
  readonly #replacement: LaneReplacement
  readonly slowBoot: SlowBoot
  readonly coreShares: CoreShares
  #checkTimer: NodeJS.Timeout | undefined
  readonly #watcher = new Watcher(CHECK_MAX_MS)
  readonly #bootWaiters: (() => void)[] = []
  /** A debugger is attached: no time limit holds. */
  #isDebugged = false

  /** @param registrar hears everything that lanes do */
  constructor(registrar: LaneRegistrar, parts: LaneParts) {
    const { kernel, lanes } = parts
    this.#parts = parts
    this.#lanes = lanes
    this.#registrar = registrar
    this.#starter = new LaneStarter(parts, registrar, this)
    this.#replacement = new LaneReplacement(kernel.settings, lanes, this.#starter, registrar)
    this.slowBoot = new SlowBoot(this.#replacement)
    this.coreShares = new CoreShares(lanes, (message) => registrar.log('WARNING', message))
    lanes.changed = () => this.#changed()
    for (const onDemand of lanes.onDemand) onDemand.renew = () => this.#renewOnDemand(onDemand)
  }

  /** Starts all lanes; each reports by itself. */
  start(): void {
    this.#startLanes()
    this.#checkTimer = setInterval(() => this.#checkThreads(), CHECK_MS)
  }

  /** Resolves when every lane is up, or has failed once. */
  async booted(): Promise<void> {
    while (!this.#lanes.isBootOver) await new Promise<void>((resolve) => this.#bootWaiters.push(resolve))
  }

  /** What `booted` waits for, in words. */
  get bootingNow(): string {
    const starting = this.#lanes.all.filter(({ state }) => state === 'starting')
    const named = starting.map(({ index, bootingFile, heartbeat, bootedFiles }) => {
      if (bootingFile !== null) return `lane ${index} to boot ${relative('', bootingFile)}`
      if (heartbeat.task === 0) return `the thread of lane ${index} to begin`
      return `lane ${index} ${bootedFiles.length === 0 ? 'to load its tools' : 'and what its plugins have begun'}`
    })
    return named.length === 0 ? 'a lane that is to be started again' : named.join(', ')
  }

  #changed(): void {
    const { isStopping, onDemand } = this.#lanes
    if (!isStopping) this.#startLanes()
    // An isolated plugin has no other lane: it does not wait for the next look.
    if (!isStopping) for (const each of onDemand) this.#checkOnDemand(each, steadyMs())
    this.#registrar.changed()
    for (const wake of this.#bootWaiters.splice(0)) wake()
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /** Starts missing lanes, as many at a time as there are cores. */
  #startLanes(): void {
    const due = Math.min(availableParallelism() - this.#lanes.booting, this.#lanes.missing)
    for (let n = 0; n < due; n++) {
      const index = this.#lanes.slots.length
      const thread = this.#starter.start(index, 'regular')
      this.#lanes.slots.push(new LaneSlot(thread, this.#parts.processDeaths?.ofLane(index)))
    }
  }

  /** The threads that have not ended, in words. */
  get threadsNow(): string {
    return this.#lanes.all.map(({ index, state }) => `lane ${index} (${state})`).join(', ') || 'threads to end'
  }

  // ── watch ─────────────────────────────────────────────────────────────────

  #checkThreads(): void {
    const nowMs = steadyMs()
    this.#watcher.tick()
    this.#parts.flightMirror?.beginLook()
    this.coreShares.look(nowMs)
    this.#lookForDebugger()
    for (const thread of this.#lanes.all) this.#reportingFaults(thread, () => this.#check(thread, nowMs))
    if (!this.#lanes.isStopping) for (const onDemand of this.#lanes.onDemand) this.#checkOnDemand(onDemand, nowMs)
  }

  #lookForDebugger(): void {
    const wasDebugged = this.#isDebugged
    this.#isDebugged = isDebugged()
    if (wasDebugged && !this.#isDebugged) for (const { watchdog } of this.#lanes.all) watchdog.beginAnew()
  }

  #check(thread: LaneThread, nowMs: number): void {
    const { watchdog } = thread
    if (thread.state !== 'dead') thread.expire(nowMs)
    if (thread.isLost) return this.#checkLeaving(thread)
    if (watchdog.terminationReason !== null) return
    if (this.#isDebugged) thread.hold(this.#watcher.elapsedMs)
    const terminationReason = watchdog.check(nowMs, this.#watcher, this.#isDebugged)
    this.#parts.flightMirror?.look(thread, watchdog.stillMs)
    const { requests, sockets } = thread
    const isWornOut = requests.isWornOut(nowMs) || sockets.isWornOut(nowMs)
    if (thread.state === 'ready' && !thread.isWornOut && isWornOut) void this.#renew(thread)
    if (thread.state !== 'starting') {
      thread.responsive = watchdog.isResponsive
      if (thread.responsive) this.#replacement.onResponsive(thread)
      else this.#onStill(thread)
    } else if (terminationReason === null) this.slowBoot.look(thread)
    if (terminationReason !== null) void this.#terminate(thread, terminationReason)
  }

  /** Replaces a lane whose places, or room for messages, are held by handlers that do not settle. */
  async #renew(thread: LaneThread): Promise<void> {
    const slot = this.#lanes.slotOf(thread)
    if (slot.thread !== thread || this.#lanes.isStopping) return
    thread.isWornOut = true
    this.#registrar.wornOut(thread)
    if (slot.role !== 'regular') return this.#lanes.onDemandOf(slot.role)!.renew()
    const isReplaced = (): boolean => slot.thread !== thread || thread.isLost
    const { drained } = await this.#replacement.replace([slot], () =>
      isReplaced() ? 'nothing is to be replaced' : null,
    )
    await drained
  }

  /** Ends a lane whose handler has opened too many files, which closes them. If it is the only lane, another takes over first. */
  async endHolder(lane: Lane, holder: Holder): Promise<void> {
    const thread = this.#lanes.all.find((each) => each === lane)
    const isEnding = (): boolean => thread!.isLost || thread!.watchdog.terminationReason !== null
    if (thread === undefined || isEnding()) return
    thread.holder = holder
    if (thread.role === 'regular' && thread.state === 'ready' && this.#lanes.isLast(this.#lanes.slotOf(thread))) {
      await this.#replacement.relieve(thread)
    }
    if (!isEnding() && !this.#lanes.isStopping) await this.#terminate(thread, 'descriptors')
  }

  #checkLeaving(thread: LaneThread): void {
    const { abort, watchdog } = thread
    if (abort.signal.aborted || this.#isDebugged) return
    if (watchdog.checkLeaving(this.#watcher)) {
      // A pending native call of it may then crash the process.
      this.#registrar.log('WARNING', `Lane ${thread.index} does not leave: its thread is ended`)
      this.#parts.flightMirror?.noteForcedTermination(thread, thread.box)
      return abort.abort()
    }
    const isLate = watchdog.leavingMs > HANDS_OVER_MS && thread.requestsInFlight === 0
    if (thread.state === 'dying' && isLate) this.#onGone(thread, this.#giveUp(thread))
  }

  async #terminate(thread: LaneThread, reason: TerminationReason): Promise<void> {
    const outcome = await thread.watchdog.terminate(reason)
    if (thread.isLost || outcome === 'ended') return
    if (outcome === 'stuck') {
      const unfinished = this.#giveUp(thread)
      return this.#onDeath(thread, null, unfinished)
    }
    thread.post({ type: 'leave', isStopped: outcome === 'stopped' })
    this.dying(thread)
  }

  /** Reads what a blocked lane has written, moves work that it has not begun, and starts a standby in time. */
  #onStill(thread: LaneThread): void {
    thread.collect()
    this.#parts.dispatcher.rescue(thread)
    this.#replacement.onStill(thread)
    const { watchdog } = thread
    if (thread.role !== 'regular') return
    const others = this.#lanes.slots.filter(({ thread: { state, responsive } }) => state === 'ready' && responsive)
    const { ownMs, lastStack } = watchdog
    const afterMs = BLOCKED_MS[others.length] ?? Number.POSITIVE_INFINITY
    if (lastStack !== null && ownMs >= afterMs) this.#parts.isolation.blocked(thread, lastStack)
  }

  // ── death ─────────────────────────────────────────────────────────────────

  /** The lane has crashed. Another thread takes its slot at once; it finishes what it has and leaves. */
  dying(thread: LaneThread): void {
    const wasReady = thread.state === 'ready'
    if (this.#lanes.isStopping || !thread.become('dying')) return
    if (wasReady) {
      this.#parts.dispatcher.rescue(thread)
      thread.sockets.closeWhenIdle(...RESTART)
    }
    this.#lanes.outside.add(thread)
    const unfinished = { requests: thread.requests.list(), unreadDeliveries: new Set<number>() }
    this.#bury(thread, laneDeath(thread, null, unfinished, this.#parts.kernel.settings.laneMemoryMb))
  }

  /** Gives up all work in flight in a lane. Its thread ends by itself. */
  #giveUp(thread: LaneThread): UnfinishedWork {
    // Work that it has not begun must not come back to it.
    thread.become('draining')
    if (!this.#lanes.isStopping) this.#parts.dispatcher.rescue(thread)
    this.#lanes.outside.add(thread)
    const unfinished = thread.dispose()
    thread.children.end(thread.heartbeat.task)
    return unfinished
  }

  ended(thread: LaneThread, error: unknown): void {
    this.#lanes.outside.delete(thread)
    if (thread.state === 'dead') {
      this.#registrar.ended()
      return thread.children.end()
    }
    const wasTold =
      thread.abort.signal.aborted && thread.watchdog.terminationReason === null && !thread.flight.hasExitReport
    thread.responsive = false
    thread.become('draining')
    if (!this.#lanes.isStopping) this.#parts.dispatcher.rescue(thread)
    const unfinished = thread.dispose()
    thread.children.end()
    if (thread.box !== null) this.#onGone(thread, unfinished)
    else if (wasTold || this.#lanes.isStopping) this.#onLeft(thread, unfinished)
    else this.#onDeath(thread, error, unfinished)
  }

  #onLeft(thread: LaneThread, unfinished: UnfinishedWork): void {
    const slot = this.#lanes.slotOf(thread)
    if (slot.standby === thread) slot.standby = null
    this.#onGone(thread, unfinished)
    thread.bootEnded('it was ended')
  }

  #onDeath(thread: LaneThread, error: unknown, unfinished: UnfinishedWork): void {
    this.#bury(thread, laneDeath(thread, error, unfinished, this.#parts.kernel.settings.laneMemoryMb))
    this.#onGone(thread, unfinished)
  }

  #onGone(thread: LaneThread, unfinished: UnfinishedWork): void {
    this.#reportingFaults(thread, () => this.#registrar.gone(thread, unfinished, thread.box))
  }

  /** Reports the death of a lane, and starts another thread in its place. */
  #bury(thread: LaneThread, death: LaneDeath): void {
    const slot = this.#lanes.slotOf(thread)
    const box = this.#reportingFaults(thread, () => this.#registrar.died(thread, death))
    if (box !== undefined) {
      thread.box = box
      slot.deaths = [box, ...slot.deaths].slice(0, DEATHS_KEPT)
    }
    const isBetter = this.#starter.barred.laneDied(thread, death, box?.guilty?.line)
    thread.bootEnded(describeDeath(box ?? { message: death.message, guilty: null }))
    this.#replacement.died(thread, isBetter)
  }

  /** Reports faults in the rest of the primary, so that the supervisor goes on. */
  #reportingFaults<T>(lane: Lane, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      this.#registrar.onFault(lane, error)
      return undefined
    }
  }

  // ── lanes on demand ───────────────────────────────────────────────────────

  /** Starts a lane on demand when it is wanted, and ends it when it has not been for a while. */
  #checkOnDemand(onDemand: OnDemandLane, nowMs: number): void {
    const { index, role, slot, isWanted } = onDemand
    if (!isWanted) {
      if (onDemand.isOver(nowMs)) this.#drain(onDemand)
    } else if (role === 'probation' && !this.#lanes.areUp && !onDemand.isOverdue(nowMs)) return
    else if (slot === null) onDemand.slot = new LaneSlot(this.#starter.start(index, role))
    else if (slot.restartTimer === undefined) this.#replacement.restart(slot)
  }

  /** Ends a lane on demand when its work is finished. */
  #drain({ slot }: OnDemandLane): void {
    if (slot?.thread.state === 'ready') void this.#replacement.drain(slot.thread)
  }

  #renewOnDemand({ slot }: OnDemandLane): void {
    if (slot !== null && !slot.thread.isLost) this.#onLeft(slot.thread, this.#giveUp(slot.thread))
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /**
   * Replaces all lanes by threads that load the code anew. The old ones finish their work.
   * @throws when a new lane does not boot, or boots with fewer plugins: the lanes that were not replaced stay
   */
  async reload(): Promise<void> {
    await this.slowBoot.giveUp()
    await this.#replacement.reload(this.#parts.isDevelopment)
    for (const onDemand of this.#lanes.onDemand) this.#drain(onDemand)
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Stops all lanes: each runs its `onStop` and closes its tools. After the timeout they are given up. */
  async stop(timeoutMs: number): Promise<void> {
    this.#lanes.isStopping = true
    const onDemand = this.#lanes.onDemand.flatMap(({ slot }) => slot ?? [])
    for (const { restartTimer } of [...this.#lanes.slots, ...onDemand]) clearTimeout(restartTimer)
    const threads = this.#lanes.all
    for (const thread of threads) {
      const { abort } = thread
      if (thread.state === 'starting') abort.abort()
      else if (thread.become('draining')) thread.post({ type: 'drain' })
    }
    // A blocked lane cannot run onStop, and a leaving one has none to run.
    const isWaitedFor = ({ isLost, watchdog }: LaneThread): boolean =>
      !isLost && (this.#isDebugged || watchdog.ownMs < STOP_STALL_MS)
    let endMs = steadyMs() + timeoutMs
    await until(() => {
      if (this.#isDebugged) endMs = steadyMs() + timeoutMs
      return steadyMs() >= endMs || !threads.some(isWaitedFor)
    }, Number.POSITIVE_INFINITY)
    clearInterval(this.#checkTimer)
    this.#giveUpAll()
    await this.#destroyUnused()
  }

  /**
   * Gives up all work of the lanes.
   * @param time that the threads have to end
   * @returns how many have not ended by then, because native calls are pending
   */
  async abandon(time: ThreadsTime): Promise<number> {
    const { pool } = this.#starter
    this.#lanes.isStopping = true
    this.#giveUpAll()
    await time.until(() => pool.lanesRunning === 0)
    await this.#destroyUnused()
    await time.until(() => pool.threadsRunning === 0)
    return pool.threadsRunning
  }

  /** Lets the threads leave by themselves: terminating one during a native call aborts the process. */
  #giveUpAll(): void {
    for (const thread of this.#lanes.all) {
      const { watchdog, abort } = thread
      // The process may end before its thread has.
      if (thread.state === 'starting') thread.children.end(thread.heartbeat.task)
      if (thread.state === 'starting') abort.abort()
      else if (thread.state !== 'dead') this.#onLeft(thread, this.#giveUp(thread))
      if (!watchdog.isResponsive) void stopThread(thread.heartbeat.threadId)
    }
  }

  /** Ends prewarmed threads when no lane is left. */
  async #destroyUnused(): Promise<void> {
    if (this.#starter.pool.lanesRunning === 0) await this.#starter.pool.destroy()
  }
}
