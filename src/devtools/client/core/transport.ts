import { Call } from './call.ts'
import { Channel } from './channel.ts'
import { CookieJar } from './cookie-jar.ts'
import { contentOf, type EncodedBody, encodedBody, targetOf } from './encoding.ts'
import { framesOf } from './event-stream.ts'
import { ApiError, retryAfterOf, Unreachable } from './failures.ts'
import type { CallOptions, ClientOptions, IdempotentOptions, Input } from './options.ts'
import { FIRST_WAIT_MS, IDEMPOTENT_METHODS, newKey, pause, TRY_AGAIN } from './retries.ts'

/** What a route is, beside its method and path. */
export interface RouteFacts {
  /** It takes an `Idempotency-Key`. */
  isKeyed?: boolean
  /** A text is sent as it is, and not as JSON. */
  isRaw?: boolean
  /** It takes forms alone. */
  isForm?: boolean
}

/** Sends requests: the part of the client that is the same for every service. */
export class Transport {
  readonly #options: ClientOptions
  readonly #baseUrl: string
  readonly #cookies: CookieJar | undefined

  constructor(options: ClientOptions = {}) {
    this.#options = options
    this.#baseUrl = (options.baseUrl ?? '').replace(/\/+$/, '')
    this.#cookies = options.cookies === true ? new CookieJar() : undefined
  }

  /** @param path with its query */
  request<Answer = unknown>(
    method: string,
    path: string,
    input: Omit<Input, 'params' | 'query'> = {},
    options: CallOptions = {},
  ): Call<Answer> {
    const body = encodedBody(input, true)
    return new Call(this.#exchange(method, path, body, options, {}))
  }

  call<Answer, Failure>(
    method: string,
    path: string,
    input: Input = {},
    options: IdempotentOptions = {},
    facts: RouteFacts = {},
  ): Call<Answer, Failure> {
    const given = facts.isForm === true ? { files: {}, ...input } : input
    const body = encodedBody(given, facts.isRaw === true)
    return new Call<Answer, Failure>(this.#exchange(method, targetOf(path, input), body, options, facts))
  }

  /**
   * Opens when it is read. A connection that breaks is opened again, as often as `retries` says since the last frame. It ends when the service ends
   * it, and leaving the loop closes it.
   */
  async *stream<Frame>(path: string, input: Input = {}, options: CallOptions = {}): AsyncGenerator<Frame> {
    const retries = options.retries ?? this.#options.retries ?? 2
    const headers = { accept: 'text/event-stream', ...options.headers }
    for (let failures = 0; ; ) {
      const body = encodedBody({}, false)
      const { response } = await this.#exchange('GET', targetOf(path, input), body, { ...options, headers }, {})
      try {
        for await (const frame of framesOf<Frame>(response)) {
          yield frame
          failures = 0
        }
        return
      } catch (error) {
        options.signal?.throwIfAborted()
        if (error instanceof SyntaxError) throw error
        if (++failures > retries) throw new Unreachable('UNREACHABLE', `${path} broke off`, failures, error)
        await pause(FIRST_WAIT_MS * 2 ** failures, options.signal)
      }
    }
  }

  async connect<Received, Sent>(path: string, input: Input = {}): Promise<Channel<Received, Sent>> {
    const { WebSocket = (globalThis as ClientOptions).WebSocket } = this.#options
    if (WebSocket === undefined) throw new Error('There is no WebSocket here: give the client one in its options')
    const { location } = globalThis as { location?: { href: string } }
    const url = new URL(this.#baseUrl + targetOf(path, input), location?.href).href.replace(/^http/, 'ws')
    const token = await this.#token(false)
    const socket = token === undefined ? new WebSocket(url) : new WebSocket(url, ['bearer', token])
    return Channel.open<Received, Sent>(socket, url)
  }

  async #exchange(
    method: string,
    target: string,
    { body, type, isRepeatable }: EncodedBody,
    options: IdempotentOptions,
    facts: RouteFacts,
  ): Promise<{ response: Response }> {
    const headers = new Headers({ accept: 'application/json, */*;q=0.5', ...this.#options.headers })
    for (const [name, value] of Object.entries(options.headers ?? {})) headers.set(name, value)
    if (type !== undefined) headers.set('content-type', type)
    if (facts.isKeyed === true) headers.set('idempotency-key', options.idempotencyKey ?? newKey())
    const isKeyed = headers.has('idempotency-key')
    const isIdempotent = isRepeatable && (isKeyed || IDEMPOTENT_METHODS.has(method))
    const retries = isIdempotent ? (options.retries ?? this.#options.retries ?? 2) : 0
    const init: RequestInit = { method, headers }
    if (body !== undefined) init.body = body as NonNullable<RequestInit['body']>
    if (!isRepeatable) Object.assign(init, { duplex: 'half' })
    if (this.#cookies !== undefined) init.credentials = 'include'

    let token = headers.has('authorization') ? undefined : await this.#token(false)
    let canRefresh = token !== undefined && isRepeatable
    for (let attempt = 1, failures = 0; ; attempt++) {
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
      const outcome = await this.#attempt(target, init, options, attempt)
      if (!(outcome instanceof Unreachable)) {
        if (outcome.status < 400) return { response: outcome }
        if (outcome.status === 401 && canRefresh) {
          canRefresh = false
          const fresh = await this.#token(true)
          const isOther = fresh !== undefined && fresh !== token
          token = fresh
          if (isOther) {
            await outcome.body?.cancel()
            continue
          }
        }
      }
      const waitMs = this.#waitMs(outcome, ++failures, isKeyed)
      if (failures > retries || waitMs === null) throw await failureOf(outcome, attempt)
      if (!(outcome instanceof Unreachable)) await outcome.body?.cancel()
      await pause(waitMs, options.signal)
    }
  }

  async #token(isRefused: boolean): Promise<string | undefined> {
    const { token } = this.#options
    return (typeof token === 'function' ? await token(isRefused) : token) ?? undefined
  }

  /** @throws the reason of the caller's signal */
  async #attempt(target: string, init: RequestInit, options: CallOptions, attempt: number) {
    const { fetch: send = (url: string, given: RequestInit) => fetch(url, given) } = this.#options
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? 30_000
    const { signal } = options
    signal?.throwIfAborted()
    const late = new AbortController()
    const timer = timeoutMs > 0 ? setTimeout(() => late.abort(), timeoutMs) : undefined
    try {
      this.#sendCookies(target, init.headers as Headers)
      const stop = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
      const response = await send(this.#baseUrl + target, { ...init, signal: stop })
      this.#cookies?.keep(response)
      return response
    } catch (error) {
      signal?.throwIfAborted()
      if (late.signal.aborted) return new Unreachable('TIMED_OUT', `No answer within ${timeoutMs} ms`, attempt, error)
      const { message, cause } = error as { message: string; cause?: { message?: string; code?: string } }
      const reason = cause?.message || cause?.code || message
      return new Unreachable('UNREACHABLE', `${this.#baseUrl}${target} cannot be reached: ${reason}`, attempt, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** A browser sets both headers by itself, and ignores these. */
  #sendCookies(target: string, headers: Headers): void {
    if (this.#cookies === undefined) return
    if (this.#baseUrl === '') return
    const { origin, pathname } = new URL(this.#baseUrl + target)
    const cookie = this.#cookies.headerFor(pathname)
    if (cookie === undefined) headers.delete('cookie')
    else headers.set('cookie', cookie)
    headers.set('origin', origin)
  }

  /** Null: it is not sent again. */
  #waitMs(outcome: Response | Unreachable, failures: number, isKeyed: boolean): number | null {
    const ownMs = FIRST_WAIT_MS * 2 ** (failures - 1) * (0.5 + Math.random() / 2)
    if (outcome instanceof Unreachable) return ownMs
    const askedMs = retryAfterOf(outcome)
    const isRunning = isKeyed && outcome.status === 409 && askedMs !== null
    if (!TRY_AGAIN.has(outcome.status) && !isRunning) return null
    const waitMs = askedMs ?? ownMs
    return waitMs <= (this.#options.maxRetryWaitMs ?? 20_000) ? waitMs : null
  }
}

async function failureOf(outcome: Response | Unreachable, attempts: number): Promise<ApiError | Unreachable> {
  if (outcome instanceof Unreachable) return outcome
  const body = await contentOf(outcome).catch(() => undefined)
  return new ApiError(outcome, body, attempts)
}
