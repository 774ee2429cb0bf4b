import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Batch } from './export-request.ts'
import { exporterOf, exportSpans, type SpanExporter } from './span-exporter.ts'

/** Milliseconds before a batch that the receiver did not take is sent again: at first, and at most. */
const RETRY_MIN_MS = 500
const RETRY_MAX_MS = 5000

/** The receiver of spans. A batch is sent until it is taken or refused, or until its time is up. */
export class Receiver {
  readonly #settings: Settings
  readonly #onTrouble: (why: string, lost: number) => void
  #exporter: SpanExporter | null = null
  #isHurried = false
  #wake: () => void = () => {}

  constructor(settings: Settings, onTrouble: (why: string, lost: number) => void) {
    this.#settings = settings
    this.#onTrouble = onTrouble
  }

  /** A fault is reported, and then nothing is exported. */
  async open(): Promise<void> {
    try {
      this.#exporter = await exporterOf(this.#settings, (why) =>
        this.#onTrouble(`the receiver took only a part: ${why}`, 0),
      )
    } catch (error) {
      this.#exporter = null
      this.#onTrouble(messageOf(error), 0)
    }
  }

  /** From now on nothing is sent twice. */
  hurry(): void {
    this.#isHurried = true
    this.#wake()
  }

  /** @returns how many of the spans were not taken */
  async send(spans: Batch): Promise<number> {
    const deadlineMs = Date.now() + this.#settings.otelBspExportTimeout
    for (let pauseMs = RETRY_MIN_MS; ; pauseMs = Math.min(RETRY_MAX_MS, pauseMs * 2)) {
      if (this.#exporter === null) return spans.length
      const fault = await exportSpans(this.#exporter, spans, Math.max(1, deadlineMs - Date.now()))
      if (fault === null) return 0
      const isOver = !fault.mayBeTakenLater || this.#isHurried || Date.now() + pauseMs > deadlineMs
      this.#onTrouble(fault.why, isOver ? spans.length : 0)
      if (isOver) return spans.length
      await this.#pause(pauseMs)
      // A new connection, because the old one would wait longer and longer by itself.
      void this.#exporter.shutdown().catch(() => {})
      await this.open()
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
