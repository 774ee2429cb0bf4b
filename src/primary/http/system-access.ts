import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Operator } from '../../contracts/http-request.ts'
import type { Settings } from '../../core/config/schema.ts'
import { isSystemClosed } from '../../core/config/system-closed.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import type { ClientRequest } from './library.ts'
import type { RouteZone } from './route-table.ts'
import { SAFE_METHODS } from './safe-methods.ts'

/** The cookie in which browsers send the token. `domains/system/plugins/log-in.ts` sets it. */
const COOKIE = /(?:^|;[ \t]*)heddle_system=([^;\s]*)/
const BEARER = /^Bearer +([^\s]+)$/i
/** In which the pages under `/system` send `pageKey`: a header, and for WebSockets, which send none of their own, a cookie. */
const PAGE_HEADER = 'x-heddle-page'
const PAGE_COOKIE = /(?:^|;[ \t]*)heddle_page=([^;\s]*)/

/** Who may use the routes under `/system`, and where they are served. */
export class SystemAccess {
  readonly #token: Buffer | null
  readonly #readToken: Buffer | null
  readonly #hasOwnPort: boolean
  readonly #isClosed: boolean
  /**
   * Lets the pages at an address of their own reach the application through it. Only who may read `/system` is told it, and no link and
   * no form sends a header: so an answer of the application is never shown as a page of that address.
   */
  readonly pageKey = randomBytes(16).toString('base64url')

  constructor(settings: Settings) {
    const { systemToken, systemReadToken, systemPort } = settings
    this.#isClosed = isSystemClosed(settings)
    this.#token = digestOf(systemToken)
    this.#readToken = digestOf(systemReadToken)
    this.#hasOwnPort = systemPort !== undefined
  }

  get #isOpen(): boolean {
    return this.#token === null && this.#readToken === null
  }

  /** False for a route that a listener does not have. With a port of its own, or closed, only the health of `/system` is public. */
  isServed(zone: RouteZone, isSystemAddress: boolean): boolean {
    if (this.#isClosed) return zone === 'application' || zone === 'health'
    if (!this.#hasOwnPort) return true
    return isSystemAddress ? zone !== 'application' : zone === 'application' || zone === 'health'
  }

  /** Why nothing is at a path that has no route here. Where /system has a port of its own, the public is told of no other. */
  missing(path: string): ErrorCode {
    return this.#isClosed && path.startsWith('/system/') ? 'HTTP_SYSTEM_CLOSED' : 'HTTP_NOT_FOUND'
  }

  /** Who sends a request, by its headers; null for a stranger. */
  operatorOf(authorization: string, cookie: string, isSystemAddress: boolean): Operator | null {
    if (this.#isOpen) return this.#isClosed || (this.#hasOwnPort && !isSystemAddress) ? null : 'anyone'
    return this.#holderOf(BEARER.exec(authorization)?.[1]) ?? this.#holderOf(COOKIE.exec(cookie)?.[1])
  }

  /** True for a request of such a page, which is meant for the application. @param isHandshake of a WebSocket */
  isForApplication(req: ClientRequest, isHandshake: boolean): boolean {
    if (req.getHeader(PAGE_HEADER) === this.pageKey) return true
    return isHandshake && PAGE_COOKIE.exec(req.getHeader('cookie'))?.[1] === this.pageKey
  }

  /** True for a request that has a token, right or wrong. */
  hasToken(authorization: string, cookie: string): boolean {
    return BEARER.test(authorization) || COOKIE.test(cookie)
  }

  /** Why a request is refused, or null. */
  refusal(zone: RouteZone, method: string, operator: Operator | null, hasCredentials: boolean): ErrorCode | null {
    if (zone === 'application' || zone === 'health') return null
    const isSafe = SAFE_METHODS.has(method)
    // The page where the token is entered. Sending the token there changes nothing.
    if (zone === 'login' && (isSafe || operator !== null)) return null
    if (operator === null) return hasCredentials ? 'HTTP_AUTH_INVALID' : 'HTTP_AUTH_MISSING'
    return operator === 'read-token' && !isSafe ? 'HTTP_READ_ONLY' : null
  }

  /** Digests are compared, in constant time: neither the length nor the first wrong character shows. */
  #holderOf(token: string | undefined): Operator | null {
    const digest = digestOf(token)
    if (digest === null) return null
    const isFull = this.#token !== null && timingSafeEqual(digest, this.#token)
    const isReader = this.#readToken !== null && timingSafeEqual(digest, this.#readToken)
    if (isFull) return 'token'
    return isReader ? 'read-token' : null
  }
}

function digestOf(token: string | undefined): Buffer | null {
  return token === undefined ? null : createHash('sha256').update(token).digest()
}

/** For a browser that wants a page without the token: it goes on to the login. */
export function loginPage(path: string): string {
  const url = `/system/login?next=${encodeURIComponent(path)}`
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${url}"><title>Log in</title><p><a href="${url}">Log in</a></p>\n`
}
