/** The primary's side of tracing: its own spans, a ring for each thread, and the exporting thread, whose troubles it logs rarely, and at most as warnings. */
import { fileURLToPath } from 'node:url'
import type { LogLevel } from '../contracts/logger.ts'
import type { RequestTracing } from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import { Reminder } from '../core/schedule/repeating-task.ts'
import { SideThread } from '../recording/side-thread.ts'
import type { ExportNews } from './exporter.ts'
import { RequestSpans } from './request-spans.ts'
import { SPAN_RING_BYTES } from './span-record.ts'
import { ThreadTracing } from './thread-tracing.ts'

/** Milliseconds between two log lines about one trouble. */
const REMINDER_MS = 60_000

export class ProcessTracing {
  readonly own: ThreadTracing
  readonly requests: RequestTracing
  readonly #settings: Settings
  readonly #log: (level: LogLevel, message: string) => void
  /** Of the threads that record. */
  readonly rings: SideThread<ExportNews>
  readonly #reminder = new Reminder(REMINDER_MS)
  /** The present trouble was logged, so its end must be logged too. */
  #isTold = false
  /** Spans that were lost since the last log line. */
  #lost = 0

  constructor(settings: Settings, log: (level: LogLevel, message: string) => void) {
    this.#settings = settings
    this.#log = log
    this.rings = new SideThread({
      file: fileURLToPath(new URL('./export-thread.ts', import.meta.url)),
      name: 'span exporter',
      // For the queue, a batch, and the libraries.
      heapMb: 256,
      ringBytes: SPAN_RING_BYTES,
      stillbornMax: 5,
      init: settings,
      onNews: (news) => this.#onNews(news),
      onDeath: (why, isLast) => {
        this.#trouble(`the exporting thread has died: ${why}`, 0)
        if (isLast) log('ERROR', 'No more spans are exported: the exporting thread does not start')
      },
    })
    this.own = new ThreadTracing(settings, this.rings.open('primary'))
    this.requests = new RequestSpans(this.own)
    this.rings.start()
  }

  #onNews(news: ExportNews): void {
    switch (news.type) {
      case 'trouble':
        return this.#trouble(news.why, news.lost)
      case 'recovered':
        // The next trouble is still not logged before its time: a receiver may take every other export.
        if (!this.#isTold) return
        this.#isTold = false
        this.#lost = 0
        return this.#log('INFO', `Spans are exported again; ${news.lost} were lost meanwhile`)
      case 'dropped':
        return this.#trouble('more spans than are exported', news.count)
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

  /** A drain has begun: what ends now is exported meanwhile. */
  hurry(): void {
    this.rings.hurry()
  }

  /** Exports what is left. @param withinMs the flush takes at most this, and less where the receiver does not answer */
  async stop(withinMs: number): Promise<void> {
    const left = await this.rings.stop(withinMs)
    if (left === 0) return
    const count = left === null ? 'The last spans' : `${left} spans`
    this.#log('WARNING', `${count} were not exported before the end: the receiver did not take them in time`)
  }
}
