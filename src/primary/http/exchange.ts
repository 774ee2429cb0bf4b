// One request and its one answer.
import { STATUS_CODES } from 'node:http'
import type { Operator } from '../../contracts/http-request.ts'
import type { ObservedRequest, RequestSpan, RequestWatcher } from '../../contracts/tracing.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { hasLine } from '../../core/http/http-error.ts'
import { addressOfBytes, networkOf, plainAddress } from '../../core/http/network.ts'
import { exactMs } from '../../core/schedule/clock.ts'
import { errorReply, JSON_TYPE, type Reply } from '../../runtime/endpoint/reply.ts'
import type { TrustedProxies } from './access.ts'
import { ClientSocket, type Handshake, type SocketWorker } from './client-socket.ts'
import type { ClientResponse } from './library.ts'
import { type Owner, type Place, places } from './places.ts'
import { LASTING_MIN_BYTES, pipelining } from './refusals.ts'
import type { BodySink, StreamedBody } from './request-body.ts'
import type { RouteEntry } from './routes.ts'
import { ChunkedBody, LongAnswer, type SentBody, SizedBody, SseClient } from './sent-body.ts'

const lines = new Map<number, string>()

/** `404 Not Found`: from Node's table, so that no text of a plugin gets into the status line. */
export function statusLine(status: number): string {
  let line = lines.get(status)
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
    lines.set(status, line)
  }
  return line
}

/** A page may load what its own service has. */
const PAGE_POLICY = "content-security-policy: default-src 'self'; frame-ancestors 'none'; base-uri 'none'\r\n"
/** A picture or a document of data that is opened as a page must not run scripts in it. */
const DATA_POLICY = "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; sandbox\r\n"
/**
 * Types in which browsers run scripts: HTML, whatever is XML (SVG, XHTML, MathML, RDF, feeds, stylesheets), and web archives.
 * Source: the Mime Sniffing standard, section 4.6 ("scriptable MIME type").
 */
const SCRIPTABLE = /(?:^|\n)content-type: ?(?:(text\/html)|text\/xsl|multipart\/|message\/rfc822|[^\r;, ]*[/+]xml)/i
const OWN_POLICY = /(?:^|\n)content-security-policy: /

/** What HTTP_CORS_ORIGINS says is not said twice: browsers refuse that. */
const OWN_CORS = /^access-control-allow-(?:origin|credentials): .*\r\n/gm

/** The header line that an answer of this type needs; empty when it needs none, or has one. @param head `name: value` lines */
function policyFor(head: string): string {
  const found = SCRIPTABLE.exec(head)
  if (found === null || OWN_POLICY.test(head)) return ''
  return found[1] === undefined ? DATA_POLICY : PAGE_POLICY
}

/** Has a request that is to be answered: a lane, the worker of the primary's own routes, or the queue in front of the lanes. */
export interface RequestHolder {
  /** A lane's number; -1 for what is no lane. */
  readonly index: number
  /** Told that the answer is not wanted any more. */
  cancelRequest(id: number): void
  /** Told that the body does not wait for its client any more. */
  uploadOver?(id: number): void
}

/** Set by the listener when it drains: every answer then closes its connection. */
export const draining = { on: false }

const NOBODY: readonly RequestWatcher[] = []

/** Status of a stream that was opened, whose client has left. */
const STREAM_STATUS = 200

const CLOSE_LINE = '\r\nconnection: close'
const JSON_LINE = `\r\ncontent-type: ${JSON_TYPE}`
/** Most answers have no more than these lines, and the id behind them. */
const JSON_LINES = `nosniff${JSON_LINE}\r\nx-request-id: `
const PLAIN_LINES = 'nosniff\r\nx-request-id: '
const SSE_LINES =
  'nosniff\r\ncontent-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\nx-request-id: '

/**
 * One request and its one answer. The only place that writes to a response, beside the refusal of a request whose end is not certain.
 * Everything is put together before `cork`, so that nothing can throw inside it.
 */
export class Exchange implements ObservedRequest {
  readonly requestId: string
  /** What the runtime itself knows it by: the id, unless the client has chosen that. Several requests may have one of a client. */
  key: string
  readonly method: string
  readonly path: string
  readonly route: RouteEntry | null
  readonly startMs: number
  /** When it is answered with 504, milliseconds since the epoch. 0: never. */
  deadlineMs: number
  /** The answer is the last one of its connection. */
  isLast = false
  /** The client wants the connection to be closed after the answer. */
  isClosedAfter = false
  /** The library closes it by itself, and does not say so in the answer. */
  isClosedByLibrary = false
  /** It came to the port of `/system`. */
  isAtSystemAddress = false
  /** Who sends a request under `/system`; null for a stranger, and for all other routes. */
  operator: Operator | null = null
  /** What `X-Forwarded-For` says, where proxies are trusted; else null. */
  forwarding: { readonly proxies: TrustedProxies; readonly list: string } | null = null
  /** Null while tracing is off, and when it has ended. */
  span: RequestSpan | null = null
  servedBy = -1
  isTold = false
  /** The body of a request whose handler reads it while it comes; else null. */
  incoming: StreamedBody | null = null
  /** Null for a request that does not want to become a WebSocket. */
  handshake: Handshake | null = null
  readonly #res: ClientResponse
  readonly #corsHead: string
  /** None when it has ended. */
  #watchers: readonly RequestWatcher[]
  #done = false
  #gone = false
  #holder: RequestHolder | null = null
  #heldAs = 0
  #client: SentBody | null = null
  /** The stream was opened in this turn of the loop. */
  #isOpening = false
  #onAbort: (() => void) | null = null
  /** Its place among the answers that last; null while it has none. */
  #lastingAs: Place | null = null
  /** Its place among the uploads. */
  #uploadAs: Place | null = null
  /** What counts as its client; empty where nobody has asked in time. */
  network = ''

  constructor(
    res: ClientResponse,
    requestId: string,
    method: string,
    path: string,
    route: RouteEntry | null,
    corsHead: string,
    watchers: readonly RequestWatcher[],
  ) {
    this.#res = res
    this.requestId = requestId
    this.key = requestId
    this.method = method
    this.path = path
    this.route = route
    this.#corsHead = corsHead
    this.#watchers = watchers
    this.startMs = exactMs()
    this.deadlineMs = route === null || route.timeoutMs === 0 ? 0 : this.startMs + route.timeoutMs
    res.onAborted(() => this.#aborted())
  }

  /** As a frame has them. */
  get ids(): string {
    return this.key === this.requestId ? this.key : `${this.requestId} ${this.key}`
  }

  get label(): string {
    return this.route === null ? '' : `${this.route.method} ${this.route.path}`
  }

  get plugin(): string {
    return this.route?.plugin ?? ''
  }

  /** The handler can take further bytes of the body. */
  wantBody(bytes: number, requestId: number, sink: BodySink): void {
    // It has no body.
    if (this.incoming === null) sink.bodyEnded(requestId, '')
    else this.incoming.want(bytes, requestId, sink)
  }

  get isDone(): boolean {
    return this.#done
  }

  /** The library does not know that the client wants the connection closed: read no more, it is not kept for a next request. */
  get #isClosedUnread(): boolean {
    return this.isClosedAfter && !this.isClosedByLibrary
  }

  /** Costs a system call. Only while the client is there. */
  clientAddress(): string {
    const peer = addressOf(this.#res)
    return this.forwarding === null ? peer : this.forwarding.proxies.clientOf(peer, this.forwarding.list)
  }

  /** @param id the request's id at its holder */
  assignTo(holder: RequestHolder, id: number): void {
    this.#holder = holder
    this.#heldAs = id
    this.servedBy = holder.index
    if (this.span !== null) this.span.servedBy = holder.index
  }

  /** Runs when the client goes away before the request is given to a worker. */
  onAbort(callback: () => void): void {
    this.#onAbort = callback
  }

  #aborted(): void {
    pipelining.aborted(this)
    // A stream ends when its client leaves. A file that breaks off was not answered.
    this.#ended(this.#client instanceof SseClient ? STREAM_STATUS : 0)
    this.#done = true
    this.#gone = true
    this.#onAbort?.()
    this.#client?.forget()
    this.#cancel()
  }

  /** Called several times a second while it is open. @param nowMs by `steadyMs` */
  look(nowMs: number): void {
    for (const watcher of this.#watchers) watcher.isOpen?.(this, nowMs)
  }

  /** Takes a place among the answers that last. False when there is none: the exchange is answered then. */
  mayLast(kind: 'event stream' | 'socket' | 'long answer'): boolean {
    this.#lastingAs = places.enter(kind, this.clientAddress(), this.label)
    if (this.#lastingAs !== null) return true
    this.#cancel()
    this.fail('HTTP_OVERLOADED', 'Too many streams are open')
    return false
  }

  /** Takes a place among the uploads. False when there is none: the exchange is answered then. @param close the connection, too */
  mayUpload(kind: 'upload' | 'slow body', close: boolean): boolean {
    if (this.#done) return false
    this.#uploadAs = places.enter(kind, this.clientAddress(), this.label)
    if (this.#uploadAs === null) this.fail('HTTP_OVERLOADED', 'Too many uploads are under way', close)
    return this.#uploadAs !== null
  }

  /** Its body waits for the client: it holds no place in a lane. */
  get isUploading(): boolean {
    return this.incoming?.isComing === true
  }

  /** Its body does not wait for the client any more. */
  uploadOver(): void {
    if (this.#uploadAs === null) return
    places.leave(this.#uploadAs)
    this.#uploadAs = null
    this.#holder?.uploadOver?.(this.#heldAs)
  }

  /** Reads the client's address, which nobody can once the client has left. */
  noteNetwork(): void {
    if (this.network === '' && !this.#done) this.network = networkOf(this.clientAddress())
  }

  /** Whom its body is counted for. */
  get owner(): Owner {
    this.noteNetwork()
    return { network: this.network, route: this.label }
  }

  #ended(status: number): void {
    if (this.#lastingAs !== null) places.leave(this.#lastingAs)
    this.#lastingAs = null
    this.uploadOver()
    const { span } = this
    if (span !== null) {
      this.span = null
      span.end(status)
    }
    const watchers = this.#watchers
    this.#watchers = NOBODY
    if (watchers.length === 0) return
    const endMs = exactMs()
    for (const watcher of watchers) watcher.ended(this, status, endMs)
  }

  #cancel(): void {
    const holder = this.#holder
    this.#holder = null
    holder?.cancelRequest(this.#heldAs)
  }

  /** Answers once. `head` is `name: value` lines, each ended by CR LF; the body's memory is only lent for the call. */
  answer(status: number, head: string, body: Uint8Array | string | null, close = false): void {
    if (this.#done) return
    this.#done = true
    const isFromLane = this.#holder !== null && this.route?.servedBy === 'lanes'
    this.#holder = null
    if (isFromLane) this.#write(status, head, body, close)
    else setImmediate(() => this.#write(status, head, body, close))
  }

  /**
   * Never called while the library still reads what came with the request: it would go on to the bytes behind it, which may be the rest
   * of a request that it has misread. While an answer is due it closes the connection instead.
   */
  #write(status: number, head: string, body: Uint8Array | string | null, close: boolean): void {
    if (this.#gone) return
    this.#ended(status)
    // One header call instead of six: the library writes the value verbatim, and every line in it was checked or made here.
    const isPlainJson = body !== null && (head === '' || !hasLine(head, 'content-type'))
    const isLast = this.incoming?.abandon() || close || this.isLast
    writing = this.#res
    writingStatus = status
    writingLines = this.#lines(isPlainJson ? JSON_LINES : PLAIN_LINES, head)
    writingBody = body
    writingHead = this.method === 'HEAD'
    writingClose = isLast || draining.on || this.isClosedAfter
    isCloseWritten = this.isClosedByLibrary
    if (body !== null && body.length > LASTING_MIN_BYTES && !writingHead)
      this.#writeLong(body, isLast || this.#isClosedUnread)
    else this.#res.cork(writeAnswer)
  }

  /** The library would keep what the client does not read, in any amount, and say nothing of when it has left. */
  #writeLong(body: Uint8Array | string, isLast: boolean): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (writingClose && !isCloseWritten) writingLines += CLOSE_LINE
    const answer = new LongAnswer(this.#res, bytes.byteLength, isLast, this.label)
    this.#client = answer
    answer.begin(writeHead, bytes)
  }

  /** The head of an answer, as the value of its first line. */
  #lines(first: string, head: string): string {
    let lines = first + this.requestId
    const own = this.#corsHead === '' ? head : head.replace(OWN_CORS, '')
    if (own !== '') lines += `\r\n${(own + policyFor(own)).slice(0, -2)}`
    if (this.#corsHead !== '') lines += `\r\n${this.#corsHead.slice(0, -2)}`
    if (this.isClosedByLibrary) lines += CLOSE_LINE
    return lines
  }

  reply(reply: Reply, close = false): void {
    this.answer(reply.status, reply.head, reply.body, close)
  }

  /** Answers with an error of the runtime; nothing happens when there was an answer already. */
  fail(code: ErrorCode, message?: string, close = false): void {
    if (this.#client !== null && !this.#done) return this.endStream(true)
    this.reply(errorReply(code, message), close)
  }

  /** Answers 503: the circuit of its plugin is open until then, milliseconds since the epoch. */
  failClosed(untilMs: number): void {
    const { status, body } = errorReply('PLUGIN_SET_ASIDE')
    const seconds = Math.max(1, Math.ceil((untilMs - Date.now()) / 1000))
    this.answer(status, `retry-after: ${seconds}\r\n`, body)
  }

  /** The time is up: 504, and the handler's signal is aborted. */
  expire(): void {
    if (this.#done || this.#client !== null) return
    this.#cancel()
    this.fail('HTTP_HANDLER_TIMEOUT')
  }

  /** Closes the connection without an answer: the request must not get one. */
  close(): void {
    if (this.#done) return
    this.#done = true
    this.#ended(0)
    this.#res.close()
  }

  openStream(status: number, head: string): void {
    if (this.#done) return
    let lines = this.#lines(SSE_LINES, head)
    const isLast = this.isClosedAfter || draining.on
    if (this.method === 'HEAD') return this.#answerHead(status, lines, -1, isLast)
    if (isLast && !this.isClosedByLibrary) lines += CLOSE_LINE
    this.#begin(status, lines, new SseClient(this.#res, () => this.#over(status), this.#isClosedUnread))
    this.#isOpening = true
    setImmediate(() => {
      this.#isOpening = false
    })
    // A first comment sends the head at once: a client learns that it is connected.
    this.streamData(Buffer.from(': open\n\n'))
  }

  /**
   * @param head has its content type
   * @param lengthBytes -1 when it is not known
   * @param onFlushed told how many bytes of what was sent have left for the client
   */
  openFile(status: number, head: string, lengthBytes: number, onFlushed: (bytes: number) => void): void {
    if (this.#done) return
    const isLast = this.isLast || this.#isClosedUnread || this.incoming?.isEndUncertain === true
    const isClosedAfter = isLast || draining.on || this.isClosedAfter
    let lines = this.#lines(PLAIN_LINES, head)
    // The handler of a body whose length is known has ended. A stream may be made of what comes.
    if (lengthBytes >= 0) this.incoming?.abandon()
    if (this.method === 'HEAD') return this.#answerHead(status, lines, lengthBytes, isClosedAfter)
    if ((lengthBytes < 0 || lengthBytes > LASTING_MIN_BYTES) && !this.mayLast('long answer')) return
    if (isClosedAfter && !this.isClosedByLibrary) lines += CLOSE_LINE
    const Body = lengthBytes < 0 ? ChunkedBody : SizedBody
    this.#begin(status, lines, new Body(this.#res, lengthBytes, isLast, onFlushed, () => this.#over(status)))
  }

  /** All of the answer to a HEAD request whose body would follow. Not while the library still reads, as `#write` says. */
  #answerHead(status: number, lines: string, lengthBytes: number, close: boolean): void {
    this.#over(status)
    const res = this.#res
    const writesClose = close && !this.isClosedByLibrary
    const write = (): void => {
      res.writeStatus(statusLine(status)).writeHeader('x-content-type-options', lines)
      if (lengthBytes >= 0) res.writeHeader('content-length', String(lengthBytes))
      endBare(res, writesClose)
    }
    setImmediate(() => this.#gone || res.cork(write))
  }

  #begin(status: number, lines: string, body: SentBody): void {
    this.deadlineMs = 0
    this.#client = body
    this.#res.cork(() => this.#res.writeStatus(statusLine(status)).writeHeader('x-content-type-options', lines))
  }

  /** Its body is sent, or its client was cut off. */
  #over(status: number): void {
    this.#done = true
    this.incoming?.abandon()
    this.#ended(status)
    this.#cancel()
  }

  streamData(chunk: Uint8Array): void {
    this.#client?.send(chunk)
  }

  /** @param isBroken its body is not complete */
  endStream(isBroken = false): void {
    this.#holder = null
    // A stream that ends in the turn in which it was opened ends in the next turn, as `#write` says.
    if (this.#isOpening) setImmediate(() => this.#client?.end(isBroken))
    else this.#client?.end(isBroken)
  }

  /** Does the WebSocket handshake; null when the client is gone, also in the middle of it, or was answered. */
  acceptSocket(worker: SocketWorker, number: number, protocol: string): ClientSocket | null {
    const { handshake } = this
    if (this.#done || handshake === null) return null
    this.#done = true
    this.#holder = null
    // From now on the socket has its place.
    const lastingAs = this.#lastingAs
    this.#lastingAs = null
    this.#ended(101)
    const { key, context, limitBytes } = handshake
    const { label, plugin, requestId } = this
    // Not the exchange itself, which has more in its memory.
    const network = lastingAs?.network ?? ''
    const socket = new ClientSocket({ label, plugin, requestId, network }, worker, number, limitBytes, () => {
      if (lastingAs !== null) places.leave(lastingAs)
    })
    const lines = `nosniff\r\nx-request-id: ${requestId}`
    const res = this.#res
    context.cork(() => {
      res.writeStatus('101 Switching Protocols').writeHeader('x-content-type-options', lines)
      // No extensions: what is compressed costs memory for each socket, and tells lengths of secrets.
      res.upgrade({ socket }, key, protocol, '', context.own)
    })
    return socket.isOpen ? socket : null
  }

  get isStream(): boolean {
    return this.#client !== null
  }
}

/** Costs a system call. The bytes are cheaper than the library's own text, which takes a Buffer and a look for other spellings. */
export function addressOf(res: ClientResponse): string {
  if (res.getRemoteAddress !== undefined) return addressOfBytes(new Uint8Array(res.getRemoteAddress()))
  return plainAddress(res.remoteAddress ?? '')
}

// The answer that `writeAnswer` writes. Module variables instead of a closure per answer.
let writing: ClientResponse
let writingStatus = 200
let writingLines = ''
let writingBody: Uint8Array | string | null = null
let writingHead = false
let writingClose = false
/** The lines have it. */
let isCloseWritten = false

function writeHead(): void {
  if (writingStatus !== 200) writing.writeStatus(statusLine(writingStatus))
  writing.writeHeader('x-content-type-options', writingLines)
}

function writeAnswer(): void {
  const res = writing
  writeHead()
  if (writingBody === null && (writingStatus === 204 || writingStatus === 304)) {
    endBare(res, writingClose && !isCloseWritten)
  } else if (writingHead) {
    const length = writingBody === null ? 0 : Buffer.byteLength(writingBody)
    res.writeHeader('content-length', String(length))
    endBare(res, writingClose && !isCloseWritten)
  } else {
    res.end((writingBody ?? '') as string, writingClose)
  }
}

/**
 * Any argument to `endWithoutBody` would abort the process or write a length of its own.
 * @param writesClose says that the connection is closed
 */
function endBare(res: ClientResponse, writesClose: boolean): void {
  if (writesClose) {
    res.writeHeader('connection', 'close')
    // Else it is kept for a next request.
    if (!draining.on) res.pause()
  }
  res.endWithoutBody()
}
