import { getHeapStatistics } from 'node:v8'
import type { HistoryInit } from '../../contracts/requests.ts'
import type { TracingInit } from '../../contracts/tracing.ts'
import { publicVariables } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { letGo } from '../../transport/memory/garbage.ts'
import { LANE_PROTOCOL, type LaneInit, type SharedMemories, type ToPrimary } from '../../transport/messages.ts'
import { Lane, type LaneListener, type LaneRole } from '../dispatch/lane.ts'
import { descriptorsOfPlugins } from '../http/connection-limit.ts'
import { BarredPlugins } from './barred-plugins.ts'
import type { FlightMirror } from './flight-mirror.ts'
import { LanePool } from './lane-pool.ts'
import { LaneThread } from './lane-thread.ts'
import { type Standstill, Watchdog } from './watchdog.ts'

/** A lane that takes over in a reload looks on at what its boot has begun for this long at most, milliseconds. */
const AFTERMATH_MS = 2000
/** The same where somebody waits: for the start of the service, or for a change in development. */
const AFTERMATH_AWAITED_MS = 500

/** Where the spans of the lanes go. */
export interface LaneTracing {
  laneInit(index: number): TracingInit
  /** The lane's thread has ended. The spans that it has left are still exported. */
  laneGone(init: TracingInit): void
}

/** Where what the lanes record goes. */
export interface LaneHistory {
  laneInit(index: number): HistoryInit
  /** The lane's thread has ended. What it has recorded is still kept. */
  laneGone(init: HistoryInit): void
}

export interface StarterOptions {
  settings: Settings
  shared: SharedMemories
  /** Threads are started ahead of the lanes that will need them. */
  isPrewarmed: boolean
  /** Null while tracing is off. */
  tracing: () => LaneTracing | null
  /** Null where no history is kept. */
  history: () => LaneHistory | null
  /** Plugins that are not booted from the first thread on, by file, each with the reason. */
  barred: Record<string, string>
  /** Null without a guardian, which alone would read it. */
  flightMirror: FlightMirror | null
  /** Told everything that a lane says, except for its boot and its end. */
  listener: LaneListener
  /** Every lane whose thread runs, or is about to. */
  all: () => readonly Lane[]
  /** A lane has booted, and no replacement waits for it. */
  onBooted: (lane: Lane) => void
  onRecovered: (lane: Lane, standstill: Standstill) => void
  /** A debugger holds a lane. */
  onHeld: (lane: Lane) => void
  /** Something in the lane ends it. */
  onDying: (thread: LaneThread) => void
  /** A debugger that is gone has held a lane, which goes on. */
  onForsaken: (lane: Lane) => void
  /** The thread has ended. @param error null when it ended by itself */
  onEnd: (thread: LaneThread, error: unknown) => void
  log: (message: string, fields?: Record<string, unknown>) => void
}

/** Starts the threads of the lanes with the current generation of the code, and follows each until it has booted. */
export class LaneStarter {
  readonly #options: StarterOptions
  readonly #pool: LanePool
  readonly barred: BarredPlugins
  #generation = 0
  /** A lane of this generation has lived through what its plugins have begun in their boot. */
  #isProved = false

  constructor(options: StarterOptions) {
    this.#options = options
    this.barred = new BarredPlugins(options.barred)
    this.#pool = new LanePool(options.settings, options.isPrewarmed, (error) =>
      options.log(`Lane pool: ${messageOf(error)}`),
    )
  }

  /** @param isTrial with the plugins that lanes do not wait for */
  start(index: number, role: LaneRole, isTrial = false): LaneThread {
    const { settings, shared, tracing, history, flightMirror, listener, onEnd } = this.#options
    const lane: Lane = new Lane({
      index,
      role,
      generation: this.#generation,
      maxInFlight: settings.laneMaxInflight,
      listener: { ...listener, onMessage: (_, message) => this.#onMessage(thread, message) },
    })
    const abort = new AbortController()
    const { reasons: barred } = this.barred
    const waiting = isTrial ? [] : [...this.barred.waiting]
    const without = new Set([...Object.keys(barred), ...waiting])
    const thread = new LaneThread(lane, this.#watchdogOf(lane, abort), abort, without)
    const { port, bulk, ...memory } = lane.threadSide
    const spans = tracing()?.laneInit(index) ?? null
    const records = history()?.laneInit(index) ?? null
    const init: LaneInit = {
      protocol: LANE_PROTOCOL,
      index,
      settings,
      variables: publicVariables(),
      port,
      bulk,
      ...memory,
      flightFile: flightMirror?.begin(lane, memory.flight) ?? null,
      shared,
      tracing: spans,
      history: records,
      barred,
      waiting,
      aftermathMs: this.#aftermathMs,
      descriptors: descriptorsOfPlugins(),
    }
    const ended = (error: unknown): void => {
      letGo(...Object.values(memory))
      if (spans !== null) tracing()?.laneGone(spans)
      if (records !== null) history()?.laneGone(records)
      flightMirror?.end(lane)
      onEnd(thread, error)
    }
    thread.ended = this.#pool.run(init, [port, bulk], abort.signal).then(() => ended(null), ended)
    return thread
  }

  #watchdogOf(lane: Lane, abort: AbortController): Watchdog {
    return new Watchdog(lane, {
      settings: this.#options.settings,
      abort,
      otherThreadsBytes: () => this.#bytesBeside(lane),
      isQuiet: () => this.#isQuiet(),
      onRecovered: (standstill) => this.#options.onRecovered(lane, standstill),
      onHeld: () => this.#options.onHeld(lane),
      onForsaken: () => this.#options.onForsaken(lane),
    })
  }

  /** Bytes that all threads except one use, by their own figures. */
  #bytesBeside(lane: Lane): number {
    const { total_heap_size, external_memory } = getHeapStatistics()
    let bytes = total_heap_size + external_memory
    for (const other of this.#options.all()) {
      if (other !== lane) bytes += other.heartbeat.heapBytes + other.heartbeat.externalBytes
    }
    return bytes
  }

  /** False while a thread is about to end, as far as that can be known: a thread whose heap is full does not announce its end. */
  #isQuiet(): boolean {
    return (
      this.#pool.isQuiet &&
      !this.#options.all().some(({ state, flight }) => state === 'starting' && flight.hasExitReport)
    )
  }

  #onMessage(thread: LaneThread, message: ToPrimary): void {
    const { lane } = thread
    const { listener, onBooted, onDying, log } = this.#options
    switch (message.type) {
      case 'booting':
        thread.bootingFile = message.file
        if (message.file !== null) thread.bootedFiles.push(message.file)
        return thread.watchdog.pluginBoots()
      case 'manifest':
        thread.bootedMs = steadyMs()
        if (lane.generation === this.#generation) this.#isProved = true
        lane.manifest = message.manifest
        if (thread.onBootEnd === null) onBooted(lane)
        else thread.onBootEnd(null)
        return this.#pool.prewarm()
      case 'boot-failed':
        log(`Lane ${lane.index} did not boot: ${message.message}`, { stack: message.stack })
        return thread.watchdog.bootFailed(message.message)
      case 'child-started':
        return thread.children.started(message.pid, message.starter)
      case 'child-ended':
        return thread.children.ended(message.pid, message.hasLeft)
      case 'thread-started':
        return thread.children.threadStarted(message.threadId, message.starter)
      case 'thread-ended':
        return thread.children.threadEnded(message.threadId)
      case 'dying':
        return onDying(thread)
      case 'drained':
        // Ended, not returned to the pool: the next lane must load its code anew.
        return thread.abort.abort()
      default:
        listener.onMessage(lane, message)
    }
  }

  /** How long a lane looks on at what its boot has begun, at most. Where one has, the others need not. */
  get #aftermathMs(): number {
    if (this.#isProved) return 0
    return this.#generation === 0 || this.#options.isPrewarmed ? AFTERMATH_AWAITED_MS : AFTERMATH_MS
  }

  /** Threads that start from now on have new code: every plugin gets another chance. @returns what takes that chance back */
  beginGeneration(): () => void {
    this.#generation++
    this.#isProved = false
    return this.barred.reset()
  }

  /** Lanes whose threads have not ended, and have not been told to. */
  get lanesRunning(): number {
    return this.#pool.lanesRunning
  }

  /** Threads that have begun and not ended. */
  get threadsRunning(): number {
    return this.#pool.threadsRunning
  }

  /** Ends all threads. */
  destroy(): Promise<void> {
    return this.#pool.destroy()
  }
}
