import type { RequestSpan, RequestStart, RequestTracing, StartOf } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import type { ThreadHistory } from '../recording/thread-history.ts'

/** A request that is open for so long is told of before it ends, so that it is known if the process dies. Milliseconds. */
const LONG_MS = 100
/** Characters of a path. */
const PATH_MAX = 500

/** Records the requests of the process. It takes the place of the request tracing, and passes everything on to it. */
export class RequestHistory implements RequestTracing {
  readonly #inner: RequestTracing | null
  readonly #own: ThreadHistory
  readonly #open = new Set<RecordedRequest>()
  readonly #timer: NodeJS.Timeout

  constructor(own: ThreadHistory, inner: RequestTracing | null) {
    this.#own = own
    this.#inner = inner
    this.#timer = setInterval(() => this.#tellOpen(), LONG_MS).unref()
  }

  begin(traceparent: string, tracestate: string, start: StartOf): RequestSpan {
    const inner = this.#inner?.begin(traceparent, tracestate, start) ?? NO_TRACE_CONTEXT
    const request = new RecordedRequest(inner, start(false), this.#own, this.#open)
    this.#open.add(request)
    return request
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tellOpen(): void {
    const sinceMs = this.#own.nowMs() - LONG_MS
    for (const request of this.#open) {
      // They are in the order in which they have begun.
      if (request.atMs > sinceMs) return
      request.tellBegun()
    }
  }
}

class RecordedRequest implements RequestSpan {
  readonly traceContext: TraceContext
  readonly atMs: number
  servedBy = -1
  readonly #inner: RequestSpan | null
  readonly #start: RequestStart
  readonly #own: ThreadHistory
  readonly #open: Set<RecordedRequest>
  #isTold = false

  constructor(inner: RequestSpan | TraceContext, start: RequestStart, own: ThreadHistory, open: Set<RecordedRequest>) {
    const isRecorded = typeof inner !== 'string'
    this.traceContext = isRecorded ? inner.traceContext : inner
    this.#inner = isRecorded ? inner : null
    this.#start = start
    this.#own = own
    this.#open = open
    this.atMs = own.nowMs()
  }

  tellBegun(): void {
    if (this.#isTold || isOfRuntime(this.#start)) return
    this.#isTold = true
    this.#own.writer.write(() => ({ type: 'begun', ...this.#place() }))
  }

  end(status: number): void {
    if (this.#inner !== null) {
      this.#inner.servedBy = this.servedBy
      this.#inner.end(status)
    }
    this.#open.delete(this)
    const { writer, keep, nowMs } = this.#own
    const endMs = nowMs()
    const ms = endMs - this.atMs
    const { requestId, route } = this.#start
    if (status < 500 && isOfRuntime(this.#start)) return
    if (this.#isTold || status >= 500 || keep.keeps(requestId, route, ms, endMs))
      writer.write(() => ({ type: 'request', ...this.#place(), ms, status, lane: this.servedBy }))
  }

  #place() {
    const { requestId: id, method, path, route, plugin } = this.#start
    return { id, atMs: this.atMs, method, path: path.slice(0, PATH_MAX), route, plugin }
  }
}

/** Its own pages poll. */
const isOfRuntime = ({ route }: RequestStart): boolean => route.startsWith('/system/')
