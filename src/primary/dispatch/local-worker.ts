// Runs the routes of the primary's own plugins, as a lane does for the others.
import type { WorkInFlight } from '../../contracts/registry.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import type { FaultLog } from '../../runtime/endpoint/answering.ts'
import type { Reply } from '../../runtime/endpoint/reply.ts'
import { RequestServer } from '../../runtime/endpoint/request-server.ts'
import { type AnswerSink, RequestSteps } from '../../runtime/endpoint/request-thread.ts'
import type { WebSocketServer } from '../../runtime/endpoint/sockets.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { FlightRecorder } from '../../transport/memory/flight-recorder.ts'
import type { Exchange, RequestHolder } from '../http/exchange.ts'
import type { BodySink } from '../http/request-body.ts'
import { HeldPlaces } from './held-places.ts'
import { RequestSlots, workOf } from './request-slots.ts'
import { WorkerSockets } from './worker-sockets.ts'

/** Requests at plugins of the primary whose answer has not begun, at most. */
const LOCAL_MAX_IN_FLIGHT = 4096
/** It is called ten times a second, so a longer pause is one of the thread, milliseconds. */
const STOOD_STILL_MS = 1000

/** The WebSockets of the primary's own plugins. */
class LocalSockets extends WorkerSockets {
  readonly #server: WebSocketServer

  constructor(server: WebSocketServer) {
    super()
    this.#server = server
  }

  protected message(number: number, message: Uint8Array, isBinary: boolean): void {
    const copy = Buffer.from(message)
    this.#server.received(number, isBinary ? copy : copy.toString(), copy.byteLength)
  }

  socketFlushed(number: number, bytes: number): void {
    this.#server.flushed(number, bytes)
  }

  protected closed(number: number, code: number, reason: string): void {
    this.#server.closed(number, code, reason)
  }
}

/** Runs the routes of primary plugins, in the listener's own thread. */
export class LocalWorker implements AnswerSink, RequestHolder, BodySink {
  readonly index = -1
  readonly server: RequestServer
  readonly sockets: WorkerSockets
  readonly heldPlaces: HeldPlaces
  readonly #requests = new RequestSlots(LOCAL_MAX_IN_FLIGHT)
  readonly #slots = [{ requests: this.#requests }]
  readonly #steps: RequestSteps | null
  #expiredMs: number | null = null

  /**
   * @param onFault told of what a handler threw
   * @param flight null when nobody would read it
   * @param heldPlaces bounds of one route and one client
   */
  constructor(onFault: FaultLog, flight: FlightRecorder | null = null, heldPlaces = new HeldPlaces()) {
    this.heldPlaces = heldPlaces
    this.#steps = flight === null ? null : new RequestSteps(flight)
    this.server = new RequestServer(this, onFault, this.#steps)
    this.sockets = new LocalSockets(this.server.sockets)
  }

  /** Requests without an answer, and streams. */
  get inFlight(): number {
    return this.#requests.count
  }

  /** Places of requests that are held, also by handlers that were given up. */
  get held(): number {
    return this.#requests.held
  }

  /** The same, as they are reported. */
  works(): WorkInFlight[] {
    return this.#requests.list().map(workOf)
  }

  /** False when there is no room. */
  send(frame: RequestFrame, exchange: Exchange): boolean {
    if (this.heldPlaces.isFullFor(exchange, this.#slots)) return this.heldPlaces.refuse(exchange)
    if (!this.#requests.hasRoomFor(exchange)) return false
    const id = this.#requests.nextId()
    this.#requests.put(id, exchange, -1)
    exchange.assignTo(this, id)
    this.server.handle(id, frame)
    return true
  }

  cancelRequest(id: number): void {
    if (this.#requests.giveUp(id) !== null) this.server.cancel(id)
  }

  uploadOver(id: number): void {
    this.#requests.uploadOver(id)
  }

  /** Answers the requests whose time is up. Called regularly. What this thread has stood still for, at a breakpoint perhaps, is nobody's time. */
  expire(nowMs: number): void {
    const stoodMs = nowMs - (this.#expiredMs ?? nowMs)
    this.#expiredMs = nowMs
    if (stoodMs >= STOOD_STILL_MS) this.#requests.postpone(stoodMs)
    this.#requests.expire(nowMs)
  }

  // ── from its plugins ──────────────────────────────────────────────────────

  answer(id: number, reply: Reply): void {
    this.#take(id, reply.status >= 500)?.reply(reply)
  }

  settled(id: number): void {
    this.#take(id)
  }

  wantBody(id: number, bytes: number): void {
    this.#requests.get(id)?.wantBody(bytes, id, this)
  }

  openStream(id: number, head: string): void {
    this.#requests.beginStream(id)?.openStream(200, head)
  }

  streamData(id: number, chunk: string): boolean {
    this.#requests.get(id)?.streamData(Buffer.from(chunk))
    return true
  }

  openFile(id: number, status: number, head: string, lengthBytes: number): void {
    this.#requests.beginFile(id)?.openFile(status, head, lengthBytes, (bytes) => this.server.fileFlushed(id, bytes))
  }

  filePiece(id: number, piece: Uint8Array): boolean {
    this.#requests.get(id)?.streamData(piece)
    return true
  }

  endStream(id: number, isBroken = false): void {
    this.#take(id)?.endStream(isBroken)
  }

  acceptSocket(requestId: number, number: number, protocol: string): void {
    this.sockets.accept(this.#take(requestId), number, protocol)
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

  // ── from clients ──────────────────────────────────────────────────────────

  bodyPiece(id: number, piece: Uint8Array): void {
    this.server.bodyPiece(id, Buffer.from(piece))
  }

  bodyEnded(id: number, fault: ErrorCode | ''): void {
    this.server.bodyEnded(id, fault)
  }

  #take(id: number, failed = false): Exchange | null {
    this.#steps?.end(id, failed)
    return this.#requests.remove(id)
  }
}
