// Takes a request in, or says why not.
import type { SystemDump } from '../../contracts/registry.ts'
import type { RequestTracing, RequestWatcher, TraceContext } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import { isLoopback } from '../../core/config/checks.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import { errorReply } from '../../runtime/endpoint/reply.ts'
import { METHODS, RequestFrame } from '../../transport/frames/request-frame.ts'
import type { Log } from '../logging/process-log.ts'
import { pagesAddress } from '../logging/terminal.ts'
import { Cors, isForeignPage, loginPage, SystemAccess, TrustedProxies } from './access.ts'
import { handshakeFault, openSockets, upgradeRequired } from './client-socket.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { addressOf, draining, Exchange } from './exchange.ts'
import type { ClientRequest, ClientResponse, HandshakeContext, HttpLibrary } from './library.ts'
import { chooseLibrary, ListenSocket, type ListenSocketOptions, shortTurn } from './listening.ts'
import { places } from './places.ts'
import { pipelining, Refusals, refuseFraming } from './refusals.ts'
import { DROPPED_BODY_MAX_BYTES, PendingBodies, StreamedBodies, StreamedBody, whenRead } from './request-body.ts'
import { faultOfPath, HeadScan, makeRequestId, requestIdOf, SAFE_METHODS } from './request-head.ts'
import type { RouteEntry, RouteTable, RouteZone } from './routes.ts'
import { longAnswers } from './sent-body.ts'

/** The request line and headers of one request at most, as the library counts them and as we do. */
export const HEADERS_MAX_BYTES = 16_384
/** A body that is not longer goes to a fetch handler with the request; a longer one while it comes. */
const WHOLE_BODY_MAX_BYTES = 65_536
/** A drain goes on when no request has come for this long, milliseconds: the connections that are still open are idle. */
export const LINGER_QUIET_MS = 250
const LINGER_CHECK_MS = 5
/** How often deadlines are checked, milliseconds: an answer is late by this much at most. */
const SWEEP_MS = 100
/** Clients that have no body for one of these say so: `content-length: 0` (RFC 9110, section 8.6). */
const MAY_HAVE_BODY = new Set(['POST', 'PUT', 'PATCH'])

/** The option `close` of `connection` (RFC 9112, section 9.6). uWebSockets.js takes each value of its length for it. */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i
const CLOSE_LENGTH = 'close'.length
const HTTPS = /^https(?:$|[ \t,])/i
/** Milliseconds. */
const FORWARDING_LOOK_MS = 1000
const FORWARDING_NOT_BELIEVED =
  'A request has an X-Forwarded-For that is not believed, because its sender is not in HTTP_TRUSTED_PROXIES. If that is your proxy, all its visitors have one address, for limits too. This is told once'

const TRAILERS =
  'The request announces trailers, which this listener does not take: send it without them, or run the service with HTTP_LISTENER=node'
const CROWD = 'Connections are closed: one address has half of those that there may be'
const HOST_REFUSED = 'Requests are refused with 421: their host is not among HTTP_ALLOWED_HOSTS'
const PIPELINED =
  'A client sent a request before it had the answer to its last one: its connection was closed without that'
const LEFT_UNREAD = 'Clients are cut off that read nothing: the long answers that wait for all clients are too many'
const HEADER_LOST = 'A request has a header beyond ASCII: such bytes at the start or the end of a value are lost'

/** Takes requests for the lanes, or for the plugins of the primary. */
interface RequestGate {
  /** False when it is to be refused. A lane takes a copy of the body. */
  send(frame: RequestFrame, exchange: Exchange, isLasting: boolean): boolean
}

export interface ListenerOptions {
  settings: Settings
  log: Log
  routes: RouteTable
  lanes: RequestGate & { refusalOf?(routeNumber: number): string | undefined }
  /** Its `expire` is called regularly. */
  local: RequestGate & { expire(nowMs: number): void }
  /** Crowded when so many events wait that no new request should be begun. */
  hub: { readonly isCrowded: boolean }
  /** Booting while a plugin boots that the others have not waited for: a path without a route may be its. */
  health: { readonly isBooting: boolean }
}

/** The HTTP front. */
export class Listener {
  readonly connectionLimit: ConnectionLimit
  /** Connections that were closed because the framing of a request is not certain. */
  readonly framingFaults: Refusals
  readonly #options: ListenerOptions
  /** What else strangers can cause at will. */
  readonly #refusals: Refusals
  readonly #cors: Cors
  readonly #scan = new HeadScan()
  readonly #bodies = new PendingBodies()
  readonly #streamedBodies = new StreamedBodies()
  readonly #methodNumbers = new Map<string, number>(METHODS.map((method, number) => [method, number]))
  readonly #listenSockets: ListenSocket[] = []
  readonly #system: SystemAccess
  readonly #proxies: TrustedProxies
  /** Set before anything is served. */
  #library!: HttpLibrary
  /** The port of `/system`; null when it has none of its own. */
  systemPort: number | null = null
  #sweepTimer: NodeJS.Timeout | undefined
  /** While it drains: requests are still served, each with an answer that closes its connection. */
  #isLingering = false
  /** Ends that. */
  #refusing: NodeJS.Timeout | undefined
  /** While it drains. */
  #lastRequestMs = 0
  /** When it is looked again whether the proxy that a request came through is a trusted one, by `exactMs`. */
  #nextForwardingMs = 0
  /** Null before it serves. */
  serving: NonNullable<SystemDump['listener']> | null = null
  state: 'starting' | 'open' | 'draining' = 'starting'
  /** Null while tracing is off. */
  tracing: RequestTracing | null = null
  /** Who hears of each request. */
  readonly watchers: RequestWatcher[] = []

  constructor(options: ListenerOptions) {
    const { settings, log } = options
    this.#options = options
    this.connectionLimit = new ConnectionLimit(log)
    this.framingFaults = new Refusals(log, 'A connection was closed: ')
    this.#refusals = new Refusals(log)
    this.#cors = new Cors(settings.httpCorsOrigins, settings.httpCorsCredentials)
    this.#system = new SystemAccess(settings)
    this.connectionLimit.onCrowd = (ip) => this.#refusals.note(CROWD, { ip })
    this.connectionLimit.isProxy = (address) => this.#proxies.isTrusted(address)
    places.configure(settings)
    places.onRefused = (what, ip) => this.#refusals.note(what, { ip })
    longAnswers.onCutOff = ({ route }) => this.#refusals.note(LEFT_UNREAD, { route })
    pipelining.onFound = (exchange) => this.#refusals.note(PIPELINED, fieldsOf(exchange))
    this.#proxies = new TrustedProxies(settings.httpTrustedProxies)
  }

  /** Binds the ports and resolves with the public one. @throws HTTP_LISTEN when a port is taken */
  async listen(isExclusive: boolean): Promise<number> {
    const { settings } = this.#options
    const { httpListener, httpKeepAliveMs, httpHost, httpPort, httpAllowedHosts, systemPort, systemHost } = settings
    const { library, missing, shortfall } = await chooseLibrary(httpListener, httpKeepAliveMs)
    if (shortfall !== null) this.#options.log('INFO', shortfall, 'http')
    this.#library = library
    const open = (options: ListenSocketOptions): Promise<number> => {
      const listenSocket = new ListenSocket(library.createApp(), options)
      this.#listenSockets.push(listenSocket)
      this.#serve(listenSocket)
      return listenSocket.open()
    }
    const port = await open({
      name: 'HTTP',
      host: httpHost,
      port: httpPort,
      isExclusive,
      allowedHosts: httpAllowedHosts,
    })
    let application: NonNullable<SystemDump['listener']>['application'] | null = null
    if (systemPort !== undefined) {
      const allowedHosts = isLoopback(systemHost) ? [] : httpAllowedHosts
      const own = { name: 'SYSTEM', host: systemHost, port: systemPort, isExclusive: true, allowedHosts } as const
      this.systemPort = await open(own)
      application = { url: pagesAddress(settings, port, null), key: this.#system.pageKey }
    }
    this.serving = {
      library: library.name,
      why: missing ?? (httpListener === 'auto' ? null : `HTTP_LISTENER=${httpListener}`),
      ...(application === null ? {} : { application }),
    }
    this.connectionLimit.guard(this.#listenSockets[0]!)
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS)
    this.state = 'open'
    return port
  }

  #serve(listenSocket: ListenSocket): void {
    const { app } = listenSocket
    const { routes } = this.#options
    app.serve({
      onRequest: (res, req) => this.#onRequest(listenSocket, res, req),
      onConnection: (change, peer) => this.connectionLimit.count(change, listenSocket.isSystem ? undefined : peer),
      onFramingFault: (fault, ip) => this.framingFaults.note(fault, { ip }),
    })
    // Only where there is a WebSocket, because it costs every GET a little.
    if (routes.hasSockets) this.#serveSockets(listenSocket)
    else {
      const { onFirstSocket } = routes
      routes.onFirstSocket = () => {
        onFirstSocket()
        this.#serveSockets(listenSocket)
      }
    }
  }

  /**
   * Takes no new connections, and closes each connection with its next answer: its client goes elsewhere then, and one that is refused has failed. So
   * requests on open connections are served for `lingerMs`, or until `refuse`. Resolves when none is open, or none has sent a request for a while, or
   * that time is over.
   */
  async drain(lingerMs: number): Promise<void> {
    const deadlineMs = steadyMs() + lingerMs
    this.state = 'draining'
    this.#isLingering = lingerMs > 0
    this.#lastRequestMs = steadyMs()
    await shortTurn()
    for (const listenSocket of this.#listenSockets) listenSocket.shut()
    // Not before: the clients of these answers would come back here.
    draining.on = true
    const isReceiving = (): boolean => this.#bodies.open.size + this.#streamedBodies.open.size > 0
    const isQuiet = (): boolean => steadyMs() - this.#lastRequestMs >= LINGER_QUIET_MS && !isReceiving()
    await until(() => this.connectionLimit.open === 0 || isQuiet(), deadlineMs, { checkMs: LINGER_CHECK_MS })
    // Who has sent nothing for a while may do so just now.
    this.#refusing = setTimeout(() => this.refuse(), deadlineMs - steadyMs()).unref()
  }

  /** What still comes on open connections is answered with 503. */
  refuse(): void {
    clearTimeout(this.#refusing)
    this.#isLingering = false
  }

  /** Ends all connections. */
  close(): void {
    clearInterval(this.#sweepTimer)
    for (const listenSocket of this.#listenSockets) listenSocket.close()
  }

  #sweep(): void {
    if (this.state === 'open') this.connectionLimit.check()
    const nowMs = steadyMs()
    this.#bodies.expire(nowMs)
    this.#streamedBodies.check(nowMs)
    this.#options.local.expire(nowMs)
    for (const socket of openSockets) socket.expire(nowMs)
  }

  #serveSockets(listenSocket: ListenSocket): void {
    listenSocket.app.serveSockets({
      limitBytes: this.#options.settings.httpBodyLimit,
      onHandshake: (res, req, context) => this.#onRequest(listenSocket, res, req, context),
      onGone: () => this.connectionLimit.count(-1),
      onFault: (error) => this.#logFault(error),
    })
  }

  /** Everything about a request must be read before this returns: `req` is gone then. */
  #onRequest(
    listenSocket: ListenSocket,
    res: ClientResponse,
    req: ClientRequest,
    socketContext: HandshakeContext | null = null,
  ): void {
    const scan = this.#scan
    const method = req.getCaseSensitiveMethod()
    const path = req.getUrl()
    const named = this.#options.routes.find(method, path)
    // What handles a body looks for its type.
    const wantsText = named?.ignoresHeaders !== true || MAY_HAVE_BODY.has(method)
    scan.read(req, wantsText)
    if (!wantsText && !scan.isUnframed) scan.read(req, true)
    const requestId = scan.requestId === '' ? makeRequestId() : requestIdOf(scan.requestId)
    const fault = scan.framingFault()
    if (fault !== null) {
      this.framingFaults.note(fault, { ip: addressOf(res) })
      return refuseFraming(this.#library, res, method, requestId, fault)
    }
    const corsHead = this.#cors.enabled && !isOpenToAll(named) ? this.#cors.headFor(scan.origin) : ''
    const isOurHost = listenSocket.hosts.allows(scan.host)
    const found = isOurHost ? named : null
    const isAtSystemAddress = listenSocket.isSystem && !this.#system.isForApplication(req, socketContext !== null)
    const route = found !== null && this.#system.isServed(found.zone, isAtSystemAddress) ? found : null
    const exchange = new Exchange(res, requestId, method, path, route, corsHead, this.watchers)
    if (!this.#proxies.isEmpty) exchange.forwarding = { proxies: this.#proxies, list: scan.forwardedFor }
    if (scan.forwardedFor !== '' && exchange.startMs >= this.#nextForwardingMs) this.#lookAtForwarding(res, exchange)
    if (requestId === scan.requestId) exchange.key = makeRequestId()
    if (!this.#library.isStrict) {
      pipelining.begun(exchange)
      if (scan.connection !== '') {
        exchange.isClosedByLibrary = scan.connectionLength === CLOSE_LENGTH
        exchange.isClosedAfter = exchange.isClosedByLibrary || CLOSE.test(scan.connection)
      }
      // A header with an empty name hides the headers behind it from the library: a body may follow that no header announced.
      if (scan.isUnframed && MAY_HAVE_BODY.has(method)) exchange.isLast = true
    }
    const trace = this.tracing === null ? NO_TRACE_CONTEXT : this.#trace(this.tracing, exchange, req)
    try {
      if (!isOurHost) {
        this.#refusals.note(HOST_REFUSED, { host: scan.host })
        return exchange.fail('HTTP_HOST_REFUSED')
      }
      // Browsers let any page send forms and open WebSockets, and send cookies along: the server must look who asks.
      const isGuarded = !SAFE_METHODS.has(method) || (route !== null && route.kind !== 'endpoint')
      if (isGuarded && isForeignPage(scan, this.#cors) && !isOpenToAll(route))
        return exchange.fail('HTTP_ORIGIN_REFUSED')
      exchange.isAtSystemAddress = isAtSystemAddress
      if (route !== null && route.zone !== 'application' && this.#isStranger(exchange, route.zone, req)) return
      if (route?.kind === 'socket' && !this.#isHandshake(req, exchange, socketContext)) return
      this.#admit(res, req, exchange, trace)
    } catch (error) {
      this.#onFault(exchange, error)
    }
  }

  /** True when a request for a route under `/system` was refused. Else the exchange knows who sends it. */
  #isStranger(exchange: Exchange, zone: RouteZone, req: ClientRequest): boolean {
    const { method } = exchange
    const authorization = req.getHeader('authorization')
    // Assistants are no browsers: what a page could make one send opens nothing.
    const cookie = zone === 'assistants' ? '' : req.getHeader('cookie')
    exchange.operator = this.#system.operatorOf(authorization, cookie, exchange.isAtSystemAddress)
    const code = this.#system.refusal(zone, method, exchange.operator, authorization !== '' || cookie !== '')
    if (code === null) return false
    if (exchange.operator === null && this.#system.hasToken(authorization, cookie))
      this.#refusals.note('Wrong tokens are sent to /system', { ip: exchange.clientAddress() })
    const isPage = method === 'GET' && req.getHeader('accept').includes('text/html')
    if (code === 'HTTP_READ_ONLY' || !isPage) exchange.fail(code)
    else exchange.answer(401, LOGIN_HEAD, loginPage(req.getUrl()))
    return true
  }

  /** A proxy that nobody has named makes one client of all its visitors: that is said once. The address costs a system call. */
  #lookAtForwarding(res: ClientResponse, { startMs }: Exchange): void {
    this.#nextForwardingMs = startMs + FORWARDING_LOOK_MS
    const peer = addressOf(res)
    if (this.#proxies.isTrusted(peer)) return
    this.#nextForwardingMs = Number.POSITIVE_INFINITY
    this.#refusals.note(FORWARDING_NOT_BELIEVED, { ip: peer })
  }

  /** True if a trusted proxy says that its client speaks TLS. @param forwardedProto the value of `x-forwarded-proto` */
  #isHttps(res: ClientResponse, forwardedProto: string): boolean {
    return !this.#proxies.isEmpty && HTTPS.test(forwardedProto) && this.#proxies.isTrusted(addressOf(res))
  }

  /** False when the request was answered, because it is no valid handshake. */
  #isHandshake(req: ClientRequest, exchange: Exchange, context: HandshakeContext | null): boolean {
    const { isUnframed } = this.#scan
    const fault = isUnframed ? handshakeFault(req, context) : 'HTTP_BAD_REQUEST'
    if (fault === 'HTTP_UPGRADE_REQUIRED') exchange.reply(upgradeRequired())
    else if (fault !== null) exchange.fail(fault, undefined, !isUnframed)
    else {
      const key = req.getHeader('sec-websocket-key')
      exchange.handshake = { key, context: context!, limitBytes: this.#options.settings.httpBodyLimit }
      return true
    }
    return false
  }

  #trace(tracing: RequestTracing, exchange: Exchange, req: ClientRequest): TraceContext {
    const { host, userAgent, traceparent, tracestate } = this.#scan
    const begun = tracing.begin(traceparent, tracestate, () => ({
      method: exchange.method,
      path: exchange.path,
      query: req.getQuery() ?? '',
      host,
      userAgent,
      requestId: exchange.requestId,
      route: exchange.route?.path ?? '',
      plugin: exchange.plugin,
    }))
    if (typeof begun === 'string') return begun
    exchange.span = begun
    return begun.traceContext
  }

  /** Thrown into the library, the error would end the process. */
  #onFault(exchange: Exchange, error: unknown): void {
    exchange.fail('HTTP_INTERNAL')
    this.#logFault(error)
  }

  #logFault(error: unknown): void {
    this.#options.log('ERROR', `A request was not taken in: ${messageOf(error)}`, 'http')
  }

  #admit(res: ClientResponse, req: ClientRequest, exchange: Exchange, trace: TraceContext): void {
    const scan = this.#scan
    const { method, path } = exchange
    const query = req.getQuery() ?? ''
    if (scan.textLength + path.length + query.length > HEADERS_MAX_BYTES)
      return exchange.fail('HTTP_HEADERS_TOO_LARGE', undefined, true)
    const pathFault = faultOfPath(path)
    if (pathFault !== null) return exchange.fail('HTTP_BAD_REQUEST', pathFault)
    if (exchange.route === null || this.#isPreflightOfMount(exchange, req)) return this.#refuse(exchange, req)
    if (this.state !== 'open' && !this.#servesStill(exchange.route))
      return exchange.fail(this.state === 'draining' ? 'HTTP_DRAINING' : 'HTTP_STARTING', undefined, true)

    // Until a body has come, new code that reads the address may have the route.
    const mayBeRead = !exchange.route.ignoresAddress || scan.contentLength !== '' || scan.transferEncoding !== ''
    const ip = mayBeRead ? exchange.clientAddress() : ''
    // The system has forgotten it: the connection is closed, and the library does not know yet.
    if (ip === '' && mayBeRead) return exchange.fail('HTTP_BAD_REQUEST', 'The client has closed the connection', true)
    const { ids } = exchange
    const frame = new RequestFrame(
      exchange.route.number,
      this.#methodNumbers.get(method)!,
      ids.length,
      ip.length,
      path.length,
      query.length,
      trace.length,
      ids + ip + path + query + trace + scan.text,
      null,
    )
    if (exchange.operator !== null) frame.operator = exchange.operator
    if (scan.forwardedProto !== '' && this.#isHttps(res, scan.forwardedProto)) frame.isHttps = true
    if (scan.contentLength === '' && scan.transferEncoding === '')
      return this.#dispatch(exchange.route, frame, exchange)

    const { route } = exchange
    const { isBodyStreamed } = route
    const limitBytes = route.maxBytes || this.#options.settings.httpBodyLimit
    const expectedBytes = scan.contentLength === '' ? null : Number(scan.contentLength)
    if (expectedBytes !== null && expectedBytes > limitBytes) {
      const message = `The request body is larger than ${limitBytes} bytes`
      return exchange.fail('HTTP_BODY_TOO_LARGE', message, expectedBytes > DROPPED_BODY_MAX_BYTES)
    }
    const isEndUncertain = expectedBytes === null && !this.#library.isStrict
    if (isEndUncertain && req.getHeader('trailer') !== '') return exchange.fail('HTTP_BAD_REQUEST', TRAILERS, true)
    const isShort = route.method === 'ALL' && expectedBytes !== null && expectedBytes <= WHOLE_BODY_MAX_BYTES
    if (isBodyStreamed && !isShort) {
      const { isStrict } = this.#library
      const isLeftUnread = expectedBytes === null || expectedBytes > DROPPED_BODY_MAX_BYTES
      if (!exchange.mayUpload('upload', isLeftUnread)) return
      exchange.incoming = new StreamedBody(res, exchange, expectedBytes, limitBytes, isStrict, this.#streamedBodies)
      if (isEndUncertain) return whenRead(exchange, () => this.#dispatchLate(frame, exchange))
      return this.#dispatch(exchange.route, frame, exchange)
    }
    this.#bodies.collect(res, exchange, expectedBytes, limitBytes, isEndUncertain, (body) => {
      frame.body = body
      // The library reads chunks so loosely that the end of the body is not certain: the bytes behind it are not to be trusted.
      if (isEndUncertain) exchange.isLast = true
      // The handler's time begins when the body is complete, not with the first byte of a slow upload.
      if (exchange.deadlineMs !== 0) exchange.deadlineMs = steadyMs() + exchange.route!.timeoutMs
      this.#dispatchLate(frame, exchange)
    })
  }

  /** Dispatches a request from a callback. */
  #dispatchLate(frame: RequestFrame, exchange: Exchange): void {
    try {
      this.#dispatch(exchange.route!, frame, exchange)
    } catch (error) {
      this.#onFault(exchange, error)
    }
  }

  /** `HTTP_CORS_ORIGINS` holds for fetch handlers, too, which take the preflights of an application without it. */
  #isPreflightOfMount({ method, route }: Exchange, req: ClientRequest): boolean {
    const mayBe = method === 'OPTIONS' && route?.method === 'ALL' && this.#cors.enabled && !isOpenToAll(route)
    return mayBe && req.getHeader('access-control-request-method') !== ''
  }

  /** True for a request that is served while the listener drains. Routes of the primary answer to the end: a process manager asks them for the state. */
  #servesStill(route: RouteEntry): boolean {
    if (this.state !== 'draining') return false
    this.#lastRequestMs = steadyMs()
    return this.#isLingering || (route.servedBy === 'primary' && route.kind !== 'stream')
  }

  #dispatch(route: RouteEntry, frame: RequestFrame, exchange: Exchange): void {
    const { kind } = route
    const isLasting = kind !== 'endpoint'
    // Operators are not kept out by visitors.
    if (isLasting && route.zone === 'application' && !exchange.mayLast(kind === 'socket' ? 'socket' : 'event stream'))
      return
    if (route.closedUntilMs !== 0) return exchange.failClosed(route.closedUntilMs)
    if (route.servedBy === 'lanes') {
      // Work that has begun needs the room that is left: new work is refused first.
      if (this.#options.hub.isCrowded) return exchange.fail('HTTP_OVERLOADED')
      const { lanes } = this.#options
      if (!lanes.send(frame, exchange, isLasting))
        exchange.fail('HTTP_OVERLOADED', lanes.refusalOf?.(frame.routeNumber))
      if (frame.isBeyondAscii && !this.#library.isStrict && hasLostBytes(frame))
        this.#refusals.note(HEADER_LOST, fieldsOf(exchange))
      return
    }
    // A plugin of the primary may keep the body beyond this callback. A lane has its own copy by now.
    if (frame.body !== null) frame.body = Buffer.from(frame.body)
    if (!this.#options.local.send(frame, exchange, isLasting)) exchange.fail('HTTP_OVERLOADED')
  }

  /** Answers a request without a route: a preflight, a path that has other methods, or an unknown path. */
  #refuse(exchange: Exchange, req: ClientRequest): void {
    const { routes } = this.#options
    const { method, path } = exchange
    const allowed = routes.allowed(path, (zone) => this.#system.isServed(zone, exchange.isAtSystemAddress))
    if (allowed.length === 0)
      return exchange.fail(this.#options.health.isBooting ? 'HTTP_STARTING' : this.#system.missing(path))
    const { zone } = routes.find(allowed[0]!, path)!
    if (method !== 'OPTIONS' && zone !== 'application' && this.#isStranger(exchange, zone, req)) return
    const allowLine = `allow: ${allowed.join(', ')}\r\n`
    if (method === 'OPTIONS') {
      const requestedHeaders = req.getHeader('access-control-request-headers')
      const isPreflight = req.getHeader('access-control-request-method') !== ''
      const head = isPreflight ? this.#cors.preflightHead(this.#scan.origin, allowed, requestedHeaders) : ''
      return exchange.answer(204, allowLine + head, null)
    }
    const { status, body } = errorReply('HTTP_METHOD_NOT_ALLOWED')
    exchange.answer(status, allowLine, body)
  }
}

/** Its own library looks who asks. */
const isOpenToAll = (route: RouteEntry | null): boolean => route?.manifest.crossOrigin === true

const fieldsOf = ({ requestId, label }: { requestId: string; label: string }) => ({
  request_id: requestId,
  route: label,
})

/**
 * uWebSockets.js drops bytes beyond ASCII at both ends of a value. Only where other such bytes are left does a loss show.
 * @param frame has something beyond ASCII
 */
function hasLostBytes({ headersText }: RequestFrame): boolean {
  return Buffer.byteLength(headersText) > headersText.length
}

const LOGIN_HEAD = 'content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nwww-authenticate: Bearer\r\n'
