// The part of a client that is the same for every service: it becomes part of each as it stands here, without this line and the last ones.

export interface ClientOptions {
  /** Where the service is: `https://api.example.com`, also with a path before all routes. Default: the origin of the page. */
  baseUrl?: string | undefined
  /**
   * The bearer token, or what gives it: it is called for each request, and with `true` once more after an answer of 401. If it gives another
   * token then, the request is sent again.
   */
  token?: string | ((isRefused: boolean) => string | null | undefined | Promise<string | null | undefined>) | undefined
  /**
   * For services that know their clients by a cookie. A browser sends and keeps cookies by itself; elsewhere this client keeps them, and sends `Origin`,
   * which the service asks for against forged requests. Default false.
   */
  cookies?: boolean | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
  /** Milliseconds until an attempt without an answer counts as failed. Default 30,000; 0: never. */
  timeoutMs?: number | undefined
  /**
   * How often a request is sent again that nobody answered, or that was answered with 408, 429, 502, 503 or 504. It has to be idempotent: GET, HEAD,
   * OPTIONS, PUT and DELETE are, and so is every request with an `Idempotency-Key`. Default 2.
   */
  retries?: number | undefined
  /** If the service asks to wait longer than this, the request is not sent again. Default 20,000. */
  maxRetryWaitMs?: number | undefined
  /** Default: the global one. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Default: the global one, which Node has from 22 on; for 20 the one of the package `ws`. */
  // biome-ignore lint/suspicious/noExplicitAny: the class of any library
  WebSocket?: (new (...args: any[]) => any) | undefined
}

/** Of one request: what is not set is as the client has it. */
export interface CallOptions {
  signal?: AbortSignal | undefined
  headers?: Record<string, string> | undefined
  timeoutMs?: number | undefined
  retries?: number | undefined
}

/** Of a request that the service carries out once, however often it comes. */
export interface IdempotentOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. Default: a new one for each call, so that only its retries count as the same request. */
  idempotencyKey?: string | undefined
}

export type QueryValue = string | number | boolean | bigint | Date | null | undefined
export type Query = Record<string, QueryValue | readonly QueryValue[]>

/** A file of a form: a `File`, a `Blob`, or a name with its content. */
export type FormFile =
  | Blob
  | { name: string; content: Blob | Uint8Array | ArrayBuffer | string; type?: string | undefined }
/** By the name of the form's field. */
export type FormFiles = Record<string, FormFile | readonly FormFile[]>

/** A body that is sent as it is. One that is a stream is sent once: it cannot be repeated. */
export type RawBody = string | Uint8Array | ArrayBuffer | Blob | FormData | URLSearchParams | ReadableStream<Uint8Array>

/** The parts of any request. */
interface Input {
  params?: Record<string, unknown> | undefined
  query?: object | undefined
  body?: unknown
  files?: FormFiles | undefined
  contentType?: string | undefined
}

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
    const { error, code, details }: Partial<Record<string, unknown>> =
      typeof body === 'object' && body !== null ? { ...body } : {}
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
function retryAfterOf(response: Response): number | null {
  const text = response.headers.get('retry-after')
  if (text === null) return null
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? null : Math.max(ms, 0)
}

/**
 * A request that was sent. `await` gives its answer, and throws an `ApiError` or `Unreachable`. `result()` gives both, typed; `response()` the `Response`
 * with its body unread, for files and streamed answers.
 */
export class Call<Answer, Failure = ApiError | Unreachable> implements Promise<Answer> {
  readonly [Symbol.toStringTag] = 'Call'
  /** Below 400, its body not read yet. */
  readonly #response: Promise<Response>
  #answer: Promise<Answer> | undefined

  constructor(response: Promise<Response>) {
    this.#response = response
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited like a promise
  then<Kept = Answer, Caught = never>(
    onAnswer?: ((answer: Answer) => Kept | PromiseLike<Kept>) | null,
    // biome-ignore lint/suspicious/noExplicitAny: as a promise has it
    onFailure?: ((failure: any) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Kept | Caught> {
    return this.#read().then(onAnswer, onFailure)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as a promise has it
  catch<Caught = never>(onFailure?: ((failure: any) => Caught | PromiseLike<Caught>) | null): Promise<Answer | Caught> {
    return this.#read().catch(onFailure)
  }

  finally(onEnd?: (() => void) | null): Promise<Answer> {
    return this.#read().finally(onEnd)
  }

  /**
   * `{ ok: true, status, headers, answer }`, or the failure: `if (!result.ok && result.status === 409) result.code`. A status that the route does not declare
   * comes as an `ApiError`, too, and is not in the type. Rejects when the `signal` of the call was aborted.
   */
  async result(): Promise<Success<Answer> | Failure> {
    try {
      const [response, answer] = await Promise.all([this.#response, this.#read()])
      return { ok: true, status: response.status, headers: response.headers, answer }
    } catch (error) {
      if (error instanceof ApiError || error instanceof Unreachable) return error as Failure
      throw error
    }
  }

  response(): Promise<Response> {
    return this.#response
  }

  #read(): Promise<Answer> {
    this.#answer ??= this.#response.then((response) => contentOf(response) as Promise<Answer>)
    return this.#answer
  }
}

/** The parts of a WebSocket that are used, of the platform's or of a library's. */
interface SocketLike {
  binaryType: string
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
  addEventListener(type: string, listener: (event: SocketEvent) => void): void
}

interface SocketEvent {
  data?: unknown
  code?: number
  reason?: string
  message?: string
}

/** Messages that wait to be read. With more of them the channel closes itself with 4008: a WebSocket cannot be told to wait. */
const MAX_UNREAD = 10_000

/**
 * A WebSocket. `for await (const message of channel)` reads its messages until it is closed. Text that is JSON comes parsed, other text as text, and bytes as
 * an `ArrayBuffer`.
 */
export class Channel<Received = unknown, Sent = unknown> implements AsyncIterable<Received> {
  /** Why it was closed: 1012 asks to connect again, 1006 is a connection that broke. */
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #socket: SocketLike
  readonly #unread: Received[] = []
  #wake = () => {}
  #isClosed = false

  constructor(socket: SocketLike) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#take(data))
    this.closed = new Promise((resolve) => {
      socket.addEventListener('close', ({ code = 1006, reason = '' }) => {
        this.#isClosed = true
        this.#wake()
        resolve({ code, reason })
      })
    })
  }

  /** @throws Unreachable when there is no handshake */
  static async open<Received, Sent>(socket: SocketLike, url: string): Promise<Channel<Received, Sent>> {
    socket.binaryType = 'arraybuffer'
    const channel = new Channel<Received, Sent>(socket)
    await new Promise<void>((resolve, reject) => {
      const refuse = ({ message, reason }: SocketEvent) =>
        reject(new Unreachable('UNREACHABLE', `${url} did not open: ${message || reason || 'no handshake'}`, 1))
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', refuse)
      socket.addEventListener('close', refuse)
    })
    return channel
  }

  /** Sends text and bytes as they are, anything else as JSON. */
  send(message: Sent): void {
    const isPlain = typeof message === 'string' || message instanceof Uint8Array
    this.#socket.send(isPlain ? message : JSON.stringify(message))
  }

  /** @param code 1000, or 4000 to 4999 */
  close(code = 1000, reason = ''): void {
    this.#socket.close(code, reason)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Received, void, void> {
    try {
      for (;;) {
        while (this.#unread.length > 0) yield this.#unread.shift() as Received
        if (this.#isClosed) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      this.close()
    }
  }

  #take(data: unknown): void {
    if (this.#unread.length >= MAX_UNREAD) return this.close(4008, 'Too many messages are unread')
    this.#unread.push((typeof data === 'string' ? parsed(data) : data) as Received)
    this.#wake()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // It is text.
    return text
  }
}

/** What a route is, beside its method and path. */
interface RouteFacts {
  /** It takes an `Idempotency-Key`. */
  isKeyed?: boolean
  /** A text is sent as it is, and not as JSON. */
  isRaw?: boolean
  /** It takes forms alone. */
  isForm?: boolean
}

/** Sends requests: the part of the client that is the same for every service. */
class Transport {
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
    return new Call(this.#exchange(method, path, input, options, { isRaw: true }))
  }

  call<Answer, Failure>(
    method: string,
    path: string,
    input: Input = {},
    options: IdempotentOptions = {},
    facts: RouteFacts = {},
  ): Call<Answer, Failure> {
    const given = facts.isForm === true ? { files: {}, ...input } : input
    return new Call<Answer, Failure>(this.#exchange(method, targetOf(path, input), given, options, facts))
  }

  /**
   * Opens when it is read. A connection that breaks is opened again, as often as `retries` says since the last frame. It ends when the service ends
   * it, and leaving the loop closes it.
   */
  async *stream<Frame>(path: string, input: Input = {}, options: CallOptions = {}): AsyncGenerator<Frame> {
    const retries = options.retries ?? this.#options.retries ?? 2
    const headers = { accept: 'text/event-stream', ...options.headers }
    for (let failures = 0; ; ) {
      const response = await this.#exchange('GET', targetOf(path, input), {}, { ...options, headers }, {})
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
    input: Input,
    options: IdempotentOptions,
    facts: RouteFacts,
  ): Promise<Response> {
    const [body, type] = encodedBody(input, facts.isRaw === true)
    // A stream cannot be sent again.
    const isRepeatable = !(body instanceof ReadableStream)
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
        if (outcome.status < 400) return outcome
        if (outcome.status === 401 && canRefresh) {
          canRefresh = false
          const refused = token
          token = await this.#token(true)
          if (token !== undefined && token !== refused) {
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
    if (this.#cookies === undefined || this.#baseUrl === '') return
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

/** @param path `/users/:id`, `/files/*` */
function targetOf(path: string, { params = {}, query = {} }: Input): string {
  const filled = path
    .split('/')
    .map((segment) => {
      // A slash in it is one of the path.
      if (segment === '*') return encodeURIComponent(String(params['*'] ?? '')).replaceAll('%2F', '/')
      return segment.startsWith(':') ? encodeURIComponent(String(params[segment.slice(1)])) : segment
    })
    .join('/')
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each != null) search.append(name, textOf(each))
  }
  const text = search.toString()
  return text === '' ? filled : `${filled}?${text}`
}

/** The body with its type, which is undefined where `fetch` knows it. @param isRaw a text is sent as it is, and not as JSON */
function encodedBody({ body, files, contentType }: Input, isRaw: boolean): [RawBody | undefined, string | undefined] {
  if (body instanceof FormData || body instanceof URLSearchParams) return [body, undefined]
  if (files !== undefined) return [formOf(body, files), undefined]
  if (body === undefined) return [undefined, contentType]
  if (body instanceof Blob) return [body, contentType ?? (body.type || BYTES)]
  if (body instanceof ReadableStream || body instanceof Uint8Array || body instanceof ArrayBuffer) {
    return [body, contentType ?? BYTES]
  }
  if (isRaw && typeof body === 'string') return [body, contentType ?? 'text/plain']
  return [JSON.stringify(body), contentType ?? 'application/json']
}

const BYTES = 'application/octet-stream'

/** Values of a form are texts; a list is one field for each of its items. */
function formOf(body: unknown, files: Record<string, FormFile | readonly FormFile[]>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries((body ?? {}) as object)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each != null) form.append(name, typeof each === 'object' ? JSON.stringify(each) : String(each))
    }
  }
  for (const [field, value] of Object.entries(files)) {
    for (const file of (Array.isArray(value) ? value : [value]) as readonly FormFile[]) {
      if (file instanceof Blob) form.append(field, file)
      else {
        const { name, content, type } = file
        form.append(field, new Blob([content as Blob], type === undefined ? {} : { type }), name)
      }
    }
  }
  return form
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** JSON as its value, text as text, no body as undefined, and anything else as a `Blob`. */
async function contentOf(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (/[/+]json\b/i.test(type)) {
    const text = await response.text()
    return text === '' ? undefined : JSON.parse(text)
  }
  if (/^text\/|ndjson/i.test(type)) return response.text()
  const blob = await response.blob()
  return blob.size === 0 ? undefined : blob
}

/** Source: RFC 9110, section 9.2.2. */
const IDEMPOTENT_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
const TRY_AGAIN = new Set([408, 429, 502, 503, 504])
/** The first wait where the service names none. Each further one is twice as long, and up to half of it is left to chance. */
const FIRST_WAIT_MS = 200

/** @throws the reason of the signal */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Not `crypto.randomUUID`, which pages without TLS do not have. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

interface Cookie {
  value: string
  path: string
  endsMs: number
}

/** The cookies of one service, for where `fetch` keeps none. A browser shows none to it, so there it stays empty. */
class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  keep(response: Response): void {
    for (const line of response.headers.getSetCookie?.() ?? []) {
      const [pair = '', ...attributes] = line.split(';')
      const [name, value] = splitAt(pair)
      let path = '/'
      let endsMs = Number.POSITIVE_INFINITY
      let hasMaxAge = false
      for (const attribute of attributes) {
        const [key, text] = splitAt(attribute)
        const lower = key.toLowerCase()
        if (lower === 'path' && text.startsWith('/')) path = text
        else if (lower === 'max-age') {
          hasMaxAge = true
          endsMs = Date.now() + Number(text) * 1000
        } else if (lower === 'expires' && !hasMaxAge) endsMs = Date.parse(text)
      }
      if (endsMs > Date.now()) this.#cookies.set(name, { value, path, endsMs })
      else this.#cookies.delete(name)
    }
  }

  /** The header for a path; undefined when there is none to send. */
  headerFor(path: string): string | undefined {
    const sent: string[] = []
    for (const [name, cookie] of this.#cookies) {
      if (cookie.endsMs <= Date.now()) this.#cookies.delete(name)
      else if (path.startsWith(cookie.path)) sent.push(`${name}=${cookie.value}`)
    }
    return sent.length > 0 ? sent.join('; ') : undefined
  }
}

function splitAt(text: string): [name: string, value: string] {
  const at = text.indexOf('=')
  return at < 0 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

/** The `data` of the frames of server-sent events, parsed. Source: WHATWG HTML, section 9.2.6. */
async function* framesOf<Frame>(response: Response): AsyncGenerator<Frame, void, void> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      // A carriage return at the end may be the first half of a line's end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
        else if (line === '' && data.length > 0) {
          yield JSON.parse(data.join('\n')) as Frame
          data = []
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {
      // It has broken: there is nothing left to cancel.
    })
  }
}

// `Client`, which stands before all this in the file of a service, is made of it.
export { Transport }
