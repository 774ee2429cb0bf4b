// The primary's end of one lane.
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { ErrorCode, WireError } from '../../core/errors/catalogue.ts'
import { exactMs, steadyMs } from '../../core/schedule/clock.ts'
import type { DeliveryHub } from '../../runtime/events/event-server.ts'
import { type EventFrame, eventMaxBytes, readEvent, writeEvent } from '../../transport/frames/event-frame.ts'
import { KIND, parseNumbered, readAcknowledgements, readNumber, readText } from '../../transport/frames/frames.ts'
import {
  type RequestFrame,
  ROUTES_MAX,
  readResponseBody,
  readResponseHead,
  readResponseStatus,
  requestMaxBytes,
  writeRequest,
} from '../../transport/frames/request-frame.ts'
import { createFlightRecorder, FlightReader } from '../../transport/memory/flight-recorder.ts'
import { createHeartbeat, HeartbeatReader } from '../../transport/memory/heartbeat.ts'
import { createRing } from '../../transport/memory/spsc-ring.ts'
import type { LaneInit, LogRecord, Manifest, ToLane, ToPrimary } from '../../transport/messages.ts'
import { type BatchListener, Inbox } from '../../transport/rings/inbox.ts'
import { Outbox } from '../../transport/rings/outbox.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BodySink } from '../http/request-body.ts'
import type { AdmissionQueue } from './admission-queue.ts'
import { CallAnswers, DeliveryCount, PublishAnswers } from './lane-answers.ts'
import { DrainRate, type PlacedRequest, RequestSlots } from './request-slots.ts'
import { LaneSockets } from './worker-sockets.ts'

/** Bytes of one ring: about 2,000 requests with a browser's headers. */
const RING_BYTES = 1 << 20

/** The channels as the lane's thread gets them. The ports are transferred. */
type ThreadSide = Pick<LaneInit, 'port' | 'bulk' | 'inbound' | 'outbound' | 'heartbeat' | 'flight'>

/** Frames that stay unread for longer show that a handler keeps the thread busy, milliseconds. */
const PROMPT_MS = 5
/** One lane alone is given the quick requests while it has fewer of them, and reads them within this, milliseconds. */
const ALONE_MAX_REQUESTS = 16
const ALONE_MAX_UNREAD_MS = 1

/** `dying`: something in it ends it. Its place is another's; its thread finishes what it has, and leaves. */
export type LaneState = 'starting' | 'ready' | 'draining' | 'dying' | 'dead'
/**
 * Regular lanes take all work. The quarantine lane gets events that lanes died of, one at a time, and nothing else. The probation lane
 * gets the requests of plugins that may have ended lanes, and nothing else.
 */
export type LaneRole = 'regular' | 'quarantine' | 'probation'

/** Takes what a lane sends, for the rest of the primary. */
export interface LaneListener {
  onMessage(lane: Lane, message: ToPrimary): void
  /** Takes a published event, or throws. */
  onPublish(lane: Lane, event: EventFrame): void
  /** An event that is in the event store, without its payload. */
  onStored(lane: Lane, event: EventFrame): void
  /** An event that another broker than the hub carries, without its payload. */
  onRecord(lane: Lane, event: EventFrame): void
  /** Takes the answers to the deliveries. */
  readonly deliveries: DeliveryHub
  /** A call of a lane's tool to its instance in the primary, or of a tool host (tool `#host`). */
  onCall(tool: string, method: string, args: unknown[]): unknown
  onLog(lane: Lane, record: LogRecord): void
  /** A fault of the primary while it read what a lane sent: one frame is lost, and nothing else. */
  onFault(lane: Lane, error: unknown): void
}

/** The lanes that there are: none before the first has begun. */
export interface Lanes {
  /** Those whose thread runs, or is about to. */
  readonly all: readonly Lane[]
  /** Those that take work. */
  readonly ready: readonly Lane[]
  countByState(): Record<string, number>
}

export interface LaneOptions {
  index: number
  role: LaneRole
  /** Counts reloads: a lane of a later generation has newer code. */
  generation: number
  /** Requests that it may have in flight. */
  maxInFlight: number
  listener: LaneListener
}

/** Work that was in flight in a lane when its thread ended. */
export interface UnfinishedWork {
  /** Requests without an answer, the longest in flight first. */
  requests: PlacedRequest[]
  /** Deliveries that the thread never began. */
  unreadDeliveries: Set<number>
}

/**
 * The primary's end of one lane: its channels, the requests and deliveries in flight there, what it sends, and what it has reported.
 * It lives as long as its thread; the next thread with the same index gets a new one.
 */
export class Lane implements BodySink, BatchListener {
  readonly index: number
  readonly role: LaneRole
  readonly generation: number
  state: LaneState = 'starting'
  /** Everything that the lane hosts; null until it has booted. */
  manifest: Manifest | null = null
  /** False while the loop of its thread stands still: the dispatcher leaves it out. */
  responsive = true
  /** How long a debugger has been attached while it ran. */
  heldMs = 0
  /** 1 at the numbers of the routes that it hosts: a plugin may be up in one lane and not in another, and new code has new routes. */
  readonly hostsRoute = new Uint8Array(ROUTES_MAX)
  /** 1 at the numbers of the routes whose requests it gets. */
  readonly servesRoute = new Uint8Array(ROUTES_MAX)
  /** Runs after each batch of frames: where answers were among them, there is room. */
  onRoom: () => void = () => {}
  readonly startedMs = steadyMs()
  /** Messages and the doorbell. */
  readonly port: MessagePort
  readonly heartbeat: HeartbeatReader
  readonly flight: FlightReader
  readonly requests: RequestSlots
  /** How fast it answers what it has. */
  readonly drainRate: DrainRate
  readonly sockets: LaneSockets
  readonly threadSide: ThreadSide

  readonly #listener: LaneListener
  /** Bodies that are too large for the rings. */
  readonly #bulk: MessagePort
  readonly #outbox: Outbox
  readonly #inbox: Inbox
  readonly #calls: CallAnswers
  readonly #publishAnswers: PublishAnswers
  readonly #deliveries: DeliveryCount
  /** Up to where the thread had read at the last look, and since when it has been there. */
  #seenPosition = -1
  #seenMs = 0
  /** When the first answer of the batch was read; 0: none was. */
  #batchMs = 0

  constructor({ index, role, generation, maxInFlight, listener }: LaneOptions) {
    this.index = index
    this.role = role
    this.generation = generation
    this.#listener = listener
    this.requests = new RequestSlots(maxInFlight)
    this.#deliveries = new DeliveryCount(listener.deliveries)
    this.drainRate = new DrainRate(maxInFlight)
    const control = new MessageChannel()
    const bulk = new MessageChannel()
    const threadSide = {
      port: control.port2,
      bulk: bulk.port2,
      inbound: createRing(RING_BYTES),
      outbound: createRing(RING_BYTES),
      heartbeat: createHeartbeat(),
      flight: createFlightRecorder(),
    }
    this.port = control.port1
    this.#bulk = bulk.port1
    this.threadSide = threadSide
    this.heartbeat = new HeartbeatReader(threadSide.heartbeat)
    this.flight = new FlightReader(threadSide.flight)
    this.#outbox = new Outbox(threadSide.inbound, this.port, this.#bulk)
    this.sockets = new LaneSockets(this.#outbox)
    this.#calls = new CallAnswers(this.#outbox, (tool, method, args) => listener.onCall(tool, method, args))
    this.#publishAnswers = new PublishAnswers(this.#outbox)
    this.#inbox = new Inbox(threadSide.outbound, this.#bulk, this.#onFrame, this)
    this.port.on('message', (message: ToPrimary | number) => {
      try {
        if (typeof message === 'number') this.#inbox.drain()
        else listener.onMessage(this, message)
      } catch (error) {
        listener.onFault(this, error)
      }
    })
  }

  post(message: ToLane): void {
    if (this.state !== 'dead') this.port.postMessage(message)
  }

  // ── requests ──────────────────────────────────────────────────────────────

  /** Requests whose answer has not begun, uploads among them. */
  get requestsInFlight(): number {
    return this.requests.count - this.requests.streams
  }

  /** @returns the request's id, or -1 when this lane has no room */
  sendRequest(frame: RequestFrame, exchange: Exchange): number {
    if (!this.requests.hasRoomFor(exchange)) return -1
    const id = this.requests.nextId()
    const ringFrame = this.#outbox.begin(KIND.REQUEST, id, requestMaxBytes(frame))
    if (ringFrame === null) return -1
    this.requests.put(id, exchange, ringFrame.send(writeRequest(ringFrame, ringFrame.at, frame)))
    return id
  }

  /** As `sendRequest`, for a request of the queue. */
  sendWaiting(queue: AdmissionQueue, waitingId: number, exchange: Exchange): number {
    if (!this.requests.hasRoomFor(exchange)) return -1
    const bytes = queue.lengthOf(waitingId)
    const id = this.requests.nextId()
    const frame = this.#outbox.begin(KIND.REQUEST, id, bytes)
    if (frame === null) return -1
    queue.copyTo(waitingId, frame.words, frame.at)
    this.requests.put(id, exchange, frame.send(bytes))
    return id
  }

  /** Answers the requests of one plugin with an error, and gives them up. */
  failRequestsOf(plugin: string, code: ErrorCode): void {
    for (const [id, exchange] of this.requests.entries()) {
      if (exchange.plugin !== plugin) continue
      this.cancelRequest(id)
      exchange.fail(code)
    }
  }

  /** Gives a request up: its handler's signal is aborted, its answer is dropped, and its slot is free when its handler has settled. */
  cancelRequest(id: number): void {
    if (this.state === 'dead' || this.requests.giveUp(id) === null) return
    this.#outbox.sendText(KIND.CANCEL, id, '')
  }

  uploadOver(id: number): void {
    this.requests.uploadOver(id)
  }

  /** Answers the requests whose time is up. Called regularly. */
  expire(nowMs: number): void {
    this.requests.expire(nowMs)
    this.drainRate.sample(nowMs, this.requests.free <= 0)
  }

  /** A debugger was attached for so long: what is in flight gets as much time more. */
  hold(forMs: number): void {
    this.heldMs += forMs
    this.requests.postpone(forMs)
  }

  /**
   * False while it leaves frames unread: a handler keeps its thread busy. Asked at each dispatch: the time counts from the first look
   * that found the same frames unread.
   */
  isPrompt(nowMs: number): boolean {
    const { ring } = this.#outbox
    const position = ring.readPosition
    if (position !== this.#seenPosition || ring.isRead) {
      this.#seenPosition = position
      this.#seenMs = nowMs
    }
    return nowMs - this.#seenMs < PROMPT_MS
  }

  /**
   * True while it can do alone what is quickly done: another lane would have to wake for it, and waking a thread costs more than such a
   * request. Asked after `isPrompt`.
   */
  canServeAlone(nowMs: number): boolean {
    const hasSlowWork = this.requests.slow > 0 || this.#deliveries.count > 0
    return !hasSlowWork && this.requestsInFlight < ALONE_MAX_REQUESTS && nowMs - this.#seenMs < ALONE_MAX_UNREAD_MS
  }

  /** Takes back requests that the thread has not begun, as many as another lane can take. They count as never sent. */
  takeBackRequests(maxRequests: number): { body: Buffer; exchange: Exchange }[] {
    return this.requests.takeBack(maxRequests, (position) => this.#outbox.ring.takeBack(position))
  }

  // ── events ────────────────────────────────────────────────────────────────

  get deliveriesInFlight(): number {
    return this.#deliveries.count
  }

  /** False when the ring is full: the hub keeps the delivery. */
  sendDelivery(deliveryId: number, event: EventFrame): boolean {
    // Half of the ring is for requests alone.
    if (this.#outbox.ring.usedBytes > RING_BYTES / 2) return false
    const frame = this.#outbox.begin(KIND.DELIVERY, deliveryId, eventMaxBytes(event, 'bytes'))
    if (frame === null) return false
    frame.send(writeEvent(frame, frame.at, event, 'bytes'))
    this.#deliveries.count++
    return true
  }

  /** It leaves, and has not begun these deliveries. */
  unbegun(deliveries: readonly number[]): void {
    this.#deliveries.unbegun(deliveries)
  }

  /** Gives a delivery up. */
  abandonDelivery(deliveryId: number): void {
    if (this.state !== 'dead') this.#deliveries.abandon(deliveryId)
  }

  // ── what it sends ─────────────────────────────────────────────────────────

  /** Reads its frames without being rung: a thread that is in a handler cannot ring. */
  collect(): void {
    this.#inbox.drain()
  }

  /** Reads what it has written by now: what another lane has written may have come later. */
  catchUp(): void {
    this.#inbox.catchUp()
  }

  readonly #onFrame = (kind: number, id: number, at: number, length: number): void => {
    try {
      this.#read(kind, id, at, length)
    } catch (error) {
      // Thrown into the message loop, it would end the process.
      this.#listener.onFault(this, error)
    }
  }

  beginBatch(): void {
    this.#outbox.beginBatch()
  }

  endBatch(): void {
    this.#batchMs = 0
    if (this.state === 'dead') return
    this.#publishAnswers.send()
    this.onRoom()
    this.#outbox.endBatch()
  }

  #read(kind: number, id: number, at: number, length: number): void {
    switch (kind) {
      case KIND.RESPONSE:
        return this.#onResponse(id, at, length)
      case KIND.SETTLED:
        this.requests.remove(id)
        return
      case KIND.DELIVERED:
        return readAcknowledgements(this.#inbox, at, length, this.#deliveries.delivered)
      case KIND.DELIVERY_REPLY:
        return this.#deliveries.reply(id, readText(this.#inbox, at, length))
      case KIND.DELIVERY_FAILED:
        return this.#deliveries.failed(id, JSON.parse(readText(this.#inbox, at, length)) as WireError)
      case KIND.PUBLISH:
        return this.#onPublish(id, at, length)
      case KIND.STORED:
        return this.#listener.onStored(this, readEvent(this.#inbox, at, length, 'bytes'))
      case KIND.RECORD:
        return this.#listener.onRecord(this, readEvent(this.#inbox, at, length, 'bytes'))
      case KIND.LOG:
        return this.#listener.onLog(this, JSON.parse(readText(this.#inbox, at, length)) as LogRecord)
      case KIND.CALL:
        return this.#calls.call(id, readText(this.#inbox, at, length))
      case KIND.RESPONSE_HEAD:
        return this.#onResponseHead(id, at, length)
      case KIND.RESPONSE_DATA:
        return this.requests.get(id)?.streamData(Buffer.from(this.#inbox.bytes.subarray(at, at + length)))
      case KIND.RESPONSE_END:
        return this.requests.remove(id)?.endStream(length > 0)
      case KIND.BODY_WANTED:
        return this.requests.get(id)?.wantBody(readNumber(this.#inbox, at, length), id, this)
      case KIND.SOCKET_ACCEPT:
        return this.sockets.accept(this.requests.remove(id), ...parseNumbered(readText(this.#inbox, at, length)))
      case KIND.SOCKET_OUT_TEXT:
      case KIND.SOCKET_OUT_BYTES:
        return this.sockets.send(id, this.#bytes(at, length), kind === KIND.SOCKET_OUT_BYTES)
      case KIND.SOCKET_HANDLED:
        return this.sockets.handled(id, readNumber(this.#inbox, at, length))
      case KIND.SOCKET_CLOSE:
        return this.sockets.close(id, ...parseNumbered(readText(this.#inbox, at, length)))
    }
  }

  #bytes(at: number, length: number): Uint8Array {
    const { bytes } = this.#inbox
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length)
  }

  bodyPiece(id: number, piece: Uint8Array): void {
    const frame = this.#outbox.begin(KIND.REQUEST_DATA, id, piece.byteLength)
    frame.bytes.set(piece, frame.at)
    frame.send(piece.byteLength)
  }

  bodyEnded(id: number, fault: ErrorCode | ''): void {
    this.#outbox.sendText(KIND.REQUEST_END, id, fault)
  }

  #onResponse(id: number, at: number, length: number): void {
    const exchange = this.requests.remove(id)
    if (exchange === null) return
    this.drainRate.countAnswer()
    this.#batchMs ||= exactMs()
    exchange.route?.pace.answered(this.#batchMs - exchange.startMs)
    const inbox = this.#inbox
    exchange.answer(readResponseStatus(inbox, at), readResponseHead(inbox, at), readResponseBody(inbox, at, length))
  }

  #onPublish(sequence: number, at: number, length: number): void {
    try {
      this.#listener.onPublish(this, readEvent(this.#inbox, at, length, 'bytes'))
      this.#publishAnswers.accept(sequence)
    } catch (error) {
      this.#publishAnswers.refuse(sequence, error)
    }
  }

  #onResponseHead(id: number, at: number, length: number): void {
    const status = readResponseStatus(this.#inbox, at)
    const head = readResponseHead(this.#inbox, at)
    const lengthText = readResponseBody(this.#inbox, at, length)
    if (lengthText === null) return this.requests.beginStream(id)?.openStream(status, head)
    const lengthBytes = Number(Buffer.from(lengthText).toString())
    const flushed = (bytes: number): void => this.#outbox.sendText(KIND.BODY_FLUSHED, id, String(bytes))
    this.requests.beginFile(id)?.openFile(status, head, lengthBytes, flushed)
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** Reads what the thread wrote before it died, then gives up all that was in flight there. */
  dispose(): UnfinishedWork {
    // First: its last acknowledgements make room, and nothing may be sent into its ring for that.
    this.state = 'dead'
    try {
      this.#inbox.drainAll()
      for (let next = receiveMessageOnPort(this.port); next !== undefined; next = receiveMessageOnPort(this.port)) {
        if (typeof next.message !== 'number') this.#listener.onMessage(this, next.message as ToPrimary)
      }
    } catch (error) {
      this.#listener.onFault(this, error)
    }
    this.sockets.dispose()
    const unfinished = { requests: this.requests.clear(), unreadDeliveries: this.#outbox.takeBackAll(KIND.DELIVERY) }
    this.#deliveries.count = 0
    this.#outbox.close()
    this.port.close()
    this.#bulk.close()
    return unfinished
  }
}
