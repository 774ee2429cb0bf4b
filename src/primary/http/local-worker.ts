// Runs the routes of the primary's own plugins, as a lane does for the others.
import type { WorkInFlight } from '../../contracts/registry.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { exactMs } from '../../core/schedule/steady-time.ts'
import type { FaultLog } from '../../runtime/endpoint/answering.ts'
import type { Reply } from '../../runtime/endpoint/reply.ts'
import { type ReplySink, RequestServer } from '../../runtime/endpoint/request-server.ts'
import { type SocketSink, WebSocketServer } from '../../runtime/endpoint/sockets/server.ts'
import { type RequestFrame, requestIdOf } from '../../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_REQUEST } from '../../transport/memory/flight-recorder.ts'
import type { Exchange, RequestHolder } from './exchange.ts'
import type { BodySink } from './request-body.ts'
import { type SocketPort, WorkerSockets } from './worker-sockets.ts'

/** Requests at plugins of the primary whose answer has not begun, at most. */
export const LOCAL_MAX_IN_FLIGHT = 4096
/** It is called ten times a second, so a longer pause is one of the thread, milliseconds. */
const STOOD_STILL_MS = 1000

/** Tells the primary's own plugins of their sockets. */
class LocalSocketPort implements SocketPort {
  readonly #server: WebSocketServer

  constructor(server: WebSocketServer) {
    this.#server = server
  }

  message(number: number, message: Uint8Array, isBinary: boolean): void {
    const copy = Buffer.from(message)
    this.#server.received(number, isBinary ? copy : copy.toString(), copy.byteLength)
  }

  flushed(number: number, bytes: number): void {
    this.#server.flushed(number, bytes)
  }

  closed(number: number, code: number, reason: string): void {
    this.#server.closed(number, code, reason)
  }

  refused(number: number): void {
    // Not at once: the `open` handler has not begun.
    setImmediate(() => this.#server.closed(number, 1006, ''))
  }
}

/** Runs the routes of primary plugins, in the listener's own thread. */
export class LocalWorker implements ReplySink, SocketSink, RequestHolder, BodySink {
  readonly index = -1
  readonly server: RequestServer
  readonly sockets: WorkerSockets
  readonly #exchanges = new Map<number, Exchange>()
  /** Of them, those whose answer has begun. */
  readonly #lasting = new Set<number>()
  readonly #flight: FlightRecorder | null
  /** Numbers of the steps in the flight recorder, by request. */
  readonly #steps = new Map<number, number>()
  #nextId = 0
  #expiredMs: number | null = null

  /**
   * @param onFault told of what a handler threw
   * @param flight null when nobody would read it
   */
  constructor(onFault: FaultLog, flight: FlightRecorder | null = null) {
    this.#flight = flight
    const sockets = new WebSocketServer({ sink: this, onFault })
    this.sockets = new WorkerSockets(new LocalSocketPort(sockets))
    this.server = new RequestServer(this, onFault, sockets)
  }

  /** Requests without an answer, and streams. */
  get inFlight(): number {
    return this.#exchanges.size
  }

  /** Requests without an answer, as they are reported. */
  works(): WorkInFlight[] {
    const nowMs = exactMs()
    return [...this.#exchanges.values()].map(({ label, plugin, requestId, startMs }) => ({
      kind: 'request',
      name: label,
      plugin,
      id: requestId,
      for_ms: nowMs - startMs,
    }))
  }

  /** False when there is no room. */
  send(frame: RequestFrame, exchange: Exchange): boolean {
    if (this.#exchanges.size - this.#lasting.size >= LOCAL_MAX_IN_FLIGHT) return false
    const id = this.#nextId++
    this.#exchanges.set(id, exchange)
    exchange.assignTo(this, id)
    if (this.#flight !== null) {
      this.#steps.set(id, this.#flight.begin(STEP_REQUEST, frame.routeNumber, -1, requestIdOf(frame), Date.now()))
    }
    this.server.handle(id, frame)
    return true
  }

  cancelRequest(id: number): void {
    this.#lasting.delete(id)
    if (this.#exchanges.delete(id)) this.server.cancel(id)
    this.#endStep(id)
  }

  /** Answers the requests whose time is up. Called regularly. What this thread has stood still for, at a breakpoint perhaps, is nobody's time. */
  expire(nowMs: number): void {
    const stoodMs = nowMs - (this.#expiredMs ?? nowMs)
    this.#expiredMs = nowMs
    for (const exchange of this.#exchanges.values()) {
      exchange.look(nowMs)
      if (exchange.deadlineMs === 0) continue
      if (stoodMs >= STOOD_STILL_MS) exchange.deadlineMs += stoodMs
      if (exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }

  answer(id: number, reply: Reply): void {
    this.#take(id)?.reply(reply)
  }

  /** Its place was free at once. */
  settled(): void {}

  openStream(id: number, head: string): void {
    this.#last(id)?.openStream(200, head)
  }

  streamData(id: number, chunk: string): boolean {
    this.#exchanges.get(id)?.streamData(Buffer.from(chunk))
    return true
  }

  openFile(id: number, status: number, head: string, lengthBytes: number): void {
    this.#last(id)?.openFile(status, head, lengthBytes, (bytes) => this.server.fileFlushed(id, bytes))
  }

  filePiece(id: number, piece: Uint8Array): boolean {
    this.#exchanges.get(id)?.streamData(piece)
    return true
  }

  endStream(id: number, isBroken = false): void {
    this.#take(id)?.endStream(isBroken)
  }

  wantBody(id: number, bytes: number): void {
    this.#exchanges.get(id)?.wantBody(bytes, id, this)
  }

  bodyPiece(id: number, piece: Uint8Array): void {
    this.server.bodyPiece(id, Buffer.from(piece))
  }

  bodyEnded(id: number, fault: ErrorCode | ''): void {
    this.server.bodyEnded(id, fault)
  }

  clientAddress(id: number): string {
    return this.#exchanges.get(id)?.clientAddress() ?? ''
  }

  // ── sockets ───────────────────────────────────────────────────────────────

  acceptSocket(requestId: number, number: number, protocol: string): void {
    this.sockets.accept(this.#take(requestId) ?? null, number, protocol)
  }

  sendMessage(number: number, message: string | Uint8Array): boolean {
    this.sockets.send(number, Buffer.from(message as string), typeof message !== 'string')
    return true
  }

  messageHandled(number: number, weight: number): void {
    this.sockets.handled(number, weight)
  }

  closeSocket(number: number, code: number, reason: string): void {
    this.sockets.close(number, code, reason)
  }

  #last(id: number): Exchange | undefined {
    const exchange = this.#exchanges.get(id)
    if (exchange !== undefined) this.#lasting.add(id)
    return exchange
  }

  #take(id: number): Exchange | undefined {
    const exchange = this.#exchanges.get(id)
    this.#exchanges.delete(id)
    this.#lasting.delete(id)
    this.#endStep(id)
    return exchange
  }

  #endStep(id: number): void {
    const step = this.#steps.get(id)
    if (step === undefined) return
    this.#steps.delete(id)
    this.#flight!.end(step, Date.now(), false)
  }
}
