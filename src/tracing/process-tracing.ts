import type { LogLevel } from '../contracts/logger.ts'
import type { ClockAnchor, RequestTracing, TracingInit } from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import { anchorHere } from '../core/schedule/process-clock.ts'
import { letGo } from '../transport/memory/garbage.ts'
import { ExportSupervisor } from './export-supervisor.ts'
import { RequestSpans } from './request-spans.ts'
import { TraceSampler } from './sampler.ts'
import { createSpanRing } from './span-record.ts'
import { ThreadTracing } from './thread-tracing.ts'

/** The primary's side of tracing: its own spans, a ring for each thread, and the exporting thread. */
export class ProcessTracing {
  readonly own: ThreadTracing
  readonly requests: RequestTracing
  readonly #clock: ClockAnchor = anchorHere()
  readonly #exports: ExportSupervisor
  readonly #ids = new Map<SharedArrayBuffer, number>()
  #lastId = 0

  constructor(settings: Settings, log: (level: LogLevel, message: string) => void) {
    this.#exports = new ExportSupervisor(settings, log)
    const init = this.#init('primary')
    this.own = new ThreadTracing(settings, init)
    this.requests = new RequestSpans(this.own.writer, new TraceSampler(settings), this.own.nowMs)
    this.#exports.start()
  }

  /** Makes what a new lane needs. */
  laneInit(index: number): TracingInit {
    return this.#init(index)
  }

  #init(thread: 'primary' | number): TracingInit {
    const ring = createSpanRing()
    const id = ++this.#lastId
    this.#ids.set(ring, id)
    this.#exports.add({ id, ring, thread })
    return { ring, clock: this.#clock }
  }

  /** A lane's thread has ended. The spans in its ring are still exported. */
  laneGone({ ring }: TracingInit): void {
    const id = this.#ids.get(ring)
    if (id === undefined) return
    this.#ids.delete(ring)
    letGo(ring)
    this.#exports.remove(id)
  }

  /** A drain has begun. */
  hurry(): void {
    this.#exports.hurry()
  }

  /** Exports what is left. @param withinMs the flush takes at most this, and less where the receiver does not answer */
  stop(withinMs: number): Promise<void> {
    return this.#exports.stop(withinMs)
  }
}
