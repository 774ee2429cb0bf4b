// The WebSockets of one thread, from handshake to close.

import type { Awaitable } from '../../../contracts/common.ts'
import type { HttpContext } from '../../../contracts/http-request.ts'
import type { CodeTracing } from '../../../contracts/tracing.ts'
import { causality } from '../../../core/causality/context.ts'
import { NO_TRACE_CONTEXT } from '../../../core/causality/trace-context.ts'
import { withoutBlanks } from '../../../core/http/header-text.ts'
import { Answering, type FaultLog, ReadyReply } from '../answering.ts'
import type { RequestContext } from '../context.ts'
import type { Incoming } from '../incoming.ts'
import type { Reply } from '../reply.ts'
import type { ServedSocket } from '../route.ts'
import { HeldTokens } from './held-tokens.ts'
import { PluginSocket, type PluginSocketOptions } from './socket.ts'

/** The subprotocol by which a browser, which cannot set headers, sends its token: it is what is accepted then. */
const BEARER_PROTOCOL = 'bearer'

/** Policy violation: the client may come again with another token. Source: RFC 6455, section 7.4.1. */
const TOKEN_ENDED = 1008

/** Takes what sockets send: over the ring in a lane, straight to the listener in the primary. */
export interface SocketSink {
  answer(requestId: number, reply: Reply): void
  /** The handshake is done: from now on the socket has this number. @param protocol the accepted subprotocol, or empty */
  acceptSocket(requestId: number, number: number, protocol: string): void
  /** False when there is no room for it. */
  sendMessage(number: number, message: string | Uint8Array): boolean
  /** @param weight by its bytes on the wire, as `messageWeight` gives it */
  messageHandled(number: number, weight: number): void
  closeSocket(number: number, code: number, reason: string): void
}

interface WebSocketServerOptions {
  sink: SocketSink
  onFault: FaultLog
  /** Records that a handler begins. @returns the step for `endStep` */
  beginStep?: (routeNumber: number, requestId: string) => number
  endStep?: (step: number, failed: boolean) => void
}

/** The WebSockets of one thread, from the check of their tokens to their close. */
export class WebSocketServer {
  readonly sink: SocketSink
  readonly beginStep: WebSocketServerOptions['beginStep']
  readonly endStep: WebSocketServerOptions['endStep']
  /** Of the streams of this thread, too. */
  readonly tokens = new HeldTokens(() => this.isRevoked)
  /** Tells whether the token with these claims is revoked; null while nothing can. */
  isRevoked: ((claims: object) => Awaitable<boolean>) | null = null
  /** Null while tracing is off. */
  tracing: CodeTracing | null = null
  readonly #onFault: FaultLog
  readonly #open = new Map<number, PluginSocket>()
  #next = 0

  constructor({ sink, onFault, beginStep, endStep }: WebSocketServerOptions) {
    this.sink = sink
    this.beginStep = beginStep
    this.endStep = endStep
    this.#onFault = onFault
  }

  /** Sockets whose `close` has not run. */
  get size(): number {
    return this.#open.size
  }

  /** Checks a handshake. It is answered like a request when it is refused, else accepted. */
  async handshake(requestId: number, entry: ServedSocket, incoming: Incoming, context: RequestContext): Promise<void> {
    const { owner, origin, handlers, number: routeNumber } = entry
    const offered = (incoming.header('sec-websocket-protocol') ?? '').split(',').map(withoutBlanks)
    const bearerAt = offered.indexOf(BEARER_PROTOCOL)
    const trace = incoming.trace === NO_TRACE_CONTEXT ? null : (this.tracing?.scope(incoming.trace) ?? null)
    const cause = { eventId: null, requestId: incoming.requestId, trace, origin }
    const answering = new Answering(entry, incoming, context, bearerAt < 0 ? undefined : offered[bearerAt + 1])
    const data = await causality.run(cause, () => answering.enter())
    if (data instanceof ReadyReply) {
      answering.tellFaults(this.#onFault)
      return this.sink.answer(requestId, data.reply)
    }
    const number = this.#next
    this.#next = (number + 1) & 0x7fffffff
    const socketOptions: PluginSocketOptions = {
      number,
      routeNumber,
      owner,
      origin,
      handlers,
      data,
      context: context as HttpContext,
      key: incoming.key,
      // All its handlers are in one trace: its ids are made once.
      trace: trace?.traceContext ?? NO_TRACE_CONTEXT,
    }
    const socket = new PluginSocket(socketOptions, this)
    this.#open.set(number, socket)
    this.sink.acceptSocket(requestId, number, bearerAt < 0 ? '' : BEARER_PROTOCOL)
    socket.opened()
    this.tokens.hold(context.tokenHeld, socket.signal, (why) => socket.close(TOKEN_ENDED, `the token ${why}`))
  }

  // ── from the client ───────────────────────────────────────────────────────

  received(number: number, message: string | Uint8Array, bytes: number): void {
    this.#open.get(number)?.received(message, bytes)
  }

  flushed(number: number, bytes: number): void {
    this.#open.get(number)?.flushed(bytes)
  }

  closed(number: number, code: number, reason: string): void {
    this.#open.get(number)?.closed(code, reason)
  }

  // ── from its sockets ──────────────────────────────────────────────────────

  onFault({ owner, context }: PluginSocketOptions, thrown: unknown): void {
    this.#onFault(context.route, owner.name, context.requestId, thrown)
  }

  ended(number: number): void {
    this.#open.delete(number)
  }
}
