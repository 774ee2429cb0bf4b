import type { RequestSpan, RequestStart, RequestTracing } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'

/** One request that has ended. Without its query and its body, which may hold secrets of the client. */
export interface RequestLine {
  method: string
  path: string
  /** 0: the client was gone before there was an answer. */
  status: number
  durationMs: number
  /** Empty when there is no such route. */
  plugin: string
}

/** Characters of a path that are shown. */
const PATH_MAX_LENGTH = 200
/** Control characters: a terminal would obey them instead of showing them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\x00-\x1f\x7f-\x9f]/g

/**
 * Logs each request when it has ended, for `npm run dev`. It takes the place of the request tracing and passes calls on to it: where
 * neither is wanted, a request costs one comparison with null. Of requests of the runtime's own pages, which poll, only failures are
 * logged.
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
