// What a handler sees of its request, and sets for its answer.
import type { TransactionOptions, Tx } from '../../contracts/db.ts'
import type { Hook } from '../../contracts/http.ts'
import type {
  CookieOptions,
  FileOptions,
  HttpContext,
  Operator,
  UploadedFile,
  User,
} from '../../contracts/http-request.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { hasLine, headerName, headerText, isToken, locationText, withoutLine } from '../../core/http/http-error.ts'
import { optionsFault, READ_ONLY } from '../../stores/sql/database.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { PluginTransactions } from '../effects/transactions.ts'
import { cookieKeys, parseCookies } from './cookies.ts'
import { sendFile } from './files/file-answer.ts'
import { parseForm } from './input/parse.ts'
import { PERSONAL, type Reply } from './reply.ts'
import type { ServedRoute } from './route.ts'
import type { BodySource } from './stream/body-source.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

const COOKIE_VALUE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/

const NO_BYTES = Buffer.alloc(0)
const NO_FILES: readonly UploadedFile[] = Object.freeze([])

/** Headers that only the listener sets: values of a plugin are dropped. */
const LISTENERS_OWN = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'date',
  'upgrade',
  'keep-alive',
  'trailer',
  'x-request-id',
  'x-content-type-options',
])

interface AnswerSoFar {
  readonly status: number
  readonly head: string
  readonly binary: Uint8Array | null
}

const varyByCookie = (vary: string): string =>
  /(?:^|[,\s])(?:cookie|\*)(?:$|[,\s])/i.test(vary) ? vary : vary === '' ? 'cookie' : `${vary}, cookie`

function userOfToken(claims: object | undefined): User | null {
  const { sub } = (claims ?? {}) as { sub?: unknown }
  const isId = (typeof sub === 'string' && sub !== '') || typeof sub === 'number'
  return isId ? { id: String(sub) } : null
}

/** What it needs of its thread. */
interface ContextThread {
  /** HTTP_MAX_KEYS. */
  readonly maxKeys: number
  readonly effects: {
    readonly transactions: PluginTransactions
    /** HTTP_HANDLER_TIMEOUT_MS. */
    readonly timeoutMs: number
  }
}

/** A request whose answer is to be stored. */
interface KeyedRequest {
  readonly claim: {
    commit: <T>(
      route: string,
      work: (tx: Tx) => Promise<T>,
      replyTo: KeyedRequest['replyTo'],
      options?: TransactionOptions,
    ) => Promise<T>
  }
  /** What a result of the handler means. */
  readonly replyTo: (result: unknown) => Promise<Reply>
  /** The cookies by which its sender may be known; null where that is known otherwise. */
  readonly cookies: readonly string[] | null
}

/** The handler's view of one request, and its settings for the answer. */
export class RequestContext implements HttpContext {
  body: unknown
  files: readonly UploadedFile[] = NO_FILES
  /** Set while the answer of a request with an `Idempotency-Key` is not stored. */
  keyed: KeyedRequest | null = null
  /** The hook that is running; null for none. Undefined, like the next, on a route without hooks, which is not to pay for them. */
  declare hook: Hook | null | undefined
  /** Since when a hook that has not ended has taken too long, by `performance.now()`. */
  declare hookDeadlineMs: number | undefined
  /** Whom `http.identify` has named, null for a stranger. Undefined where nobody asked, and of a route without it, which is not to pay for it. */
  declare identified: User | null | undefined
  /** The claims of its token, on a route with `authValidator`. */
  declare token: object | undefined
  /** The answer depends on the session of who asks. */
  declare isPersonal: boolean | undefined
  /** Whom a hook has set. */
  declare ownUser: User | null | undefined
  readonly #thread: ContextThread
  readonly #frame: RequestFrame
  readonly #route: ServedRoute
  #query: Readonly<Record<string, string | string[]>> | undefined
  #cookies: Readonly<Record<string, string>> | undefined
  #status = 0
  #guardHasAnswered = false
  /** `name: value` lines of the answer, except those that every answer has. */
  #head = ''
  #binary: Uint8Array | null = null
  #file: BodySource | null = null
  #abort: AbortController | undefined
  #aborted = false

  constructor(thread: ContextThread, frame: RequestFrame, route: ServedRoute) {
    this.#thread = thread
    this.#frame = frame
    this.#route = route
  }

  get method(): string {
    return this.#frame.method
  }
  get path(): string {
    return this.#frame.path
  }
  get route(): string {
    return this.#route.template.text
  }
  get headers(): Readonly<Record<string, string>> {
    return this.#frame.headers
  }
  get query(): Readonly<Record<string, string | string[]>> {
    if (this.#query === undefined) {
      const query = {}
      parseForm(this.#frame.query, query, 'query')
      this.#query = query
    }
    return this.#query
  }
  get cookies(): Readonly<Record<string, string>> {
    this.#cookies ??= parseCookies(this.#frame.header('cookie'))
    return this.#cookies
  }
  /** Looking it up costs a system call, which is left out for routes whose functions do not read it (`Hooks.ignoresAddress`). */
  get ip(): string {
    const { ip } = this.#frame
    // Where it counts attempts, an empty one would make one client of all.
    if (ip === '') throw new HeddleError('HTTP_INTERNAL', "The request came without its client's address")
    return ip
  }
  get scheme(): 'http' | 'https' {
    return this.#frame.isHttps === true ? 'https' : 'http'
  }
  get requestId(): string {
    return this.#frame.requestId
  }
  get rawBody(): Buffer {
    return (this.#frame.body as Buffer | null) ?? NO_BYTES
  }
  get user(): User | null {
    this.ownUser ??= this.identified ?? userOfToken(this.token)
    return this.ownUser
  }
  /** Hooks may have a user of their own. Nothing but their routes gets to know it. */
  set user(user: User | null) {
    this.ownUser = user
  }
  /** A session was looked for: no cache may give the answer to others, unless the handler says that it may. */
  personalize(): void {
    if (this.isPersonal) return
    this.isPersonal = true
    this.setHeader('vary', /^vary: ([^\r]*)/m.exec(this.#head)?.[1] ?? '')
    if (!hasLine(this.#head, 'cache-control')) this.setHeader('cache-control', PERSONAL)
  }
  /** Whose session it is. */
  set session(session: object) {
    this.#frame.claims ??= session
  }
  /** What ends a stream or a WebSocket with its token: its claims, or a user who has their `exp`. */
  get tokenHeld(): object | undefined {
    if (this.token !== undefined) return this.token
    const { identified } = this
    return identified != null && 'exp' in identified ? identified : undefined
  }
  /** Whose answer it is must have been known before the stored one was looked up. @throws HTTP_HOOK_INVALID */
  requireSessionKnown(cookie: string): void {
    const cookies = this.keyed?.cookies ?? null
    if (cookies === null || cookies.includes(cookie)) return
    throw new HeddleError(
      'HTTP_HOOK_INVALID',
      `The handler of a request with an Idempotency-Key reads sessions of the cookie ${cookie}, which were not known before: write \`new Sessions(…)\` in the constructor of the plugin`,
    )
  }
  get operator(): Operator | null {
    return this.#frame.operator ?? null
  }

  /** Made when a handler first reads it: most never do. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#aborted) this.#abort.abort()
    }
    return this.#abort.signal
  }

  setStatus(status: number): void {
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new HeddleError('HTTP_STATUS_INVALID', `A status is an integer from 200 to 599, not ${String(status)}`)
    }
    this.#status = status
  }

  setHeader(name: string, value: string): void {
    const lower = headerName(name)
    const text = headerText(lower, value)
    if (LISTENERS_OWN.has(lower)) return
    // Setting a header again replaces it; only cookies add up.
    if (lower !== 'set-cookie') this.#head = withoutLine(this.#head, lower)
    this.#head += `${lower}: ${lower === 'vary' && this.isPersonal ? varyByCookie(text) : text}\r\n`
  }

  /** Sets `cache-control`, unless the answer is for one browser alone. */
  setCaching(value: string): void {
    if (!this.isPersonal) this.setHeader('cache-control', value)
  }

  setCookie(name: string, value: string, options: CookieOptions = {}): void {
    if (!isToken(name)) throw new HeddleError('HTTP_HEADER_INVALID', `${toJson(name)} is no cookie name`)
    const sent = options.signed === true ? cookieKeys().sign(name, value) : value
    const encoded = COOKIE_VALUE.test(sent) ? sent : encodeURIComponent(sent)
    const { maxAgeSec, path = '/', domain, httpOnly = true, secure = true, sameSite = 'Lax' } = options
    for (const part of [path, domain ?? '']) {
      if (part.includes(';')) throw new HeddleError('HTTP_HEADER_INVALID', 'An attribute of a cookie has a semicolon')
    }
    let cookie = `${name}=${encoded}; Path=${path}; SameSite=${sameSite}`
    if (maxAgeSec !== undefined) cookie += `; Max-Age=${Math.trunc(maxAgeSec)}`
    if (domain !== undefined) cookie += `; Domain=${domain}`
    if (httpOnly) cookie += '; HttpOnly'
    if (secure) cookie += '; Secure'
    this.setHeader('set-cookie', cookie)
  }

  signedCookie(name: string): string | null {
    const sent = this.cookies[name]
    return sent === undefined ? null : cookieKeys().verify(name, sent)
  }

  redirect(location: string, status: 301 | 302 | 303 | 307 | 308 = 302): undefined {
    this.setHeader('location', locationText(location))
    this.setStatus(status)
  }

  sendBinary(bytes: Uint8Array, type: string): undefined {
    // Any other value would fail only where the answer crosses the threads, and bring down the lane.
    if (!(bytes instanceof Uint8Array)) throw new TypeError('sendBinary takes a Uint8Array')
    this.setHeader('content-type', type)
    this.#binary = bytes
  }

  sendFile(path: string | URL, options: FileOptions = {}): Promise<undefined> {
    return sendFile(path, options, this)
  }

  // Not async, which would cost three more promises.
  commit<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T> {
    const before: AnswerSoFar = { status: this.#status, head: this.#head, binary: this.#binary }
    const { keyed, route } = this
    try {
      const fault = options === undefined ? null : optionsFault(options)
      if (fault !== null) throw new DbError('other', fault)
      if (options?.readOnly) throw new DbError('other', `${READ_ONLY}: context.commit writes`)
      // Functions without names of their own: the transpiler's naming costs more than the call.
      const done =
        keyed !== null
          ? keyed.claim.commit(route, (tx) => this.#run(work, tx, before), keyed.replyTo, options)
          : this.#thread.effects.transactions.run(this.plugin, route, (tx) => this.#run(work, tx, before), options)
      return done.then(undefined, (thrown) => {
        // Rolled back, like the rows.
        this.#restore(before)
        throw thrown
      })
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  /** The database may run it again: what the run before has set is not set. */
  #run<T>(work: (tx: Tx) => Promise<T>, tx: Tx, before: AnswerSoFar): Promise<T> {
    this.#restore(before)
    return work(tx)
  }

  #restore({ status, head, binary }: AnswerSoFar): void {
    this.#status = status
    this.#head = head
    this.#binary = binary
  }

  // ── for the runtime ───────────────────────────────────────────────────────

  /** Without the question mark. */
  get rawQuery(): string {
    return this.#frame.query
  }
  /** Answers with bytes of the type that is set; none, of no type, are no body. */
  sendBytes(bytes: Uint8Array): undefined {
    this.#binary = bytes
    if (bytes.byteLength > 0 && !hasLine(this.#head, 'content-type'))
      this.setHeader('content-type', 'application/octet-stream')
  }
  /** Forgets the status and the body that are set, and keeps the headers: a thrown answer takes their place. */
  dropBody(): void {
    this.#status = 0
    this.dropBinary()
  }
  /** Forgets the body that is set: another one takes its place. */
  dropBinary(): void {
    this.#file?.close()?.catch(() => {
      // Nothing was read of it yet.
    })
    this.#binary = null
    this.#file = null
    this.#head = withoutLine(this.#head, 'content-type')
  }

  /** Takes over an answer of the runtime. @returns its body, as a handler would return it */
  adopt({ status, head, body }: Reply): unknown {
    this.dropBody()
    if (head !== this.#head) {
      for (const line of head.split('\r\n')) {
        const at = line.indexOf(': ')
        if (at > 0) this.setHeader(line.slice(0, at), line.slice(at + 2))
      }
    }
    this.setStatus(status)
    return parseJson(body as string)
  }
  /** Whose handler it is for. */
  get plugin(): string {
    return this.#route.owner.name
  }
  /** Keys that a JSON body may have. */
  get maxKeys(): number {
    return this.#thread.maxKeys
  }
  /** The time that the route gives a request, milliseconds. */
  get limitMs(): number {
    return this.#route.options.timeoutMs ?? this.#thread.effects.timeoutMs
  }
  /** Whether the answer's body was decided, by `redirect`, `sendBinary` or a file. */
  get hasBody(): boolean {
    return this.#binary !== null || (this.#status >= 300 && this.#status < 400 && hasLine(this.#head, 'location'))
  }
  get chosenStatus(): number {
    return this.#status
  }
  get routeStatus(): number {
    return this.#guardHasAnswered ? 200 : (this.#route.options.status ?? 200)
  }
  /** A guard answers: the status of the route is that of its handler. */
  guardAnswers(): void {
    this.#guardHasAnswered = true
  }
  get head(): string {
    return this.#head
  }
  get binary(): Uint8Array | null {
    return this.#binary
  }
  /** Only together with `binary`. */
  get file(): BodySource | null {
    return this.#file
  }
  /** Answers with a body in pieces. Its content type must be set. It is closed when it has been sent. */
  sendSource(file: BodySource): void {
    this.#file = file
    this.#binary = NO_BYTES
  }
  get isAborted(): boolean {
    return this.#aborted
  }
  abort(): void {
    this.#aborted = true
    this.#abort?.abort()
  }
}
