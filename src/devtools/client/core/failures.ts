/** A place of the input that does not fit. */
export interface ValidationFault {
  /** Keys and indexes, joined by dots: `items.0.price`. */
  path: string
  message: string
}

/** An answer of 400 and above: `{ success: false, error, code?, details? }`. */
export class ApiError<
  Status extends number = number,
  Code extends string | undefined = string | undefined,
  Details = unknown,
> extends Error {
  override readonly name = 'ApiError'
  readonly ok = false
  readonly status: Status
  readonly code: Code
  readonly details: Details
  /** The whole body: parsed JSON, or text. */
  readonly body: unknown
  readonly headers: Headers
  /** How long the service asks to wait; null when it does not say. */
  readonly retryAfterMs: number | null
  /** How often the request was sent. */
  readonly attempts: number

  constructor(response: Response, body: unknown, attempts: number) {
    const { error, code, details } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
    super(typeof error === 'string' ? error : `${response.status} ${response.statusText}`.trim())
    this.status = response.status as Status
    this.code = code as Code
    this.details = details as Details
    this.body = body
    this.headers = response.headers
    this.retryAfterMs = retryAfterOf(response)
    this.attempts = attempts
  }

  /** The id under which the service has it in its log. */
  get requestId(): string | null {
    return this.headers.get('x-request-id')
  }
}

interface ErrorBody {
  error?: unknown
  code?: unknown
  details?: unknown
}

/** There is no answer: the service cannot be reached, the connection ended, or `timeoutMs` is over. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  readonly ok = false
  readonly status = 0
  readonly code: 'UNREACHABLE' | 'TIMED_OUT'
  /** How often the request was sent. */
  readonly attempts: number

  constructor(code: 'UNREACHABLE' | 'TIMED_OUT', message: string, attempts: number, cause?: unknown) {
    super(message, { cause })
    this.code = code
    this.attempts = attempts
  }
}

/** What the runtime itself may answer to any request, or nothing at all. */
export type RuntimeFailure =
  | ApiError<400 | 401 | 403 | 404 | 405 | 408 | 413 | 415 | 421 | 426 | 431 | 500 | 502 | 503 | 504, undefined>
  | Unreachable

/** The input does not fit the schemas of the route. */
export type ValidationFailure = ApiError<422, undefined, ValidationFault[]>

/** A request with this `Idempotency-Key` is still running, or the key came with another request before. */
export type KeyFailure = ApiError<409, undefined> | ApiError<422, undefined, undefined>

export interface Success<Answer> {
  readonly ok: true
  readonly status: number
  readonly headers: Headers
  readonly answer: Answer
}

/** Milliseconds, from a number of seconds or a date. Source: RFC 9110, section 10.2.3. */
export function retryAfterOf(response: Response): number | null {
  const text = response.headers.get('retry-after')
  if (text === null) return null
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? null : Math.max(ms, 0)
}
