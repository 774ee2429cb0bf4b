// The WebSockets of one thread, from handshake to close.
import type { Socket } from '../../contracts/http.ts'
import type { Data, HttpContext } from '../../contracts/http-request.ts'
import type { TraceContext } from '../../contracts/tracing.ts'
import { causality, NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import { timeOrderedId } from '../../core/causality/ids.ts'
import { withoutBlanks } from '../../core/http/http-error.ts'
import { isThenable } from '../../core/schedule/waiting.ts'
import { messageWeight } from '../../transport/frames/frames.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { Answering } from './answering.ts'
import type { RequestContext } from './context.ts'
import { faultOfMessage } from './input/key-scanner.ts'
import type { RequestThread } from './request-thread.ts'
import type { ServedSocket } from './route.ts'

/** The subprotocol by which a browser, which cannot set headers, sends its token: it is what is accepted then. */
const BEARER_PROTOCOL = 'bearer'

/** Policy violation: the client may come again with another token. Source: RFC 6455, section 7.4.1. */
const TOKEN_ENDED = 1008

/** Policy violation: JSON with a key that could reach a prototype. */
const FORBIDDEN = 1008

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

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** When this many bytes are sent and have not left for the client, `send` returns that there is no room. */
const SOCKET_ROOM_BYTES = 256 * 1024
const REASON_MAX_BYTES = 123

/** A handler to run. A step begins when the one before has ended. */
type Step =
  | { readonly kind: 'open'; readonly context: HttpContext }
  | { readonly kind: 'message'; readonly message: string | Uint8Array; readonly weight: number }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }

/** The handshake that a socket was opened with. */
interface Handshake {
  readonly number: number
  readonly data: Data
  readonly context: HttpContext
  /** What the history knows it by. */
  readonly key: string
  readonly trace: TraceContext
}

/** A plugin's end of one WebSocket, in the thread that has it. */
class PluginSocket implements Socket {
  readonly id = `ws_${timeOrderedId()}`
  readonly data: Data
  readonly requestId: string
  readonly #thread: RequestThread
  readonly #route: ServedSocket
  readonly #handshake: Handshake
  readonly #onEnd: () => void
  readonly #gone = new AbortController()
  readonly #steps: Step[] = []
  #isRunning = false
  /** `closing`: the plugin has closed it, and messages that come are dropped. */
  #state: 'open' | 'closing' | 'closed' = 'open'
  #unreadBytes = 0
  #wakers: (() => void)[] = []

  /** @param onEnd told when its `close` has run */
  constructor(thread: RequestThread, route: ServedSocket, handshake: Handshake, onEnd: () => void) {
    this.#thread = thread
    this.#route = route
    this.#handshake = handshake
    this.#onEnd = onEnd
    this.data = handshake.data
    this.requestId = handshake.context.requestId
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  send(message: unknown): boolean {
    const frame = typeof message === 'string' || message instanceof Uint8Array ? message : toJson(message)
    if (frame === undefined) throw new TypeError('What is sent must be text, bytes or JSON')
    if (this.#state !== 'open') return false
    this.#unreadBytes += typeof frame === 'string' ? Buffer.byteLength(frame) : frame.byteLength
    if (!this.#thread.sink.sendMessage(this.#handshake.number, frame)) {
      this.#close(1013, 'too much waits to be sent')
      return false
    }
    return this.#unreadBytes < SOCKET_ROOM_BYTES
  }

  drained(): Promise<void> {
    if (this.#state === 'closed' || this.#unreadBytes < SOCKET_ROOM_BYTES) return Promise.resolve()
    return new Promise((resolve) => this.#wakers.push(resolve))
  }

  close(code = 1000, reason = ''): void {
    const isKnown =
      Number.isInteger(code) &&
      ((code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999))
    if (!isKnown) {
      throw new RangeError(`A close code is 1000 to 1003, 1007 to 1014 or 3000 to 4999, not ${String(code)}`)
    }
    if (Buffer.byteLength(reason) > REASON_MAX_BYTES) {
      throw new RangeError(`The reason of a close has at most ${REASON_MAX_BYTES} bytes`)
    }
    this.#close(code, reason)
  }

  // ── for the runtime ───────────────────────────────────────────────────────

  opened(): void {
    this.#push({ kind: 'open', context: this.#handshake.context })
  }

  /** @param bytes length of the message on the wire */
  received(message: string | Uint8Array, bytes: number): void {
    const fault = this.#state === 'open' ? faultOfMessage(message) : null
    if (fault !== null) {
      this.#thread.sink.messageHandled(this.#handshake.number, messageWeight(bytes))
      return this.#close(FORBIDDEN, fault)
    }
    this.#push({ kind: 'message', message, weight: messageWeight(bytes) })
  }

  /** Bytes have left for the client. */
  flushed(bytes: number): void {
    this.#unreadBytes = Math.max(0, this.#unreadBytes - bytes)
    if (this.#unreadBytes < SOCKET_ROOM_BYTES) this.#wake()
  }

  closed(code: number, reason: string): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#wake()
    this.#gone.abort()
    this.#push({ kind: 'close', code, reason })
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake()
  }

  #close(code: number, reason: string): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#thread.sink.closeSocket(this.#handshake.number, code, reason)
  }

  #push(step: Step): void {
    this.#steps.push(step)
    if (!this.#isRunning) this.#run()
  }

  #run(): void {
    for (let step = this.#steps.shift(); step !== undefined; step = this.#steps.shift()) {
      const pending = this.#begin(step)
      if (pending !== null) {
        this.#isRunning = true
        const next = step
        void pending.then(() => {
          this.#isRunning = false
          this.#end(next)
          this.#run()
        })
        return
      }
      this.#end(step)
    }
  }

  #end(step: Step): void {
    if (step.kind === 'close') this.#onEnd()
    else
      this.#thread.sink.messageHandled(this.#handshake.number, step.kind === 'message' ? step.weight : messageWeight(0))
  }

  /** Runs the handler of a step. @returns null when it has ended; a promise that never rejects */
  #begin(step: Step): Promise<void> | null {
    const { kind } = step
    const handler = this.#route.handlers[kind]
    // A plugin that has closed its socket gets no more messages.
    if (handler === undefined || (kind === 'message' && this.#state === 'closing')) return null
    const { owner, origin, number } = this.#route
    const { context, key, trace } = this.#handshake
    const { tracing, steps, onFault } = this.#thread
    const name = `${owner.name}.${handler.name.replace(/^bound /, '') || kind}`
    const attributes = { 'code.function.name': name, 'heddle.plugin': owner.name, 'heddle.socket.id': this.id }
    const work = { kind: 'socket', requestId: this.requestId, key, eventId: null } as const
    const span = tracing?.open(trace, name, attributes, work) ?? null
    const flightStep = steps?.beginMessage(number, this.requestId)
    const settle = (thrown: unknown, isFault: boolean): void => {
      if (flightStep !== undefined) steps!.endMessage(flightStep, isFault)
      if (!isFault) return span?.end()
      span?.fail(thrown)
      onFault(context.route, owner.name, context.requestId, thrown)
      this.#close(1011, 'internal error')
    }
    try {
      const cause = { eventId: null, requestId: this.requestId, trace: span, origin }
      const outcome = causality.run(cause, () => this.#call(step))
      if (isThenable(outcome)) {
        return outcome.then(
          () => settle(null, false),
          (thrown) => settle(thrown, true),
        )
      }
      settle(null, false)
    } catch (thrown) {
      settle(thrown, true)
    }
    return null
  }

  #call(step: Step): unknown {
    const { handlers, owner } = this.#route
    switch (step.kind) {
      case 'open':
        return handlers.open!.call(owner.instance, this, this.data, step.context)
      case 'message':
        return handlers.message!.call(owner.instance, this, step.message)
      case 'close':
        return handlers.close!.call(owner.instance, this, step.code, step.reason)
    }
  }
}
