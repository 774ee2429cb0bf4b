// One line for each request that has ended, for development.
import type { ObservedRequest, RequestWatcher } from '../../contracts/tracing.ts'
import { withoutSecretStrings } from '../../core/schemas/secret-fields.ts'
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

/** What is known of a request. */
interface LoggedRequest {
  readonly calls: string[]
  /** Null until it has ended. */
  line: RequestLine | null
  /** Set while its line waits. */
  timer: NodeJS.Timeout | undefined
}

/** Logs each request when it has ended, for `npm run dev`. Of requests of the runtime's own pages, which poll, only failures are logged. */
export class RequestLog implements RequestWatcher {
  readonly #tell: (line: RequestLine) => void
  readonly #holdMs: number
  /** By their ids; those that ended long ago are gone. */
  readonly #requests = new Map<string, LoggedRequest>()

  /** @param holdMs how long a line waits for calls that fail after the answer; 0: not at all */
  constructor(tell: (line: RequestLine) => void, holdMs = 0) {
    this.#tell = tell
    this.#holdMs = holdMs
  }

  ended({ requestId, method, path, route, startMs }: ObservedRequest, status: number, endMs: number): void {
    if (path.startsWith('/system/') && status < 400) return
    const known = withoutSecretStrings(path)
    const shown = known.length > PATH_MAX_LENGTH ? `${known.slice(0, PATH_MAX_LENGTH)}…` : known
    const before = this.#requests.get(requestId)
    const request = before?.line === null ? before : this.#add(requestId)
    request.line = {
      method,
      path: printable(shown).replaceAll('\n', '\\n'),
      status,
      durationMs: endMs - startMs,
      plugin: route?.plugin ?? '',
      requestId,
    }
    if (this.#holdMs === 0) this.#write(request)
    else request.timer = setTimeout(() => this.#flush(request), this.#holdMs).unref()
  }

  /**
   * A tool call of a request's handler has failed while nobody waited for it.
   * @param call with its place: `db.execute at domains/shop/plugins/buy.ts:12:5`
   */
  unawaited(requestId: string, call: string): void {
    const { calls, line, timer } = this.#requests.get(requestId) ?? this.#add(requestId)
    if (calls.length >= CALLS_MAX) return
    calls.push(call)
    // Its line is written.
    if (line !== null && timer === undefined) this.#tell({ ...line, unawaited: [call], isLate: true })
  }

  /** Writes the lines that wait: the process ends. */
  flush(): void {
    for (const request of this.#requests.values()) this.#flush(request)
  }

  #add(requestId: string): LoggedRequest {
    const request: LoggedRequest = { calls: [], line: null, timer: undefined }
    this.#requests.set(requestId, request)
    if (this.#requests.size > REQUESTS_MAX) this.#requests.delete(this.#requests.keys().next().value!)
    return request
  }

  #flush(request: LoggedRequest): void {
    if (request.timer === undefined) return
    clearTimeout(request.timer)
    request.timer = undefined
    this.#write(request)
  }

  #write({ calls, line }: LoggedRequest): void {
    this.#tell(calls.length === 0 ? line! : { ...line!, unawaited: [...calls] })
  }
}
