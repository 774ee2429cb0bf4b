// The WebSockets of one thread, from handshake to close.

import { causality } from '../../../core/causality/context.ts'
import { NO_TRACE_CONTEXT } from '../../../core/causality/trace-context.ts'
import { withoutBlanks } from '../../../core/http/header-text.ts'
import type { RequestFrame } from '../../../transport/frames/request-frame.ts'
import { Answering } from '../answering.ts'
import type { RequestContext } from '../context.ts'
import type { RequestThread } from '../request-thread.ts'
import type { ServedSocket } from '../route.ts'
import { PluginSocket } from './socket.ts'

/** The subprotocol by which a browser, which cannot set headers, sends its token: it is what is accepted then. */
const BEARER_PROTOCOL = 'bearer'

/** Policy violation: the client may come again with another token. Source: RFC 6455, section 7.4.1. */
const TOKEN_ENDED = 1008

/** The WebSockets of one thread, from the check of their tokens to their close. */
export class WebSocketServer {
  readonly #thread: RequestThread
  readonly #open = new Map<number, PluginSocket>()
  #next = 0

  constructor(thread: RequestThread) {
    this.#thread = thread
  }

  /** Sockets whose `close` has not run. */
  get size(): number {
    return this.#open.size
  }

  /** Checks a handshake. It is answered like a request when it is refused, else accepted. */
  async handshake(requestId: number, route: ServedSocket, frame: RequestFrame, context: RequestContext): Promise<void> {
    const { sink, tracing, onFault, tokens } = this.#thread
    const offered = (frame.header('sec-websocket-protocol') ?? '').split(',').map(withoutBlanks)
    const bearerAt = offered.indexOf(BEARER_PROTOCOL)
    const trace = frame.trace === NO_TRACE_CONTEXT ? null : (tracing?.scope(frame.trace) ?? null)
    const cause = { eventId: null, requestId: frame.requestId, trace, origin: route.origin }
    const answering = new Answering(route, frame, context, bearerAt < 0 ? undefined : offered[bearerAt + 1])
    const data = await causality.run(cause, () => answering.enter())
    if (data === null) {
      answering.tellFaults(onFault)
      return sink.answer(requestId, answering.refusal!)
    }
    const number = this.#next
    this.#next = (number + 1) & 0x7fffffff
    const { key } = frame
    // All its handlers are in one trace: its ids are made once.
    const opened = { number, data, context, key, trace: trace?.traceContext ?? NO_TRACE_CONTEXT }
    const socket = new PluginSocket(this.#thread, route, opened, () => this.#open.delete(number))
    this.#open.set(number, socket)
    sink.acceptSocket(requestId, number, bearerAt < 0 ? '' : BEARER_PROTOCOL)
    socket.opened()
    tokens.hold(context.tokenHeld, socket.signal, (why) => socket.close(TOKEN_ENDED, `the token ${why}`))
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
}
