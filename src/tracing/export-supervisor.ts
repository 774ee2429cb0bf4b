import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import type { LogLevel } from '../contracts/logger.ts'
import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'
import { startThread } from '../core/modules/typescript-thread.ts'
import { Reminder } from '../core/schedule/reminder.ts'
import type { FromExporter, ThreadRing, ToExporter } from './export-messages.ts'

const THREAD_FILE = fileURLToPath(new URL('./export-thread.ts', import.meta.url))
/** Milliseconds between two log lines about one trouble. */
const REMINDER_MS = 60_000
/** Milliseconds before a thread that died is replaced. */
const RESTART_MS = 1000
/** After so many threads in a row that ended before they came up, no further one is started. */
const STILLBORN_MAX = 5
/** JavaScript heap of the exporting thread: for the queue, a batch, and the libraries. */
const HEAP_MB = 256

/** Starts the exporting thread, restarts it when it dies, and logs its troubles: rarely, and at most as warnings. */
export class ExportSupervisor {
  readonly #settings: Settings
  readonly #log: (level: LogLevel, message: string) => void
  readonly #sources = new Map<number, ThreadRing>()
  #thread: Worker | null = null
  #restartTimer: NodeJS.Timeout | undefined
  readonly #reminder = new Reminder(REMINDER_MS)
  /** The present trouble was logged, so its end must be logged too. */
  #isTold = false
  /** Spans that were lost since the last log line. */
  #lost = 0
  #isStopped = false
  #stillborn = 0
  #onFlushed: (left: number) => void = () => {}

  constructor(settings: Settings, log: (level: LogLevel, message: string) => void) {
    this.#settings = settings
    this.#log = log
  }

  start(): void {
    const thread = startThread(THREAD_FILE, {
      workerData: { settings: this.#settings, sources: [...this.#sources.values()] },
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
      name: 'span exporter',
    })
    this.#thread = thread
    thread.on('message', (message: FromExporter) => this.#onMessage(message))
    thread.on('error', (error) => this.#trouble(`the exporting thread has died: ${messageOf(error)}`, 0))
    thread.on('exit', () => {
      this.#thread = null
      this.#onFlushed(-1)
      if (this.#isStopped) return
      if (++this.#stillborn < STILLBORN_MAX) this.#restartTimer = setTimeout(() => this.start(), RESTART_MS).unref()
      else this.#log('ERROR', 'No more spans are exported: the exporting thread does not start')
    })
    // The thread must not keep the process alive.
    thread.unref()
  }

  add(source: ThreadRing): void {
    this.#sources.set(source.id, source)
    this.#post({ type: 'source', source })
  }

  /** Its thread has ended. */
  remove(id: number): void {
    if (this.#sources.delete(id)) this.#post({ type: 'source-gone', id })
  }

  #post(message: ToExporter): void {
    this.#thread?.postMessage(message)
  }

  #onMessage(message: FromExporter): void {
    switch (message.type) {
      case 'up':
        this.#stillborn = 0
        return
      case 'trouble':
        return this.#trouble(message.why, message.lost)
      case 'recovered':
        // The next trouble is still not logged before its time: a receiver may take every other export.
        if (!this.#isTold) return
        this.#isTold = false
        this.#lost = 0
        return this.#log('INFO', `Spans are exported again; ${message.lost} were lost meanwhile`)
      case 'dropped':
        return this.#trouble('more spans than are exported', message.count)
      case 'flushed':
        this.#onFlushed(message.left)
    }
  }

  #trouble(why: string, lost: number): void {
    this.#lost += lost
    if (!this.#reminder.isDue()) return
    this.#isTold = true
    const to = this.#settings.otelExporterOtlpEndpoint ?? 'the console'
    const howMany = this.#lost === 0 ? '' : ` (${this.#lost} lost)`
    this.#log('WARNING', `Spans are not all exported to ${to}: ${why}${howMany}`)
    this.#lost = 0
  }

  /** The process drains: what ends now is exported meanwhile. */
  hurry(): void {
    this.#post({ type: 'hurry' })
  }

  /** Exports the spans that have ended, and ends the thread. Resolves within that time, whatever the receiver does. */
  async stop(withinMs: number): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#restartTimer)
    const thread = this.#thread
    if (thread === null) return this.#log('WARNING', 'The last spans are lost: the exporting thread does not run')
    const flushed = new Promise<number>((resolve) => {
      this.#onFlushed = resolve
      setTimeout(resolve, withinMs, -1)
    })
    this.#post({ type: 'flush', withinMs: withinMs * 0.9 })
    const left = await flushed
    if (left !== 0) {
      const count = left < 0 ? 'The last spans' : `${left} spans`
      this.#log('WARNING', `${count} were not exported before the end: the receiver did not take them in time`)
    }
    await thread.terminate()
  }
}
