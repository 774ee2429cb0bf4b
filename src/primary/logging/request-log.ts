import type { RequestSpan, RequestStart, RequestTracing, StartOf } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, type TraceContext } from '../../core/causality/trace-context.ts'
import { withoutSecretTexts } from '../../core/schemas/secret-fields.ts'

import { printable } from './terminal.ts'

/** One request that has ended. Without its query and its body, which may hold secrets of the client. */
export interface RequestLine {
  method: string
  path: string
  /** 0: the client was gone before there was an answer. */
  status: number
  durationMs: number
  /** Empty when there is no such route. */
  plugin: string
  requestId?: string
  /** Address of its page; left out where it has none. */
  page?: string
  /** Tool calls of its handler that have failed while nobody waited for them, with their places. Left out: none. */
  unawaited?: readonly string[]
  /** Its line is written already: this one is about a call that has failed since. */
  isLate?: boolean
}

/** Characters of a path that are shown. */
const PATH_MAX_LENGTH = 200
/** A request waits this long for its line, milliseconds: a call that nobody awaits fails after the answer. */
export const REQUEST_LINE_HOLD_MS = 50
/** Requests that are remembered: the oldest are forgotten. */
const REQUESTS_MAX = 500
/** Calls that one line shows. */
const CALLS_MAX = 5

/**
 * Logs each request when it has ended, for `npm run dev`. It takes the place of the request tracing and passes calls on to it: where
 * neither is wanted, a request costs one comparison with null. Of requests of the runtime's own pages, which poll, only failures are
 * logged.
 */
export class RequestLog implements RequestTracing {
  readonly #inner: RequestTracing | null
  readonly #tell: (line: RequestLine) => void
  readonly #holdMs: number
  /** By their ids; those that ended long ago are gone. */
  readonly #requests = new Map<string, LoggedRequest>()

  /**
   * @param inner makes the spans; null while tracing is off
   * @param holdMs how long a line waits for calls that fail after the answer; 0: not at all
   */
  constructor(inner: RequestTracing | null, tell: (line: RequestLine) => void, holdMs = 0) {
    this.#inner = inner
    this.#tell = tell
    this.#holdMs = holdMs
  }

  begin(traceparent: string, tracestate: string, start: StartOf): RequestSpan {
    const inner = this.#inner?.begin(traceparent, tracestate, start) ?? NO_TRACE_CONTEXT
    const request = new LoggedRequest(inner, start(false), this.#tell, this.#holdMs)
    this.#requests.set(request.id, request)
    if (this.#requests.size > REQUESTS_MAX) this.#requests.delete(this.#requests.keys().next().value!)
    return request
  }

  /**
   * A tool call of a request's handler has failed while nobody waited for it.
   * @param call with its place: `db.execute at domains/shop/plugins/buy.ts:12:5`
   */
  unawaited(requestId: string, call: string): void {
    this.#requests.get(requestId)?.unawaited(call)
  }

  /** Writes the lines that wait: the process ends. */
  flush(): void {
    for (const request of this.#requests.values()) request.flush()
  }
}

class LoggedRequest implements RequestSpan {
  readonly traceContext: TraceContext
  readonly id: string
  servedBy = -1
  readonly #inner: RequestSpan | null
  readonly #start: RequestStart
  readonly #startMs = performance.now()
  readonly #tell: (line: RequestLine) => void
  readonly #holdMs: number
  readonly #calls: string[] = []
  /** Null until it has ended. */
  #line: RequestLine | null = null
  /** Set while its line waits. */
  #timer: NodeJS.Timeout | undefined

  constructor(
    inner: RequestSpan | TraceContext,
    start: RequestStart,
    tell: (line: RequestLine) => void,
    holdMs: number,
  ) {
    const isRecorded = typeof inner !== 'string'
    this.traceContext = isRecorded ? inner.traceContext : inner
    this.id = start.requestId
    this.#inner = isRecorded ? inner : null
    this.#start = start
    this.#tell = tell
    this.#holdMs = holdMs
  }

  end(status: number): void {
    if (this.#inner !== null) {
      this.#inner.servedBy = this.servedBy
      this.#inner.end(status)
    }
    const { method, path, plugin } = this.#start
    if (path.startsWith('/system/') && status < 400) return
    const known = withoutSecretTexts(path)
    const shown = known.length > PATH_MAX_LENGTH ? `${known.slice(0, PATH_MAX_LENGTH)}…` : known
    const durationMs = performance.now() - this.#startMs
    this.#line = {
      method,
      path: printable(shown).replaceAll('\n', '\\n'),
      status,
      durationMs,
      plugin,
      requestId: this.id,
    }
    if (this.#holdMs === 0) this.#write()
    else this.#timer = setTimeout(() => this.flush(), this.#holdMs).unref()
  }

  unawaited(call: string): void {
    if (this.#calls.length >= CALLS_MAX) return
    this.#calls.push(call)
    // Its line is written.
    if (this.#line !== null && this.#timer === undefined) this.#tell({ ...this.#line, unawaited: [call], isLate: true })
  }

  flush(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#write()
  }

  #write(): void {
    this.#tell(this.#calls.length === 0 ? this.#line! : { ...this.#line!, unawaited: [...this.#calls] })
  }
}
