import type { RequestSink } from '../../contracts/registry.ts'
import type { RequestSpan, RequestStart, RequestTracing, StartOf } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'

/**
 * Tells of each request when it has ended. It takes the place of the listener's tracing while somebody listens, and passes everything on
 * to it: without a listener a request costs nothing.
 */
export class RequestSinks implements RequestTracing {
  readonly #listener: { tracing: RequestTracing | null }
  readonly #onFault: (thrown: unknown) => void
  readonly #sinks: RequestSink[] = []
  #inner: RequestTracing | null = null

  constructor(listener: { tracing: RequestTracing | null }, onFault: (thrown: unknown) => void) {
    this.#listener = listener
    this.#onFault = onFault
  }

  /** @returns a function that removes the sink */
  add(sink: RequestSink): () => void {
    if (this.#sinks.length === 0) {
      this.#inner = this.#listener.tracing
      this.#listener.tracing = this
    }
    const remove = added(this.#sinks, sink)
    return () => {
      remove()
      if (this.#sinks.length === 0 && this.#listener.tracing === this) this.#listener.tracing = this.#inner
    }
  }

  begin(traceparent: string, tracestate: string, start: StartOf): RequestSpan {
    const inner = this.#inner?.begin(traceparent, tracestate, start) ?? NO_TRACE_CONTEXT
    return new WatchedRequest(inner, start(false), this.#tell)
  }

  readonly #tell = (start: RequestStart, status: number, durationMs: number): void => {
    const { requestId, method, route, plugin } = start
    // Its own pages poll.
    if (route.startsWith('/system/') && status < 500) return
    const record = { request_id: requestId, method, route, plugin, status, duration_ms: durationMs }
    tellAll(this.#sinks, record, this.#onFault)
  }
}

class WatchedRequest implements RequestSpan {
  readonly traceContext: TraceContext
  servedBy = -1
  readonly #inner: RequestSpan | null
  readonly #start: RequestStart
  readonly #startMs = performance.now()
  readonly #tell: (start: RequestStart, status: number, durationMs: number) => void

  constructor(
    inner: RequestSpan | TraceContext,
    start: RequestStart,
    tell: (start: RequestStart, status: number, durationMs: number) => void,
  ) {
    const isRecorded = typeof inner !== 'string'
    this.traceContext = isRecorded ? inner.traceContext : inner
    this.#inner = isRecorded ? inner : null
    this.#start = start
    this.#tell = tell
  }

  end(status: number): void {
    if (this.#inner !== null) {
      this.#inner.servedBy = this.servedBy
      this.#inner.end(status)
    }
    this.#tell(this.#start, status, performance.now() - this.#startMs)
  }
}
