// Whether a thread boots, turns and keeps within its memory; else it is ended.
import type { Settings } from '../../core/config/schema.ts'
import { isOfRuntime } from '../../core/errors/places.ts'
import { ThreadClock, type ThreadTimes, type Watcher } from '../../core/schedule/thread-clock.cjs'
import { ThreadsTime } from '../../core/schedule/waiting.ts'
import { memoryLimits } from '../../transport/memory/heartbeat.ts'
import type { Lane } from '../dispatch/lane.ts'
import { isInspected } from './debugger.ts'
import { isOfNode, type StackFrame, stackOf, stopThread } from './stack-probe.ts'

/** How often a watchdog checks its lane, milliseconds. */
export const CHECK_MS = 20
/** One check adds at most this much to a standstill: a pause of the primary or of the machine says nothing about the lanes. */
export const CHECK_MAX_MS = 2 * CHECK_MS
/** Each plugin has this long to load and boot; then its lane is ended. */
export const BOOT_TIMEOUT_MS = 30_000
/** A plugin that takes longer than this to boot holds up no other. A loop has to have had so much of a core. */
const SLOW_BOOT_MS = 1000
/** A thread that blocks may wait for a lock or a disk: it has this many times longer. */
const SLOW_BLOCKED_FACTOR = 3
/** A loop of a boot is ended after LANE_STALL_MS, and not before this: to load modules takes one turn of the loop, milliseconds. */
const BOOT_STALL_MIN_MS = 3000
/** A lane whose heartbeat stands still this long gets no new work, and loses the work that it has not begun. */
const UNRESPONSIVE_MS = 50
/** When a heartbeat stands still this long, the stack of the thread is taken, before it is known whether the thread will go on. */
const PROBE_MS = 200
/** A thread that stands still for longer after it was told to stop is inside a native call. One that fills its heap may collect garbage for seconds first. */
const STOP_MS = 1000
const STOP_COLLECTING_MS = 5000
/** How often it checks whether that own time of the thread is over, milliseconds. */
const STOP_LOOK_MS = 200
/** A stack is taken at most this often from one lane, milliseconds: taking it disturbs the thread a little. */
const PROBE_PAUSE_MS = 5_000
/** A boot that runs is asked for its stack for this long: on a busy machine it has no core to stop with. */
const BUSY_STACK_MAX_MS = 5_000
/** The process may grow by this many times a lane's memory while that lane stands still. */
export const STANDSTILL_GROWTH = 2
/** The process may grow by this much more while a lane boots, MiB: for all that lanes load which boot beside it, and for the primary itself. */
const BOOT_LANE_MB = 128
const BOOT_ROOM_MB = 1024
const MIB = 1 << 20
/** What stands still in a lane that leaves is stopped after this, milliseconds: all that is worth waiting for turns the loop. */
const LEAVING_STALL_MS = 200
/** A lane that leaves may take this many times its memory: what is under way in it goes on. One that has more keeps it, and has `FULL_MS` of the threads' own time for its native calls, unless it takes more still. */
const LEAVING_GROWTH = 1.5
const FULL_GROWTH = 0.5
const FULL_MS = 2000
/** A lane that leaves has this long, milliseconds; SHUTDOWN_TIMEOUT_MS more where it runs `onStop` first. */
const LEAVING_MAX_MS = 120_000
/** It is told to leave again so often: a stop may have taken along what does it there, milliseconds. */
const LEAVE_AGAIN_MS = 1000
/** A loop that has not turned since it was to be stopped so often does not end. */
const STOPS_MAX = 12

/** Why a thread is ended from outside. */
export type TerminationReason = 'stalled' | 'memory' | 'descriptors' | 'boot'

/**
 * What has become of a thread that was to end: it was ended; its loop turns, so it can leave, perhaps since
 * what ran there was stopped; or it is inside a native call, and is stopped when that is over.
 */
export type Outcome = 'ended' | 'turning' | 'stopped' | 'stuck'

/** Of the process, and what threads other than the lane's have of it by their own figures. */
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

/** Watches the thread of one lane from the primary: its boot, its heartbeat and its memory. It ends a thread that hangs or takes too much. */
export class Watchdog {
  /** Why the thread is being ended; null while it may go on. */
  terminationReason: TerminationReason | null = null
  /** Why the lane did not boot, where that is known and is not the time that a plugin took. */
  bootFault: string | null = null
  /** Where the thread stood, and its CPU time, when it was ended. A thread that is gone cannot be asked. */
  stack: StackFrame[] | null = null
  cpuMs: number | null = null
  cpuMsWhileStill: number | null = null
  readonly #lane: Lane
  readonly #options: WatchdogOptions
  /** Own time for which the current plugin has been booting. */
  #bootingMs = 0
  /** CPU time of the thread when it began to boot the current plugin. */
  #cpuMsAtPlugin: number | null = null
  /** Whose turn it was when the boot was asked for its stack; null before, 0 when its loop has turned since. */
  #askedTurn: number | null = null
  /** It has begun to boot one. */
  #hasPlugin = false
  readonly #atBirth: Memory | null
  #seenBeats = -1
  /** How long the heartbeat has stood still while this thread was looking. */
  stillMs = 0
  readonly #clock: ThreadClock
  /** Own time of the thread since its heartbeat stands still. */
  ownMs = 0
  #cpuMsStill: number | null = null
  #atStandstill: Memory | null = null
  #probe: Promise<StackFrame[] | null> | null = null
  #probedMs = 0
  /** Where the thread stood early in its present standstill; null when it does not stand still, or its stack could not be taken. */
  lastStack: StackFrame[] | null = null
  #isLeaving = false
  /** For how long it has been leaving: its own time where it stands still. */
  leavingMs = 0
  /** Its time while it is full; null while it is not. */
  #fullTime: ThreadsTime | null = null
  #growthWhenFull = 0
  /** Since its loop has turned last. */
  #stops = 0
  #isStopping = false

  constructor(lane: Lane, options: WatchdogOptions) {
    this.#lane = lane
    this.#options = options
    this.#clock = new ThreadClock(() => lane.heartbeat.times() ?? options.startingTimes())
    this.#atBirth = this.#memory()
  }

  /** True while the lane's loop turns. */
  get isResponsive(): boolean {
    return this.stillMs < UNRESPONSIVE_MS
  }

  /** A debugger that may have held the lane is gone. */
  beginAnew(): void {
    this.ownMs = 0
    this.#bootingMs = 0
  }

  /** The lane begins to boot its next plugin. */
  pluginBoots(): void {
    this.#bootingMs = 0
    this.#turned()
    this.#askedTurn = null
    this.#hasPlugin = true
    this.#cpuMsAtPlugin = this.#lane.heartbeat.cpuMs
  }

  /** The number of the plugin whose code has its turn in a boot, or had the last one; 0 where that is not known, and for the runtime's own. */
  get turn(): number {
    if (this.#askedTurn !== null) return this.#askedTurn
    const { turn, pluginTurn } = this.#lane.heartbeat
    return turn === 0 && this.isResponsive ? pluginTurn : turn
  }

  /** True while the lane has been booting one plugin for so long that others should not wait for it. */
  get isBootSlow(): boolean {
    if (this.#bootingMs < SLOW_BOOT_MS) return false
    if (this.isResponsive || this.#bootingMs >= SLOW_BLOCKED_FACTOR * SLOW_BOOT_MS) return true
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
      // Its code runs no more, but the thread may wait for native work to end.
      if (this.#lane.flight.hasExitReport) this.#options.abort.abort()
      return this.#checkBoot(watcher, isDebugged)
    }
    const { beats } = this.#lane.heartbeat
    if (beats === this.#seenBeats) return this.#checkStandstill(nowMs, watcher, isDebugged)
    this.#endStandstill()
    return this.#checkMemory()
  }

  /** Takes the stack and stops what runs, so that the thread can leave; one that boots is ended. */
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
    // It has gone on just before, and what was stopped is something else. Asked while it stands: a moment later it beats again.
    let isLate = false
    const onStop = (): void => {
      isLate = heartbeat.beats !== this.#seenBeats
    }
    const stopMs = reason === 'memory' ? STOP_COLLECTING_MS : STOP_MS
    const stop = () => this.#stop(stopMs, onStop)
    let stopped = await stop()
    const endMs = performance.now() + BUSY_STACK_MAX_MS
    // Nothing was stopped, and it is not known yet whose loop it is: whoever is in flight alone need not have to do with it.
    while (stopped !== null && isOfNode(stopped) && !isLate && performance.now() < endMs)
      stopped = (await stop()) ?? stopped
    this.cpuMs = heartbeat.cpuMs
    if (stopped === null) isLate = heartbeat.beats !== this.#seenBeats
    this.stack = (isLate ? null : stopped) ?? (await earlier)
    if (stopped !== null) return 'stopped'
    return isLate ? 'turning' : 'stuck'
  }

  /**
   * Stops what runs in the thread. One that waits for a core is not inside a native call.
   * @param ownMs of the thread's own time; after that it is inside one
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
      // Answered before its time: the thread is gone, or cannot be asked.
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
   * Checks a lane that leaves, in place of `check`: what stands still there is stopped, again and again.
   * @returns true when it has to be ended, though that may cost the process
   */
  checkLeaving(watcher: Watcher): boolean {
    const { heapBytes, externalBytes, beats } = this.#lane.heartbeat
    // The standstill that ended it is over: else the next stop would hit what has waited behind it.
    if (!this.#isLeaving) this.#turned()
    this.#isLeaving = true
    if (beats !== this.#seenBeats) this.#stops = 0
    const leavingMs = this.leavingMs
    this.leavingMs += this.#look(watcher)
    if (Math.floor(leavingMs / LEAVE_AGAIN_MS) < Math.floor(this.leavingMs / LEAVE_AGAIN_MS))
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
    if (!isFull) this.#fullTime = null
    else this.#fullTime ??= new ThreadsTime(FULL_MS)
    const isHopeless = this.#stops > STOPS_MAX || this.leavingMs > LEAVING_MAX_MS
    return isHopeless || growth > this.#growthWhenFull + FULL_GROWTH || this.#fullTime?.look() === true
  }

  /** Each plugin has its time, and a loop that does not end the time of any loop. */
  #checkBoot(watcher: Watcher, isDebugged: boolean): TerminationReason | null {
    this.#bootingMs += this.#look(watcher)
    const stallMs = Math.max(BOOT_STALL_MIN_MS, this.#options.settings.laneStallMs)
    if (isDebugged) {
      this.ownMs = Math.min(this.ownMs, stallMs)
      this.#bootingMs = Math.min(this.#bootingMs, BOOT_TIMEOUT_MS)
    }
    // Before the first plugin there is nothing that loops: the runtime loads, on a slow machine for seconds.
    if (this.#hasPlugin && this.ownMs > stallMs)
      this.bootFault ??= `its loop stood still for ${Math.round(this.ownMs)} ms while it booted`
    this.bootFault ??= this.#bootMemoryFault()
    return this.bootFault !== null || this.#bootingMs > BOOT_TIMEOUT_MS ? 'boot' : null
  }

  /** Looks whether the loop turns. @returns how much of the time was the thread's own; of a thread that turns, all of it */
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
    if (this.#bytesGrownSince(this.#atBirth) <= limitMb * MIB) return null
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
    if (wasResponsive) this.#atStandstill = this.#memory()
    // A standby may still help.
    if (isDebugged) this.ownMs = Math.min(this.ownMs, laneStallMs / 2)
    else this.#probeStack(nowMs)
    if (this.ownMs >= laneStallMs) return 'stalled'
    // The lane's own figures are out of date: it has no turn to write them in.
    return this.#bytesGrownSince(this.#atStandstill) > STANDSTILL_GROWTH * laneMemoryMb * MIB ? 'memory' : null
  }

  /** Takes the stack once per standstill, as soon as that is long enough. A thread that a debugger has left at a breakpoint goes on with it. */
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
    // It has gone on meanwhile, and stands elsewhere.
    return (heartbeat.beats === beats ? now : null) ?? (await earlier)
  }

  /** How much more memory the lane has than before, as far as it can be told from outside; 0 when that is not known. What a thread had that has ended since may be the process's for a while still. */
  #bytesGrownSince(before: Memory | null): number {
    const now = this.#memory()
    if (now === null || before === null) return 0
    return now.processBytes - before.processBytes - Math.max(0, now.otherBytes - before.otherBytes)
  }

  /** Null when the system does not tell. */
  #memory(): Memory | null {
    try {
      return { processBytes: process.memoryUsage.rss(), otherBytes: this.#options.otherThreadsBytes() }
    } catch {
      // No file descriptor is left to ask with.
      return null
    }
  }
}
