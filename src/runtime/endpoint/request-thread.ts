// What the requests of one thread have in common: where their answers go, who records them, and which tokens hold them open.

import type { Awaitable } from '../../contracts/common.ts'
import type { CodeTracing, Origin } from '../../contracts/tracing.ts'
import { SYSTEM_CLOCK, type Timer } from '../../core/schedule/clock.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_REQUEST } from '../../transport/memory/flight-recorder.ts'
import type { FaultLog } from './answering.ts'
import type { RequestEffects } from './idempotency.ts'
import type { Reply } from './reply.ts'

/** Takes what the routes of a thread answer and send: over the ring in a lane, and straight to the listener in the primary. */
export interface AnswerSink {
  answer(requestId: number, reply: Reply): void
  /** The handler of a request that was given up has settled without an answer. */
  settled(requestId: number): void
  /** The handler of a request can take further bytes of its body. */
  wantBody(requestId: number, bytes: number): void

  /** The head of an answer of events. */
  openStream(requestId: number, head: string): void
  /** False when there was no room for it. */
  streamData(requestId: number, chunk: string): boolean
  /** The head of an answer whose body comes in pieces. @param lengthBytes -1 when it is not known */
  openFile(requestId: number, status: number, head: string, lengthBytes: number): void
  /** False when there was no room for it. */
  filePiece(requestId: number, piece: Uint8Array): boolean
  /** The body ends here. The connection is closed when it is not complete: when its length says so, or `isBroken`. */
  endStream(requestId: number, isBroken?: boolean): void

  /** The handshake is done: from now on the socket has this number. @param protocol the accepted subprotocol, or empty */
  acceptSocket(requestId: number, number: number, protocol: string): void
  /** False when there is no room for it. */
  sendMessage(number: number, message: string | Uint8Array): boolean
  /** @param weight by its bytes on the wire, as `messageWeight` gives it */
  messageHandled(number: number, weight: number): void
  closeSocket(number: number, code: number, reason: string): void
}

/** What requests need of their thread. */
export interface RequestThread {
  readonly sink: AnswerSink
  readonly onFault: FaultLog
  /** Null where nobody would read them. */
  readonly steps: RequestSteps | null
  /** Null while tracing is off. */
  readonly tracing: CodeTracing | null
  readonly effects: RequestEffects
  /** False once a plugin has replaced a builtin of the thread. @param origin who alone has run since it was asked last */
  readonly isSound: (origin?: Origin) => boolean
  /** Those that hold its streams and sockets open. */
  readonly tokens: HeldTokens
}

/** Writes requests and messages of sockets of a thread into its flight recorder: a step when one begins, its end when it is answered. */
export class RequestSteps {
  readonly #recorder: FlightRecorder
  /** Number of the step of the last request, by request slot. */
  readonly #ofRequests: number[] = []

  constructor(recorder: FlightRecorder) {
    this.#recorder = recorder
  }

  begin(id: number, { routeNumber, requestId }: RequestFrame): void {
    this.#ofRequests[id & 0xffff] = this.#recorder.begin(STEP_REQUEST, routeNumber, id, requestId, Date.now())
  }

  end(id: number, failed: boolean): void {
    this.#recorder.endFrame(this.#ofRequests[id & 0xffff]!, id, Date.now(), failed)
  }

  /** A message of a socket, its opening or its close. @returns the step's number, for `endMessage` */
  beginMessage(routeNumber: number, requestId: string): number {
    return this.#recorder.begin(STEP_REQUEST, routeNumber, -1, requestId, Date.now())
  }

  endMessage(step: number, failed: boolean): void {
    this.#recorder.end(step, Date.now(), failed)
  }
}

/** Longest time until the clock is looked at again: it may be set meanwhile. Milliseconds; less than what a timer takes. */
const CLOCK_LOOK_MS = 600_000
/** How soon a revoked token loses what it holds open. Milliseconds. */
const REVOCATION_LOOK_MS = 1000

type TokenEnd = 'has expired' | 'was revoked'

interface Held {
  readonly claims: object
  readonly onEnd: (why: TokenEnd) => void
}

/** The tokens of one thread that hold a stream or a WebSocket open. */
export class HeldTokens {
  /** Tells whether the token with these claims is revoked; null while nothing can. */
  isRevoked: ((claims: object) => Awaitable<boolean>) | null = null
  readonly #held = new Set<Held>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Calls back once: when a token's time is up, by the `exp` of its claims in seconds since 1970 (without an `exp` it never is), or when it
   * was revoked.
   * @param until ends the wait
   */
  hold(claims: unknown, until: AbortSignal, onEnd: (why: TokenEnd) => void): void {
    if (typeof claims !== 'object' || claims === null || until.aborted) return
    const held = { claims, onEnd }
    this.#held.add(held)
    this.#timer ??= setInterval(() => this.#look(), REVOCATION_LOOK_MS).unref()
    until.addEventListener('abort', () => this.#letGo(held), { once: true })
    const { exp } = claims as { exp?: unknown }
    if (typeof exp === 'number' && Number.isFinite(exp)) atTime(exp * 1000, until, () => onEnd('has expired'))
  }

  #letGo(held: Held): void {
    this.#held.delete(held)
    if (this.#held.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const { isRevoked } = this
    if (isRevoked === null) return
    for (const held of this.#held) void this.#ask(held, isRevoked)
  }

  async #ask(held: Held, isRevoked: (claims: object) => Awaitable<boolean>): Promise<void> {
    try {
      if ((await isRevoked(held.claims)) && this.#held.delete(held)) held.onEnd('was revoked')
    } catch {
      // While it cannot be told, what is open stays open.
    }
  }
}

function atTime(timeMs: number, until: AbortSignal, onTime: () => void): void {
  let timer: Timer | undefined
  const look = (): void => {
    const leftMs = timeMs - Date.now()
    if (leftMs <= 0) return onTime()
    timer = SYSTEM_CLOCK.due(leftMs, look, CLOCK_LOOK_MS).unref()
  }
  until.addEventListener('abort', () => SYSTEM_CLOCK.cancel(timer), { once: true })
  look()
}
