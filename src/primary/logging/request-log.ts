import type { RequestSpan, RequestStart, RequestTracing } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'

/** One request that is over. Nothing of its query and its body: they are the client's. */
export interface RequestLine {
  method: string
  path: string
  /** 0: the client was gone before there was an answer. */
  status: number
  durationMs: number
  /** Empty when there is no such route. */
  plugin: string
}

/** A path is shown up to so many characters. */
const PATH_MAX_LENGTH = 200
/** What a terminal would obey instead of showing it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x1f\x7f-\x9f]/g

/**
 * Tells of each request when it is over, for `npm run dev`. It stands where spans are made, in front of those who make them: while nobody
 * wants either, a request costs one comparison with null. Of the runtime's own pages, which ask again and again, only failures are told.
 */
export class RequestLog implements RequestTracing {
  readonly #inner: RequestTracing | null
  readonly #tell: (line: RequestLine) => void

  /** @param inner makes the spans; null while tracing is off */
  constructor(inner: RequestTracing | null, tell: (line: RequestLine) => void) {
    this.#inner = inner
    this.#tell = tell
  }

  begin(traceparent: string, tracestate: string, start: () => RequestStart): RequestSpan {
    const inner = this.#inner?.begin(traceparent, tracestate, start) ?? NO_TRACE_CONTEXT
    return new LoggedRequest(inner, start(), this.#tell)
  }
}

class LoggedRequest implements RequestSpan {
  readonly traceContext: TraceContext
  servedBy = -1
  readonly #inner: RequestSpan | null
  readonly #start: RequestStart
  readonly #startMs = performance.now()
  readonly #tell: (line: RequestLine) => void

  constructor(inner: RequestSpan | TraceContext, start: RequestStart, tell: (line: RequestLine) => void) {
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
    const { method, path, plugin } = this.#start
    if (path.startsWith('/system/') && status < 400) return
    const shown = path.length > PATH_MAX_LENGTH ? `${path.slice(0, PATH_MAX_LENGTH)}…` : path
    const durationMs = performance.now() - this.#startMs
    this.#tell({ method, path: shown.replace(CONTROLS, '\ufffd'), status, durationMs, plugin })
  }
}
