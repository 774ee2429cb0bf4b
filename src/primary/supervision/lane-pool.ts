import { fileURLToPath } from 'node:url'
import type { MessagePort, Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Settings } from '../../core/config/schema.ts'
import { YOUNG_GENERATION_MB } from '../../transport/memory/heartbeat.ts'
import type { LaneInit, WarmUp } from '../../transport/messages.ts'
import { STANDSTILL_GROWTH } from './lane-watch.ts'

const WORKER_FILE = fileURLToPath(new URL('../../../workers/lane.ts', import.meta.url))
/** Threads beside the lanes and as many that stand still: the one that takes over in a reload, the quarantine lane, and one that is about to end. */
const SPARE_THREADS = 3
/** Threads that wait for a lane at most, where they do; one more than a reload takes, because an editor often saves twice. */
const WARM_MAX_THREADS = 3
/**
 * What V8 would let a heap have beyond a lane's memory. V8's own limit is not a thread's but the process's: when one step needs more than 16 MiB
 * beyond it (a `Map` that grows, a list that is copied), Node has no time to end the thread and aborts. So it is set where no heap comes: the
 * primary ends a lane long before (`LaneWatch`), and one step can take 1 GiB at most, the longest list or text that V8 has.
 */
const HEAP_ROOM_MB = 2560

/** Where V8's own limit is, MiB. It is used only as far as it is needed. */
const heapLimitMb = ({ laneMemoryMb }: Settings): number => laneMemoryMb * (1 + STANDSTILL_GROWTH) + HEAP_ROOM_MB

/** The threads of the lanes: each runs one long task, its lane, and ends with it. The only place that knows Piscina. */
export class LanePool {
  readonly #pool: Piscina
  readonly #toolsDir: string
  readonly #warmThreads: number
  #threads = 0
  #lives = 0
  /** A thread that is being made ready for a lane. */
  #warming: Promise<void> | null = null

  /** @param isWarm threads may be started ahead of the lanes that will need them (`warm`) */
  constructor(settings: Settings, isWarm: boolean, onError: (error: unknown) => void) {
    this.#toolsDir = settings.toolsDir
    this.#warmThreads = isWarm ? Math.min(settings.lanes + 1, WARM_MAX_THREADS) : 0
    this.#pool = new Piscina({
      filename: WORKER_FILE,
      // No thread without a lane by itself: one that was started earlier would have loaded older code.
      minThreads: 0,
      maxThreads: 2 * settings.lanes + SPARE_THREADS + this.#warmThreads,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // The default freezes a thread's timers and sockets while it has no task.
      atomics: 'disabled',
      recordTiming: false,
      resourceLimits: { maxOldGenerationSizeMb: heapLimitMb(settings), maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    })
    this.#pool.on('error', onError)
    process.on('worker', this.#onThread)
  }

  /** False while a thread whose life is over has not ended yet: the pool forgets it at once, its end takes longer. */
  get isQuiet(): boolean {
    return this.#threads <= this.#pool.threads.length
  }

  readonly #onThread = (thread: Worker): void => {
    if (!this.#pool.threads.includes(thread)) return
    this.#threads++
    thread.once('exit', () => {
      this.#threads--
    })
  }

  /** Runs one lane's life. Settles when its thread has ended, in whatever way; an aborted signal ends it. */
  async run(init: LaneInit, transferList: MessagePort[], signal: AbortSignal): Promise<void> {
    this.#lives++
    const over = (): void => {
      this.#lives--
    }
    signal.addEventListener('abort', over, { once: true })
    try {
      // Sooner there than another that begins now, beside it.
      if (this.#warming !== null && this.#pool.threads.length <= this.#lives) await this.#warming
      await this.#pool.run(init, { signal, transferList })
    } finally {
      signal.removeEventListener('abort', over)
      if (!signal.aborted) over()
    }
  }

  /** Has threads ready for the next lanes: with the runtime, its tools and zod loaded as they are now, and not one file of a domain. */
  warm(): void {
    if (this.#warming !== null || this.#pool.threads.length - this.#lives >= this.#warmThreads) return
    const task: WarmUp = { toolsDir: this.#toolsDir }
    // One for each, those that wait already included: the pool gives each thread one task at a time.
    const runs = Array.from({ length: this.#warmThreads }, () => this.#pool.run(task))
    const over = (): void => {
      this.#warming = null
    }
    // Where none can be warmed, none can be a lane either, which says so.
    this.#warming = Promise.any(runs).then(over, over)
  }

  /** Ends all threads. */
  async destroy(): Promise<void> {
    await this.#pool.destroy()
    process.off('worker', this.#onThread)
  }
}
