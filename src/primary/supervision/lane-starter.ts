// Starts a thread of the pool, with its limits of memory and its environment.
import { fileURLToPath } from 'node:url'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { type MessagePort, Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { laneEnvironment, publicVariables, secretNames } from '../../core/config/load.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { FRAMES_MAX } from '../../core/errors/places.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { movedMemory } from '../../core/schedule/moved-time.ts'
import { type ThreadTimes, timesOfThreads, together } from '../../core/schedule/thread-clock.cjs'
import { letGo } from '../../transport/memory/garbage.ts'
import { YOUNG_GENERATION_MB } from '../../transport/memory/heartbeat.ts'
import { LANE_PROTOCOL, type LaneInit, type ToPrimary, type WarmUp } from '../../transport/messages.ts'
import type { LaneRole } from '../dispatch/lane.ts'
import { descriptorsOfPlugins } from '../http/connection-limit.ts'
import { BarredPlugins } from './barred-plugins.ts'
import { isInspected } from './debugger.ts'
import { LaneChildren } from './lane-children.ts'
import type { LaneParts } from './lane-parts.ts'
import type { LaneRegistrar } from './lane-registrar.ts'
import { LaneThread } from './lane-set.ts'
import { inspectThreads } from './stack-probe.ts'
import { STANDSTILL_GROWTH, Watchdog } from './watchdog.ts'

const NODE_MAJOR = Number.parseInt(process.versions.node, 10)
const WORKER_FILE = fileURLToPath(new URL('../../../workers/lane.ts', import.meta.url))
/** Threads beside the lanes and as many that stand still: the one that takes over in a reload, the quarantine lane, the probation lane, and one that is about to end. */
const SPARE_THREADS = 4
/** Threads that have been replaced stay for as long as native calls of theirs are under way: at most so many are waited for at a time. */
export const LEAVING_MAX_THREADS = 16
/** Threads that wait for a lane at most, where threads are prewarmed: one more than a reload takes, because an editor often saves twice. */
const PREWARMED_MAX_THREADS = 3
/**
 * How far V8's own heap limit lies beyond a lane's memory. That limit endangers the whole process: when one step needs more than 16 MiB
 * beyond it (a `Map` that grows, a list that is copied), Node has no time to end the thread and aborts. So it lies where no heap gets to:
 * the primary ends a lane long before (`Watchdog`), and one step can take 1 GiB at most, the longest list or text that V8 has.
 */
const HEAP_ROOM_MB = 2560

/**
 * With these a thread can be stopped and goes on (`stopThread`): Node looks for no order in its stack of asynchronous calls, which a stop leaves as it
 * is, and keeps the causal context in V8's frames instead of that stack (the default from Node 24 on), where an `await` costs half, too.
 */
const STOPPABLE = ['--no-force-async-hooks-checks', ...(NODE_MAJOR < 24 ? ['--experimental-async-context-frame'] : [])]
/** Node warns of it in each thread, as of everything that it calls an experiment. */
const FROZEN = ['--frozen-intrinsics', '--disable-warning=ExperimentalWarning']
/** With its value, in one word or in two. */
const TSX = /^(?:--(?:import|require|loader)|-r)[ =](?:tsx|\S*\/tsx\/\S*)$/
/** No Node knows it. */
const UNKNOWN_FLAG = '--heddle'

/**
 * How the threads run: they load what the process has loaded first, and can be stopped. Where tsx was named for the process, lanes need it no more: it
 * loads through libuv's thread pool, and a lane could not come back while plugins hold that.
 */
function laneArguments({ laneFreezeBuiltins }: Settings): string[] {
  const { execArgv } = process
  const own = execArgv.filter(
    (flag, n) => ![flag, `${flag} ${execArgv[n + 1]}`, `${execArgv[n - 1]} ${flag}`].some((text) => TSX.test(text)),
  )
  return [...threadFlags(own), ...STOPPABLE, ...(laneFreezeBuiltins ? FROZEN : [])]
}

/** Those flags that a thread may have: Node refuses those of the whole process, and names all that it refuses before it starts anything. */
function threadFlags(flags: readonly string[]): string[] {
  try {
    new Worker('', { eval: true, execArgv: [...flags, UNKNOWN_FLAG] })
  } catch (error) {
    const [, list = ''] = messageOf(error).split(/flags: /)
    const refused = list.split(', ')
    return flags.filter((flag) => !refused.includes(flag))
  }
  return [...flags]
}

/** V8's own limit, MiB. A heap takes only as much of it as it needs. */
const heapLimitMb = ({ laneMemoryMb }: Settings): number => laneMemoryMb * (1 + STANDSTILL_GROWTH) + HEAP_ROOM_MB

/** The threads of the lanes: each runs one long task, its lane, and ends with it. The only file that knows Piscina. */
class LanePool {
  readonly #pool: Piscina
  readonly #warmUp: WarmUp
  readonly #prewarmedThreads: number
  /** Threads that have begun and not ended. `destroy` does not wait for one that is inside a native call. */
  threadsRunning = 0
  /** Lanes whose threads have not ended, and have not been told to. */
  lanesRunning = 0
  /** Settles when a thread is ready for a lane. */
  #prewarming: Promise<void> | null = null

  /** @param isPrewarmed threads may be started ahead of the lanes that will need them (`prewarm`) */
  constructor(settings: Settings, isPrewarmed: boolean, onError: (error: unknown) => void) {
    // In Node 22 a loop in a file whose places for breakpoints an editor has asked for answers nobody, and cannot be stopped: V8 tries there to go over to
    // optimized code, and looks for nothing else.
    if (NODE_MAJOR < 24 && isInspected()) setFlagsFromString('--no-use-osr')
    // Frozen, a thread keeps the limit that it begins with.
    if (settings.laneFreezeBuiltins) setFlagsFromString(`--stack-trace-limit=${FRAMES_MAX}`)
    this.#warmUp = { toolsDir: settings.toolsDir, tools: settings.tools }
    this.#prewarmedThreads = isPrewarmed ? Math.min(settings.lanes + 1, PREWARMED_MAX_THREADS) : 0
    inspectThreads()
    this.#pool = new Piscina({
      filename: WORKER_FILE,
      // The pool starts no thread without a lane by itself: that thread would have loaded older code.
      minThreads: 0,
      maxThreads: 2 * settings.lanes + SPARE_THREADS + LEAVING_MAX_THREADS + this.#prewarmedThreads,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // The default freezes a thread's timers and sockets while it has no task.
      atomics: 'disabled',
      recordTiming: false,
      execArgv: laneArguments(settings),
      env: laneEnvironment(settings.laneEnv),
      resourceLimits: { maxOldGenerationSizeMb: heapLimitMb(settings), maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    })
    this.#pool.on('error', onError)
    process.on('worker', this.#onThread)
  }

  readonly #onThread = (thread: Worker): void => {
    if (!this.#pool.threads.includes(thread)) return
    this.threadsRunning++
    thread.once('exit', () => {
      this.threadsRunning--
    })
  }

  /** Runs one lane. Settles when its thread has ended, in whatever way; an aborted signal ends it. */
  async run(init: LaneInit, transferList: MessagePort[], signal: AbortSignal): Promise<void> {
    this.lanesRunning++
    const over = (): void => {
      this.lanesRunning--
    }
    signal.addEventListener('abort', over, { once: true })
    try {
      // A thread that is being prewarmed is ready sooner than one that would start now, beside it.
      if (this.#prewarming !== null && this.#pool.threads.length <= this.lanesRunning) await this.#prewarming
      await this.#pool.run(init, { signal, transferList })
    } finally {
      signal.removeEventListener('abort', over)
      if (!signal.aborted) over()
    }
  }

  /** Gets threads ready for the next lanes: with the runtime, its tools and zod loaded as they are now, and no file of a domain. */
  prewarm(): void {
    if (this.#prewarming !== null || this.#pool.threads.length - this.lanesRunning >= this.#prewarmedThreads) return
    // One task for each thread, also for those that wait already: the pool gives each thread one task at a time.
    const runs = Array.from({ length: this.#prewarmedThreads }, () => this.#pool.run(this.#warmUp))
    const over = (): void => {
      this.#prewarming = null
    }
    // A thread that cannot load the runtime cannot be a lane either: the lane reports it.
    this.#prewarming = Promise.any(runs).then(over, over)
  }

  /** Ends all threads. */
  async destroy(): Promise<void> {
    await this.#pool.destroy()
    process.off('worker', this.#onThread)
  }
}

/** With the number of the process it is none that another one had. */
const BEGUN_MS = Date.now()
/** A lane that takes over in a reload looks on at what its boot has begun for this long at most, milliseconds. */
const AFTERMATH_MS = 2000
/** The same where somebody waits: for the start of the service, or for a change in development. */
const AFTERMATH_AWAITED_MS = 500

/** Who keeps the lanes alive. */
export interface ThreadOwner {
  /** Something in the lane ends it. */
  dying(thread: LaneThread): void
  /** The thread has ended. @param error null when it ended by itself */
  ended(thread: LaneThread, error: unknown): void
}

/** Starts the threads of the lanes with the current generation of the code, and follows each until it has booted. */
export class LaneStarter {
  readonly #parts: LaneParts
  readonly #registrar: LaneRegistrar
  readonly #owner: ThreadOwner
  readonly pool: LanePool
  readonly barred: BarredPlugins
  #generation = 0
  #started = 0
  /** A lane of this generation has lived through what its plugins have begun in their boot. */
  #isProved = false

  constructor(parts: LaneParts, registrar: LaneRegistrar, owner: ThreadOwner) {
    this.#parts = parts
    this.#registrar = registrar
    this.#owner = owner
    this.barred = new BarredPlugins(parts.processDeaths?.barred() ?? {})
    this.pool = new LanePool(parts.kernel.settings, parts.isDevelopment, (error) =>
      registrar.log('ERROR', `Lane pool: ${messageOf(error)}`),
    )
  }

  /** @param isTrial with the plugins that lanes do not wait for */
  start(index: number, role: LaneRole, isTrial = false): LaneThread {
    const { kernel, flightMirror, recorders } = this.#parts
    const { settings, shared } = kernel
    const { tracing, history } = recorders
    const { reasons: barred } = this.barred
    const waiting = isTrial ? [] : [...this.barred.waiting]
    const variables = publicVariables()
    // What the process was started with is its own mark: the guardian's, or that of a lane that has started all of this.
    const mark = `${variables.HEDDLE_RUN ?? ''}/${process.pid}-${BEGUN_MS}-${this.#started++}`
    const thread: LaneThread = new LaneThread(
      {
        index,
        role,
        generation: this.#generation,
        maxInFlight: settings.laneMaxInflight,
        listener: { ...this.#registrar.listener, onMessage: (_, message) => this.#onMessage(thread, message) },
      },
      new Set([...Object.keys(barred), ...waiting]),
      new LaneChildren(mark, (pid, start) => flightMirror?.noteProcess(pid, start)),
      (lane) =>
        new Watchdog(lane, {
          settings,
          abort: lane.abort,
          startingTimes: () => this.#startingTimes(),
          otherThreadsBytes: () => this.#bytesBeside(lane),
          onRecovered: (standstill) => this.#registrar.recovered(lane, standstill),
        }),
    )
    const { port, bulk, ...memory } = thread.threadSide
    const spans = tracing?.rings.open(index) ?? null
    const records = history?.rings.open(index) ?? null
    const init: LaneInit = {
      protocol: LANE_PROTOCOL,
      index,
      settings,
      variables,
      secretNames: secretNames(),
      port,
      bulk,
      ...memory,
      flightFile: flightMirror?.begin(thread, memory.flight) ?? null,
      guardian: flightMirror?.guardian ?? null,
      shared,
      tracing: spans,
      history: records,
      barred,
      waiting,
      aftermathMs: this.#aftermathMs,
      mark,
      descriptors: descriptorsOfPlugins(),
      movedTime: movedMemory(),
    }
    const ended = (error: unknown): void => {
      letGo(...Object.values(memory))
      if (spans !== null) tracing?.rings.gone(spans)
      if (records !== null) history?.rings.gone(records)
      flightMirror?.end(thread)
      this.#owner.ended(thread, error)
    }
    void this.pool.run(init, [port, bulk], thread.abort.signal).then(() => ended(null), ended)
    return thread
  }

  /** Lets a thread that has booted take part. */
  open(thread: LaneThread): void {
    // It died right after its manifest, or was told to leave meanwhile.
    if (thread.state !== 'starting') return
    this.#registrar.booted(thread)
    thread.become('ready')
    // A plugin that it has not waited for may have ended its lane meanwhile.
    for (const [file, reason] of Object.entries(this.barred.reasons)) this.#registrar.leftOut(file, reason)
    this.#parts.lanes.changed()
  }

  /** Bytes that all threads except one use, by their own figures. */
  #bytesBeside(lane: LaneThread): number {
    const { total_heap_size, external_memory } = getHeapStatistics()
    let bytes = total_heap_size + external_memory
    for (const other of this.#parts.lanes.all) {
      if (other !== lane) bytes += other.heartbeat.heapBytes + other.heartbeat.externalBytes
    }
    return bytes
  }

  /** Of all threads that are neither the primary nor a lane that has begun. */
  #startingTimes(): ThreadTimes | null {
    const known = new Set([process.pid, ...this.#parts.lanes.all.map(({ heartbeat }) => heartbeat.task)])
    return together([...timesOfThreads()].filter(([task]) => !known.has(task)).map(([, times]) => times))
  }

  #onMessage(thread: LaneThread, message: ToPrimary): void {
    switch (message.type) {
      case 'booting':
        thread.bootingFile = message.file
        if (message.file !== null) thread.bootedFiles.push(message.file)
        return thread.watchdog.pluginBoots()
      case 'manifest':
        thread.bootedMs = steadyMs()
        if (thread.generation === this.#generation) this.#isProved = true
        thread.manifest = message.manifest
        thread.bootEnded(null)
        // Others are opened when they take over.
        if (this.#parts.lanes.slotOf(thread).thread === thread) this.open(thread)
        return this.pool.prewarm()
      case 'boot-failed':
        this.#registrar.log('ERROR', `Lane ${thread.index} did not boot: ${message.message}`, { stack: message.stack })
        return thread.watchdog.bootFailed(message.message)
      case 'process-started':
        return thread.children.processStarted(message.pid, message.start, message.command, message.starter)
      case 'process-ended':
        return thread.children.processEnded(message.pid)
      case 'process-awaited':
        return thread.children.mayLeave()
      case 'thread-started':
        return thread.children.threadStarted(message.id, message.starter)
      case 'thread-ended':
        return thread.children.threadEnded(message.id)
      case 'dying':
        return this.#owner.dying(thread)
      case 'drained':
        // Ended, not returned to the pool: the next lane must load its code anew.
        return thread.abort.abort()
      default:
        this.#registrar.onMessage(thread, message)
    }
  }

  /** How long a lane looks on at what its boot has begun, at most. Where one has, the others need not. */
  get #aftermathMs(): number {
    if (this.#isProved) return 0
    return this.#generation === 0 || this.#parts.isDevelopment ? AFTERMATH_AWAITED_MS : AFTERMATH_MS
  }

  /** Threads that start from now on have new code: every plugin gets another chance. @returns what takes that chance back */
  beginGeneration(): () => void {
    this.#generation++
    this.#isProved = false
    return this.barred.reset()
  }
}
