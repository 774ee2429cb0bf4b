// Watches the boot, the event loop and the memory of one lane.
import type { Settings } from '../../core/config/schema.ts'
import { isOfRuntime, type StackFrame } from '../../core/errors/places.ts'
import { ThreadClock, type ThreadTimes, type Watcher } from '../../core/schedule/thread-clock.cjs'
import { ThreadsTime } from '../../core/schedule/waiting.ts'
import { memoryLimits } from '../../transport/memory/heartbeat.ts'
import type { Lane } from '../dispatch/lane.ts'
import { isInspected } from './debugger.ts'
import { isOfNode, stackOf, stopThread } from './stack-probe.ts'

/** How often a watchdog checks its lane, milliseconds. */
export const CHECK_MS = 20
/** Most that one check adds to a standstill, milliseconds: a pause of the primary says nothing about its lanes. */
export const CHECK_MAX_MS = 2 * CHECK_MS
/** Time limit for loading and booting one plugin, milliseconds. */
export const BOOT_TIMEOUT_MS = 30_000
/** After this time of booting one plugin the others serve without it, milliseconds. A loop must have used as much CPU. */
const SLOW_BOOT_MS = 1000
/** Factor for a boot that blocks: it may wait for a lock or a disk. */
const SLOW_BLOCKED_FACTOR = 3
/** Minimum of LANE_STALL_MS during a boot, milliseconds: modules load in one turn of the loop. */
const BOOT_STALL_MIN_MS = 3000
/** A lane is unresponsive when its heartbeat has stopped for this long, milliseconds. It gets no new work. */
const UNRESPONSIVE_MS = 50
/** After this much own time without a heartbeat the stack is taken, milliseconds. */
const PROBE_MS = 200
/** A thread that has not stopped after this much own time is inside a native call, milliseconds. With a full heap it may collect garbage first. */
const STOP_MS = 1000
const STOP_COLLECTING_MS = 5000
/** How often that own time is checked, milliseconds. */
const STOP_LOOK_MS = 200
/** Minimum time between two stacks of one lane, milliseconds: taking one disturbs the thread. */
const PROBE_PAUSE_MS = 5_000
/** How long a running boot is asked for its stack, milliseconds: on a busy machine it has no core to stop with. */
const BUSY_STACK_MAX_MS = 5_000
/** Maximum growth of the process while a lane stands still, as a multiple of the lane's memory. */
export const STANDSTILL_GROWTH = 2
/** Added to that while a lane boots, MiB: for each lane that boots beside it, and for the primary. */
const BOOT_LANE_MB = 128
const BOOT_ROOM_MB = 1024
const MIB = 1 << 20
/** A blocked loop of a leaving lane is stopped after this much own time, milliseconds. */
const LEAVING_STALL_MS = 200
/** Memory limit of a leaving lane, as a multiple of its own. Above it the lane has FULL_MS of own time, unless it grows by FULL_GROWTH more. */
const LEAVING_GROWTH = 1.5
const FULL_GROWTH = 0.5
const FULL_MS = 2000
/** Time limit of a leaving lane, milliseconds. */
const LEAVING_MAX_MS = 120_000
/** How often a lane is told again to leave, milliseconds: a stop may have hit the code that does it. */
const LEAVE_AGAIN_MS = 1000
/** Stops without a turn of the loop after which it is hopeless. */
const STOPS_MAX = 12

/** Why a thread is ended from outside. */
export type TerminationReason = 'stalled' | 'memory' | 'descriptors' | 'boot'

/**
 * What has become of a thread that was to end: it was ended; its loop turns, so it can leave, perhaps since
 * what ran there was stopped; or it is inside a native call, and is stopped when that is over.
 */
export type Outcome = 'ended' | 'turning' | 'stopped' | 'stuck'

/** Memory of the process, and what all other threads report of it. */
interface Memory {
  processBytes: number
  otherBytes: number
}

export interface Standstill {
  stillMs: number
  /** Null when the stack could not be taken. */
  stack: StackFrame[] | null
}

export interface WatchdogOptions {
  settings: Settings
  /** Ends the thread. */
  abort: AbortController
  /** Times of the threads of which nobody knows which lane's they are, taken together: a lane's thread is among them until it has begun. */
  startingTimes: () => ThreadTimes | null
  /** Bytes that all other threads use, by their own figures. */
  otherThreadsBytes: () => number
  /** The lane goes on after it stood still for so long that its stack was taken. */
  onRecovered: (standstill: Standstill) => void
}

const namesNobody = (stack: readonly StackFrame[] | null): boolean =>
  stack?.every(({ file }) => file.startsWith('node:') || isOfRuntime(file)) === true

/** Watches the thread of one lane from the primary, and stops it when it hangs or takes too much memory. */
export class Watchdog {
  /** Why the thread is being ended; null while it may go on. */
  terminationReason: TerminationReason | null = null
  /** Why the lane did not boot; null while that is unknown, and when a plugin took too long. */
  bootFault: string | null = null
  /** Stack and CPU time of the thread when it was stopped. */
  stack: StackFrame[] | null = null
  cpuMs: number | null = null
  cpuMsWhileStill: number | null = null
  readonly #lane: Lane
  readonly #options: WatchdogOptions
  /** Own time of the boot of the current plugin, later since it is leaving: all of the time for which its loop turns. */
  #phaseMs = 0
  /** CPU time of the thread when it began to boot the current plugin. */
  #cpuMsAtPlugin: number | null = null
  /** Number of the plugin that was booting when the stack was taken; null before, 0 once the loop has turned since. */
  #askedTurn: number | null = null
  /** It has begun to boot one. */
  #hasPlugin = false
  /** Before its thread began, later before its loop stood still. */
  #memoryBefore: Memory | null
  #seenBeats = -1
  /** How long the heartbeat has been stopped, as far as the primary was awake, milliseconds. */
  stillMs = 0
  readonly #clock: ThreadClock
  /** Own time of the thread since then. */
  ownMs = 0
  #cpuMsStill: number | null = null
  #probe: Promise<StackFrame[] | null> | null = null
  #probedMs = 0
  /** Stack early in the current standstill; null when there is none. */
  lastStack: StackFrame[] | null = null
  #isLeaving = false
  /** Own time since it exceeded its memory; null while it does not. */
  #fullTime: ThreadsTime | null = null
  #growthWhenFull = 0
  /** Stops since its loop turned last. */
  #stops = 0
  #isStopping = false

  constructor(lane: Lane, options: WatchdogOptions) {
    this.#lane = lane
    this.#options = options
    this.#clock = new ThreadClock(() => lane.heartbeat.times() ?? options.startingTimes())
    this.#memoryBefore = this.#memory()
  }

  /** True while the lane's loop turns. */
  get isResponsive(): boolean {
    return this.stillMs < UNRESPONSIVE_MS
  }

  /** How long it has been leaving, milliseconds. */
  get leavingMs(): number {
    return this.#isLeaving ? this.#phaseMs : 0
  }

  /** A debugger that may have held the lane is gone. */
  beginAnew(): void {
    this.ownMs = 0
    this.#phaseMs = 0
  }

  /** The lane begins to boot its next plugin. */
  pluginBoots(): void {
    this.#phaseMs = 0
    this.#turned()
    this.#askedTurn = null
    this.#hasPlugin = true
    this.#cpuMsAtPlugin = this.#lane.heartbeat.cpuMs
  }

  /** Number of the plugin whose code runs in the boot, or ran last; 0 when unknown, and for the runtime. */
  get turn(): number {
    if (this.#askedTurn !== null) return this.#askedTurn
    const { turn, pluginTurn } = this.#lane.heartbeat
    return turn === 0 && this.isResponsive ? pluginTurn : turn
  }

  /** True when others should no longer wait for the plugin that is booting. */
  get isBootSlow(): boolean {
    if (this.#phaseMs < SLOW_BOOT_MS) return false
    if (this.isResponsive || this.#phaseMs >= SLOW_BLOCKED_FACTOR * SLOW_BOOT_MS) return true
    const { cpuMs } = this.#lane.heartbeat
    return cpuMs === null || this.#cpuMsAtPlugin === null || cpuMs - this.#cpuMsAtPlugin >= SLOW_BOOT_MS
  }

  /** The lane has said that it cannot boot. */
  bootFailed(fault: string): void {
    this.bootFault = fault
    this.terminationReason = 'boot'
    this.#options.abort.abort()
  }

  /**
   * Checks the lane. Called every CHECK_MS.
   * @param isDebugged a debugger may hold the lane: it has no time limit
   * @returns why the thread has to be ended (`terminate`), or null
   */
  check(nowMs: number, watcher: Watcher, isDebugged: boolean): TerminationReason | null {
    if (this.#lane.state === 'starting') {
      // Its code has ended, but the thread may wait for native work.
      if (this.#lane.flight.hasExitReport) this.#options.abort.abort()
      return this.#checkBoot(watcher, isDebugged)
    }
    const { beats } = this.#lane.heartbeat
    if (beats === this.#seenBeats) return this.#checkStandstill(nowMs, watcher, isDebugged)
    this.#endStandstill()
    return this.#checkMemory()
  }

  /** Takes the stack and stops what runs, so that the thread can leave. A booting thread is terminated. */
  async terminate(reason: TerminationReason): Promise<Outcome> {
    this.terminationReason = reason
    this.cpuMsWhileStill = this.#cpuMsStill
    if (reason === 'boot') {
      this.stack = await this.bootStack()
      this.cpuMs = this.#lane.heartbeat.cpuMs
      this.#options.abort.abort()
      return 'ended'
    }
    if (this.isResponsive) return 'turning'
    const earlier = this.#probe
    const { heartbeat } = this.#lane
    // True if the loop turned just before the stop, which then hit other code. Read while the thread is paused.
    let isLate = false
    const onStop = (): void => {
      isLate = heartbeat.beats !== this.#seenBeats
    }
    const stopMs = reason === 'memory' ? STOP_COLLECTING_MS : STOP_MS
    const stop = () => this.#stop(stopMs, onStop)
    let stopped = await stop()
    const endMs = performance.now() + BUSY_STACK_MAX_MS
    // Only Node's code was on the stack, so nothing was stopped and nobody is known: ask again.
    while (stopped !== null && isOfNode(stopped) && !isLate && performance.now() < endMs)
      stopped = (await stop()) ?? stopped
    this.cpuMs = heartbeat.cpuMs
    if (stopped === null) isLate = heartbeat.beats !== this.#seenBeats
    this.stack = (isLate ? null : stopped) ?? (await earlier)
    if (stopped !== null) return 'stopped'
    return isLate ? 'turning' : 'stuck'
  }

  /**
   * Stops what runs in the thread.
   * @param ownMs own time after which the thread must be inside a native call
   * @returns as `stopThread`
   */
  async #stop(ownMs: number, onStop: () => void): Promise<StackFrame[] | null> {
    const { heartbeat } = this.#lane
    const clock = new ThreadClock(() => heartbeat.times())
    clock.pass(0)
    for (;;) {
      const startedMs = performance.now()
      const stack = await stopThread(heartbeat.threadId, STOP_LOOK_MS, onStop)
      const passedMs = performance.now() - startedMs
      // Answered early: the thread is gone, or cannot be asked.
      const isGone = passedMs < STOP_LOOK_MS / 2
      clock.pass(passedMs)
      if (stack !== null || isGone || clock.ms >= ownMs) return stack
    }
  }

  /** Where a boot stands now, or stood when it was last asked; null when that is not known. A loop of ticks or promises stands between two turns most times, which names nobody. */
  async bootStack(): Promise<StackFrame[] | null> {
    this.#askedTurn ??= this.#lane.heartbeat.askTurn()
    const endMs = performance.now() + BUSY_STACK_MAX_MS
    let stack = await this.#takeStack()
    while (namesNobody(stack) && performance.now() < endMs) stack = await this.#takeStack()
    return stack
  }

  /**
   * Checks a leaving lane, in place of `check`, and stops its loop whenever it blocks.
   * @returns true when the thread has to be terminated, though that may crash the process
   */
  checkLeaving(watcher: Watcher): boolean {
    const { heapBytes, externalBytes, beats } = this.#lane.heartbeat
    // A new count: the next stop must not hit what waited behind the code that was stopped.
    if (!this.#isLeaving) {
      this.#turned()
      this.#phaseMs = 0
    }
    this.#isLeaving = true
    if (beats !== this.#seenBeats) this.#stops = 0
    const leavingMs = this.#phaseMs
    this.#phaseMs += this.#look(watcher)
    if (Math.floor(leavingMs / LEAVE_AGAIN_MS) < Math.floor(this.#phaseMs / LEAVE_AGAIN_MS))
      this.#lane.post({ type: 'leave', isStopped: false })
    if (this.ownMs >= LEAVING_STALL_MS && !this.#isStopping) {
      this.#isStopping = true
      this.#stops++
      void stopThread(this.#lane.heartbeat.threadId).then((stack) => {
        this.#isStopping = false
        this.#turned()
        if (stack !== null) this.#lane.post({ type: 'leave', isStopped: true })
      })
    }
    const limits = memoryLimits(this.#options.settings.laneMemoryMb)
    const growth = Math.max(heapBytes / limits.heapBytes, externalBytes / limits.externalBytes)
    const isFull = growth > LEAVING_GROWTH
    if (!isFull || this.#fullTime === null) this.#growthWhenFull = growth
    this.#fullTime = isFull ? (this.#fullTime ?? new ThreadsTime(FULL_MS)) : null
    const isHopeless = this.#stops > STOPS_MAX || this.#phaseMs > LEAVING_MAX_MS
    return isHopeless || growth > this.#growthWhenFull + FULL_GROWTH || this.#fullTime?.look() === true
  }

  #checkBoot(watcher: Watcher, isDebugged: boolean): TerminationReason | null {
    this.#phaseMs += this.#look(watcher)
    const stallMs = Math.max(BOOT_STALL_MIN_MS, this.#options.settings.laneStallMs)
    if (isDebugged) {
      this.ownMs = Math.min(this.ownMs, stallMs)
      this.#phaseMs = Math.min(this.#phaseMs, BOOT_TIMEOUT_MS)
    }
    // Before the first plugin the runtime loads, for seconds on a slow machine.
    if (this.#hasPlugin && this.ownMs > stallMs)
      this.bootFault ??= `its loop stood still for ${Math.round(this.ownMs)} ms while it booted`
    this.bootFault ??= this.#bootMemoryFault()
    return this.bootFault !== null || this.#phaseMs > BOOT_TIMEOUT_MS ? 'boot' : null
  }

  /** Checks whether the loop turns. @returns own time since the last check; all of it if the loop turns */
  #look(watcher: Watcher): number {
    const hasTurned = this.#lane.heartbeat.beats !== this.#seenBeats
    if (hasTurned) this.#turned()
    else this.stillMs += Math.min(watcher.elapsedMs, CHECK_MAX_MS)
    const isBooting = this.#lane.state === 'starting'
    if (this.isResponsive && !isBooting) return watcher.awakeMs
    const usedMs = this.#clock.cpuMs
    const ownMs = this.#clock.pass(watcher.awakeMs)
    if (!this.isResponsive) {
      this.ownMs += ownMs
      if (this.#clock.cpuMs !== null) this.#cpuMsStill = (this.#cpuMsStill ?? 0) + this.#clock.cpuMs - (usedMs ?? 0)
    }
    return ownMs
  }

  #turned(): void {
    this.#seenBeats = this.#lane.heartbeat.beats
    this.stillMs = 0
    this.ownMs = 0
    this.#cpuMsStill = null
    if (this.#askedTurn !== null) this.#askedTurn = 0
    if (this.#lane.state !== 'starting') this.#clock.reset()
  }

  #bootMemoryFault(): string | null {
    const { lanes, laneMemoryMb } = this.#options.settings
    const limitMb = STANDSTILL_GROWTH * laneMemoryMb + BOOT_ROOM_MB + lanes * BOOT_LANE_MB
    if (this.#bytesGrown <= limitMb * MIB) return null
    return `the process grew by more than ${limitMb} MiB while it booted`
  }

  #checkMemory(): TerminationReason | null {
    const { heartbeat } = this.#lane
    const { heapBytes, externalBytes } = memoryLimits(this.#options.settings.laneMemoryMb)
    return heartbeat.heapBytes > heapBytes || heartbeat.externalBytes > externalBytes ? 'memory' : null
  }

  #checkStandstill(nowMs: number, watcher: Watcher, isDebugged: boolean): TerminationReason | null {
    const { laneMemoryMb, laneStallMs } = this.#options.settings
    const wasResponsive = this.isResponsive
    this.#look(watcher)
    if (this.isResponsive) return null
    if (wasResponsive) this.#memoryBefore = this.#memory()
    // A standby may still help.
    if (isDebugged) this.ownMs = Math.min(this.ownMs, laneStallMs / 2)
    else this.#probeStack(nowMs)
    if (this.ownMs >= laneStallMs) return 'stalled'
    // The lane cannot report its memory while its loop is blocked.
    return this.#bytesGrown > STANDSTILL_GROWTH * laneMemoryMb * MIB ? 'memory' : null
  }

  /** Takes the stack once per standstill. This also resumes a thread that a debugger has left at a breakpoint. */
  #probeStack(nowMs: number): void {
    const pauseMs = isInspected() ? 0 : PROBE_PAUSE_MS
    const isDue = this.ownMs >= PROBE_MS && this.#probe === null && nowMs - this.#probedMs > pauseMs
    if (!isDue) return
    this.#probedMs = nowMs
    const probe = stackOf(this.#lane.heartbeat.threadId)
    this.#probe = probe
    void probe.then((stack) => {
      if (this.#probe === probe) this.lastStack = stack
    })
  }

  #endStandstill(): void {
    const probe = this.#probe
    const stillMs = this.stillMs
    this.#turned()
    this.#probe = null
    this.lastStack = null
    if (probe !== null) void probe.then((stack) => this.#options.onRecovered({ stillMs, stack }))
  }

  async #takeStack(): Promise<StackFrame[] | null> {
    const { heartbeat } = this.#lane
    const earlier = this.#probe
    const mayAsk = heartbeat.threadId !== 0 && !this.isResponsive && !this.#lane.flight.hasExitReport
    const timeoutMs = heartbeat.times()?.state === 'R' ? BUSY_STACK_MAX_MS : undefined
    const { beats } = heartbeat
    const now = mayAsk ? await stackOf(heartbeat.threadId, timeoutMs) : null
    // If the loop has turned meanwhile, this is another standstill.
    return (heartbeat.beats === beats ? now : null) ?? (await earlier)
  }

  /** How much the lane has grown, as seen from outside; 0 when unknown. Memory of a thread that has ended since may still belong to the process. */
  get #bytesGrown(): number {
    const before = this.#memoryBefore
    const now = this.#memory()
    if (now === null || before === null) return 0
    return now.processBytes - before.processBytes - Math.max(0, now.otherBytes - before.otherBytes)
  }

  /** Null when the system does not report it. */
  #memory(): Memory | null {
    try {
      return { processBytes: process.memoryUsage.rss(), otherBytes: this.#options.otherThreadsBytes() }
    } catch {
      // No file descriptor is left to ask with.
      return null
    }
  }
}
