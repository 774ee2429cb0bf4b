import { fileURLToPath } from 'node:url'
import type { MessagePort, Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Settings } from '../config/schema.ts'
import type { LaneInit } from './messages.ts'

const WORKER_FILE = fileURLToPath(new URL('../../workers/lane.ts', import.meta.url))
/** Threads beside the lanes and as many that stand still: the one that takes over in a reload, the quarantine lane, and one that is about to end. */
const SPARE_THREADS = 3
/** Threads that wait for a lane at most, where they do: with the tools loaded, and not one file of a domain. */
const WARM_THREADS = 2
/**
 * Room for what lives as long as a request or a publication does: with less, those under way are copied again and again. Measured with
 * events over streams, against the default: a seventh less CPU per event. It is used only as far as it is needed.
 */
const YOUNG_GENERATION_MB = 64

/** The threads of the lanes: each runs one long task, its lane, and ends with it. The only place that knows Piscina. */
export class LanePool {
  readonly #pool: Piscina
  #threads = 0

  /** @param isWarm threads are started ahead of the lanes that will need them: a lane is up sooner, with the runtime's code of then */
  constructor(settings: Settings, isWarm: boolean, onError: (error: unknown) => void) {
    const warmThreads = isWarm ? Math.min(settings.lanes, WARM_THREADS) : 0
    this.#pool = new Piscina({
      filename: WORKER_FILE,
      // Else no thread without a lane: one that was started earlier would have loaded older code.
      minThreads: isWarm ? settings.lanes + warmThreads : 0,
      maxThreads: 2 * settings.lanes + SPARE_THREADS + warmThreads,
      workerData: isWarm ? { toolsDir: settings.toolsDir } : undefined,
      idleTimeout: Number.POSITIVE_INFINITY,
      concurrentTasksPerWorker: 1,
      // The default freezes a thread's timers and sockets while it has no task.
      atomics: 'disabled',
      recordTiming: false,
      resourceLimits: { maxOldGenerationSizeMb: settings.laneMemoryMb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
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
    await this.#pool.run(init, { signal, transferList })
  }

  /** Ends all threads. */
  async destroy(): Promise<void> {
    await this.#pool.destroy()
    process.off('worker', this.#onThread)
  }
}
