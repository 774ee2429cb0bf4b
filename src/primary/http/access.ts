// Who may ask: hosts, origins, pages, callers of `/system`, proxies.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import type { Operator } from '../../contracts/http-request.ts'
import { isLoopback, isSystemClosed } from '../../core/config/checks.ts'
import type { Settings } from '../../core/config/schema.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { withoutBlanks } from '../../core/http/http-error.ts'
import { plainAddress } from '../../core/http/network.ts'
import type { ClientRequest } from './library.ts'
import { SAFE_METHODS } from './request-head.ts'
import type { RouteZone } from './routes.ts'

/** Names that every browser and resolver takes for this machine. */
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'] as const

/**
 * The host names that a listener answers to. A page whose own name was pointed at this address (DNS rebinding) has the right origin for
 * the browser, and only its `Host` gives it away.
 */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>
  /** `.example.com` for `*.example.com`. */
  readonly #endings: readonly string[]
  readonly #isAny: boolean
  /** Clients send one spelling over and over: it is compared, and nothing is parsed. */
  #lastAllowed: string | null = null

  /** @param listed none: the loopback names and `bound` on a loopback address, else anything */
  constructor(listed: readonly string[], bound: string) {
    const names = listed.length === 0 && isLoopback(bound) ? [...LOOPBACK_NAMES, bracketed(bound)] : listed
    this.#isAny = names.length === 0 || names.includes('*')
    this.#names = new Set(names)
    this.#endings = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  }

  /** @param host the value of the header, with its port if it has one */
  allows(host: string): boolean {
    if (this.#isAny || host === this.#lastAllowed) return true
    const name = nameOf(host)
    if (!this.#names.has(name) && !this.#endings.some((end) => name.length > end.length && name.endsWith(end)))
      return false
    this.#lastAllowed = host
    return true
  }
}

/** Without the port and the dot of the root, in lower case. */
function nameOf(host: string): string {
  return host
    .toLowerCase()
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
}

/** IPv6 addresses have brackets in a URL. */
function bracketed(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `[${address}]` : address
}

/**
 * Cross-origin rules. Source: Fetch standard, section 3.3 (CORS protocol).
 * No origin is allowed unless listed; `*` allows all of them, and those without credentials: their tokens travel in a header.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>
  readonly #any: boolean

  /** Header lines of an answer to a listed origin, behind `access-control-allow-origin`. */
  readonly #lines: string

  /** @param hasCredentials pages of listed origins may send cookies */
  constructor(origins: readonly string[], hasCredentials: boolean) {
    this.#origins = new Set(origins)
    this.#any = this.#origins.has('*')
    const credentials = hasCredentials ? 'access-control-allow-credentials: true\r\n' : ''
    this.#lines = `${credentials}access-control-expose-headers: x-request-id, retry-after, idempotency-replayed\r\nvary: origin\r\n`
  }

  /**
   * Header lines for an answer to a request of this origin, empty for none. Where origins are listed every answer varies by origin, also
   * the answer to an origin that is not allowed: a cache must not give it to an origin that is.
   */
  headFor(origin: string): string {
    if (this.#any) {
      return origin === ''
        ? ''
        : 'access-control-allow-origin: *\r\naccess-control-expose-headers: x-request-id, retry-after, idempotency-replayed\r\n'
    }
    if (!this.allows(origin)) return 'vary: origin\r\n'
    return `access-control-allow-origin: ${origin}\r\n${this.#lines}`
  }

  /** Header lines that a preflight's answer has beside `headFor`. @param requestedHeaders the value of `access-control-request-headers` */
  preflightHead(origin: string, methods: readonly string[], requestedHeaders: string): string {
    if (!this.allows(origin)) return ''
    const headers = /^[\w\-, ]+$/.test(requestedHeaders) ? `access-control-allow-headers: ${requestedHeaders}\r\n` : ''
    return `access-control-allow-methods: ${methods.join(', ')}\r\naccess-control-max-age: 600\r\n${headers}`
  }

  get enabled(): boolean {
    return this.#origins.size > 0
  }

  allows(origin: string): boolean {
    return this.#any || this.#origins.has(origin)
  }
}

/** What a browser tells of the page that makes a request. */
interface PageHeaders {
  readonly host: string
  readonly origin: string
  /** `sec-fetch-site`. */
  readonly fetchSite: string
}

/**
 * True for a request that a page of another origin makes, and that `HTTP_CORS_ORIGINS` does not allow. Clients that are no browsers send
 * neither header. Source: RFC 6454, section 7, and the Fetch Metadata standard of the W3C.
 */
export function isForeignPage({ host, origin, fetchSite }: PageHeaders, cors: Cors): boolean {
  if (origin === '' && fetchSite === '') return false
  if (cors.allows(origin)) return false
  // A page without a referrer sends no origin with its own forms: the browser says whose it is.
  if (origin === 'null' && fetchSite === 'same-origin') return false
  return fetchSite === 'cross-site' || !isSameOrigin(origin, host)
}

/** The scheme is not compared: a proxy may change it. */
function isSameOrigin(origin: string, host: string): boolean {
  return origin === '' || origin === `http://${host}` || origin === `https://${host}`
}

/** The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed. Every other client can write into it what it likes. */
export class TrustedProxies {
  readonly #networks = new BlockList()
  readonly isEmpty: boolean

  /** @param networks addresses, or networks such as `10.0.0.0/8` and `fd00::/8` */
  constructor(networks: readonly string[]) {
    this.isEmpty = networks.length === 0
    for (const network of networks) {
      const [address, prefix] = network.split('/') as [string, string | undefined]
      const family = familyOf(address)
      if (prefix === undefined) this.#networks.addAddress(plainAddress(address), familyOf(plainAddress(address)))
      else this.#networks.addSubnet(address, Number(prefix), family)
    }
  }

  /**
   * The address of the client: that of the connection, or behind trusted proxies the rightmost address that is no trusted proxy.
   * @param peer address of the connection
   * @param forwardedFor the list of `X-Forwarded-For`; each proxy has put the address of its own peer at its end
   */
  clientOf(peer: string, forwardedFor: string): string {
    let client = plainAddress(peer)
    const hops = forwardedFor === '' ? [] : forwardedFor.split(',')
    while (hops.length > 0 && this.isTrusted(client)) {
      const next = plainAddress(withoutBlanks(hops.pop()!))
      // What no proxy writes is not believed: the last one that is known answers for it.
      if (isIP(next) === 0) break
      client = next
    }
    return client
  }

  /** @param peer address of a connection, or of a hop */
  isTrusted(peer: string): boolean {
    const address = plainAddress(peer)
    return isIP(address) !== 0 && this.#networks.check(address, familyOf(address))
  }
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

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
    const isOpen = this.#token === null && this.#readToken === null
    if (isOpen) return this.#isClosed || (this.#hasOwnPort && !isSystemAddress) ? null : 'anyone'
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
