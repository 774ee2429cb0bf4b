// Sessions of browsers, and which page may act for one.

import { createHash } from 'node:crypto'
import type { HttpContext } from '../contracts/http-request.ts'
import type { State } from '../contracts/state.ts'
import { readVariable } from '../core/config/plugin-variables.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { appMs } from '../core/schedule/clock.ts'
import { newSecret } from '../core/schemas/secret-fields.ts'
import { RequestContext } from './endpoint/context.ts'
import { sessionCookies } from './endpoint/cookies.ts'
import { PERSONAL } from './endpoint/reply.ts'

/** Of `new Sessions(state, options)`. */
export interface SessionOptions {
  /** Name of the cookie. Default `__Host-session`, and `session` without `secure`. */
  cookie?: string
  /** Milliseconds until a session ends, counted from its start, or from its last use with `rolling`; a positive integer. Default 86,400,000 (a day). */
  ttlMs?: number
  /** A request that reads the session puts off its end, and that of the cookie, at most once a minute. Default false. */
  rolling?: boolean
  /** `None` for pages of another site, which `HTTP_CORS_ORIGINS` has to name, with `HTTP_CORS_CREDENTIALS`. Default `Lax`. */
  sameSite?: 'Strict' | 'Lax' | 'None'
  /** False for browsers that reach the service without TLS by another name than localhost. Default true. */
  secure?: boolean
  /** Namespace of `state`. Default `sessions`. */
  namespace?: string
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses a request that may be forged: one that changes something, has the cookies of a browser, and was not made by a page of this
 * origin or of one that `HTTP_CORS_ORIGINS` names. `*` names none. Browsers of today send `Origin` with each such request.
 * Source: OWASP, Cross-Site Request Forgery Prevention (Fetch Metadata, with the origin where they are missing).
 * @throws HTTP_ORIGIN_REFUSED
 */
export function requireOwnPage({ method, headers }: Pick<HttpContext, 'method' | 'headers'>): void {
  if (SAFE_METHODS.has(method)) return
  const { origin, host = '', 'sec-fetch-site': site } = headers
  if (origin === undefined || origin === 'null') {
    if (site === 'same-origin') return
  } else if (origin === `https://${host}` || origin === `http://${host}` || isListed(origin)) return
  throw new HeddleError('HTTP_ORIGIN_REFUSED')
}

function isListed(origin: string): boolean {
  const listed = (readVariable('HTTP_CORS_ORIGINS') ?? '').split(',')
  return origin !== '*' && listed.some((each) => each.trim() === origin)
}

const ID = /^[\w-]{43}$/
const DAY_MS = 86_400_000
/** The end of a session is put off at most this often by a thread, milliseconds; of a short one, each tenth of its time. */
const RENEW_MS = 60_000
/** Sessions whose last renewal a thread remembers. */
const RENEWED_MAX = 10_000

/**
 * Sessions of browsers: a random id in a cookie, and what belongs to it in the tool `state`. Several plugins with the same options share
 * them. Everything here belongs to the handler whose `context` it gets.
 */
export class Sessions<Session extends object> {
  readonly #state: State
  readonly #options: Required<SessionOptions>
  /** Where in the state a session is, and where a new one is put. */
  readonly #place: { readonly namespace: string }
  readonly #newPlace: { readonly namespace: string; readonly ttlMs: number }
  /** When this thread has put off the end of a session last, by its key. */
  readonly #renewedMs = new Map<string, number>()

  /** @param state the tool: with `redis-state` the sessions are those of all replicas, and outlive the process */
  constructor(state: State, options: SessionOptions = {}) {
    const { secure = true, sameSite = 'Lax', ttlMs = DAY_MS, rolling = false, namespace = 'sessions' } = options
    this.#state = state
    // The prefix keeps other hosts of the domain from setting it.
    const { cookie = secure ? '__Host-session' : 'session' } = options
    this.#options = { secure, sameSite, ttlMs, rolling, namespace, cookie }
    this.#place = { namespace }
    this.#newPlace = { namespace, ttlMs }
    sessionCookies.add(cookie)
  }

  /** Begins a session with an id of its own, as after a login, and ends the one that the browser has had. */
  async start(context: HttpContext, session: Session): Promise<void> {
    const former = this.#keyOf(context)
    const id = newSecret()
    await this.#state.set(keyOfId(id), session, this.#newPlace)
    if (former !== null) await this.#state.delete(former, this.#place)
    this.#setCookie(context, id)
    tellOf(context, session)
  }

  /**
   * The session of the request; null when it has none, or it has ended.
   * @throws HTTP_ORIGIN_REFUSED for a request that changes something and that another site's page may have made
   */
  async read(context: HttpContext): Promise<Session | null> {
    const key = this.#keyOf(context)
    if (key === null) return null
    requireOwnPage(context)
    const session = (await this.#state.get(key, this.#place)) as Session | null
    if (session !== null) tellOf(context, session)
    if (session !== null && this.#options.rolling) await this.#renew(context, key, session)
    return session
  }

  /** Puts off the end of a session. One that was ended meanwhile is not begun again, and one that was changed is renewed by the next request. */
  async #renew(context: HttpContext, key: string, session: Session): Promise<void> {
    const nowMs = appMs()
    const renewedMs = this.#renewedMs.get(key)
    if (renewedMs !== undefined && nowMs - renewedMs < Math.min(RENEW_MS, this.#options.ttlMs / 10)) return
    if (!(await this.#state.compareAndSet(key, session, session, this.#newPlace))) return
    if (this.#renewedMs.size >= RENEWED_MAX) this.#renewedMs.clear()
    this.#renewedMs.set(key, nowMs)
    this.#setCookie(context, context.cookies[this.#options.cookie]!)
  }

  /** As `read`. @throws HTTP_AUTH_MISSING where `read` gives null */
  async require(context: HttpContext): Promise<Session> {
    const session = await this.read(context)
    if (session === null) throw new HeddleError('HTTP_AUTH_MISSING', 'Missing session')
    return session
  }

  /**
   * Replaces what belongs to the session, which keeps its end. `change` is called again when another request has changed it meanwhile.
   * @throws HTTP_AUTH_MISSING, HTTP_ORIGIN_REFUSED
   */
  async update(context: HttpContext, change: (session: Session) => Session): Promise<Session> {
    for (;;) {
      const session = await this.require(context)
      const next = change(structuredClone(session))
      if (await this.#state.compareAndSet(this.#keyOf(context)!, session, next, this.#place)) return next
    }
  }

  /** Ends the session, if there is one. @throws HTTP_ORIGIN_REFUSED */
  async end(context: HttpContext): Promise<void> {
    const key = this.#keyOf(context)
    if (key === null) return
    requireOwnPage(context)
    await this.#state.delete(key, this.#place)
    this.#setCookie(context, '', 0)
  }

  #setCookie(context: HttpContext, id: string, maxAgeSec = Math.trunc(this.#options.ttlMs / 1000)): void {
    const { cookie, secure, sameSite } = this.#options
    context.setCookie(cookie, id, { maxAgeSec, secure, sameSite })
    // A shared cache must not give it to others, whatever the handler has said.
    context.setHeader('cache-control', PERSONAL)
  }

  #keyOf(context: HttpContext): string | null {
    if (context instanceof RequestContext) {
      context.requireSessionKnown(this.#options.cookie)
      context.personalize()
    }
    const id = context.cookies[this.#options.cookie]
    return id !== undefined && ID.test(id) ? keyOfId(id) : null
  }
}

/** For the history. A test may have a context of its own. */
function tellOf(context: HttpContext, session: object): void {
  if (context instanceof RequestContext) context.session = session
}

/** Who reads the store does not learn the ids. */
const keyOfId = (id: string): string => createHash('sha256').update(id).digest('base64url')
