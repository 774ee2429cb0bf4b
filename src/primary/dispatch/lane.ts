import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { toWire, type WireError } from '../../core/errors/wire.ts'
import {
  type EventFrame,
  eventMaxBytes,
  type PayloadForm,
  readEvent,
  writeEvent,
} from '../../transport/frames/event-frame.ts'
import { INLINE_MAX_BYTES, KIND } from '../../transport/frames/frame-kinds.ts'
import { readNumbered } from '../../transport/frames/numbered-text.ts'
import { type RequestFrame, ROUTES_MAX, requestMaxBytes, writeRequest } from '../../transport/frames/request-frame.ts'
import { NO_BODY_FLAG, RESPONSE_FIXED_BYTES, STATUS_MASK } from '../../transport/frames/response-frame.ts'
import { AnswerCell, createAnswerCell } from '../../transport/memory/answer-cell.ts'
import { createFlightRecorder, FlightReader } from '../../transport/memory/flight-recorder.ts'
import { createHeartbeat, HeartbeatReader } from '../../transport/memory/heartbeat.ts'
import { createRing } from '../../transport/memory/spsc-ring.ts'
import type { LogRecord, Manifest, ToLane, ToPrimary } from '../../transport/messages.ts'
import { Inbox } from '../../transport/rings/inbox.ts'
import { Outbox } from '../../transport/rings/outbox.ts'
import type { StreamReport } from '../../transport/stream-messages.ts'
import type { Exchange } from '../http/exchange.ts'
import { CallAnswers } from './call-answers.ts'
import { DrainRate } from './drain-rate.ts'
import { LaneSockets } from './lane-sockets.ts'
import { type PlacedRequest, RequestSlots } from './request-slots.ts'

/** Bytes of one ring: about 2,000 requests with a browser's headers. */
export const RING_BYTES = 1 << 20

/** Frames that stay unread for longer tell of a handler that keeps the thread, milliseconds. */
const PROMPT_MS = 5

export type LaneState = 'starting' | 'ready' | 'draining' | 'dead'
/** Regular lanes take what comes. The quarantine lane gets events that lanes died of, one at a time, and nothing else. */
export type LaneRole = 'regular' | 'quarantine'

/** What the rest of the primary does with what a lane sends. */
export interface LaneListener {
  onMessage(lane: Lane, message: ToPrimary): void
  /** Takes a published event or throws; what it returns goes nowhere. */
  onPublish(lane: Lane, event: EventFrame): void
  /** An event that went another way than the hub's, without its payload. */
  onRecord(lane: Lane, event: EventFrame, isReceived: boolean): void
  onDelivered(deliveryId: number): void
  onDeliveryReply(deliveryId: number, replyJson: string): void
  onDeliveryFailed(deliveryId: number, error: WireError): void
  /** A tool's `serve`, or the host's own services. */
  onCall(tool: string, method: string, args: unknown[]): unknown
  onLog(lane: Lane | null, record: LogRecord): void
  /** A fault of the primary's own while it read what a lane sent: one frame is lost, and nothing else. */
  onFault(lane: Lane, error: unknown): void
}

/** What was in flight in a lane when its thread had gone. */
export interface UnfinishedWork {
  /** Requests without an answer, the longest in flight first. */
  requests: PlacedRequest[]
  /** Deliveries that the thread never began. */
  unreadDeliveries: Set<number>
}

/**
 * The primary's end of one lane: its rings, the requests and deliveries in flight there, and what it said of itself.
 * It lives as long as its thread; the next thread with the same index gets a new one.
 */
export class Lane {
  readonly index: number
  readonly role: LaneRole
  /** Counts reloads: a lane of a later one has the newer code. */
  readonly generation: number
  state: LaneState = 'starting'
  manifest: Manifest | null = null
  /** False while the loop of its thread stands still: the dispatcher leaves it out. */
  responsive = true
  /** 1 at the numbers of the routes that it serves: a plugin may be up in one lane and not in another, and new code has new routes. */
  readonly hosts = new Uint8Array(ROUTES_MAX)
  /** True when its thread has ended, and what it left is not settled yet: nothing goes into it any more. */
  hasEnded = false
  deliveriesInFlight = 0
  /** It reads streams by itself, and has not said that all it has in hand is done. */
  isReading = false
  /** Takes what it says of the streams that it reads. */
  onStreamReport: (report: StreamReport) => void = () => {}
  /** Runs after each batch of what it has sent: where answers were among it, there is room. */
  onRoom: () => void = () => {}
  readonly startedMs = Date.now()
  readonly port: MessagePort
  readonly heartbeat: HeartbeatReader
  readonly flight: FlightReader
  readonly sockets: LaneSockets
  /** What the thread gets; the ports in it are transferred. */
  readonly threadSide: {
    port: MessagePort
    bulk: MessagePort
    inbound: SharedArrayBuffer
    outbound: SharedArrayBuffer
    heartbeat: SharedArrayBuffer
    address: SharedArrayBuffer
    flight: SharedArrayBuffer
  }

  readonly #listener: LaneListener
  readonly #outbox: Outbox
  readonly #inbox: Inbox
  readonly #bulk: MessagePort
  readonly #address: AnswerCell
  readonly #requests: RequestSlots
  readonly #calls: CallAnswers
  readonly #pace: DrainRate
  /** Deliveries that were given up and not answered. */
  readonly #abandoned = new Set<number>()
  #seenPosition = -1
  #seenMs = 0
  #takenUntil = -1
  #refused: { seq: number; error: WireError }[] = []

  constructor(index: number, role: LaneRole, generation: number, maxInFlight: number, listener: LaneListener) {
    this.index = index
    this.role = role
    this.generation = generation
    this.#listener = listener
    this.#requests = new RequestSlots(maxInFlight)
    this.#pace = new DrainRate(maxInFlight)
    const control = new MessageChannel()
    const bulk = new MessageChannel()
    const toLane = createRing(RING_BYTES)
    const toPrimary = createRing(RING_BYTES)
    const heartbeat = createHeartbeat()
    const flight = createFlightRecorder()
    this.port = control.port1
    this.#bulk = bulk.port1
    const address = createAnswerCell()
    this.heartbeat = new HeartbeatReader(heartbeat)
    this.flight = new FlightReader(flight)
    this.#address = new AnswerCell(address)
    this.threadSide = {
      port: control.port2,
      bulk: bulk.port2,
      inbound: toLane,
      outbound: toPrimary,
      heartbeat,
      address,
      flight,
    }
    this.#outbox = new Outbox(toLane, this.port, bulk.port1)
    this.sockets = new LaneSockets(this.#outbox)
    this.#calls = new CallAnswers(this.#outbox, (tool, method, args) => listener.onCall(tool, method, args))
    this.#inbox = new Inbox(toPrimary, bulk.port1, this.#onFrame, this.#afterDrain)
    this.port.on('message', (message: ToPrimary | number) => {
      try {
        if (typeof message === 'number') this.#inbox.drain()
        else this.#onMessage(message)
      } catch (error) {
        this.#listener.onFault(this, error)
      }
    })
  }

  #onMessage(message: ToPrimary): void {
    if (message.type === 'stream') this.onStreamReport(message.report)
    else this.#listener.onMessage(this, message)
  }

  post(message: ToLane): void {
    if (this.state !== 'dead') this.port.postMessage(message)
  }

  // ── requests ──────────────────────────────────────────────────────────────

  /** Requests without an answer, streams included. */
  get requestsInFlight(): number {
    return this.#requests.count
  }

  /** Files on their way included. */
  get streamsOpen(): number {
    return this.#requests.streams
  }

  get filesOpen(): number {
    return this.#requests.files
  }

  /** Requests that it takes at most beside those that it has. */
  get freeRequests(): number {
    return this.#requests.free
  }

  /** @returns the request's id, or -1 when this lane has no room */
  sendRequest(frame: RequestFrame, exchange: Exchange): number {
    if (this.#requests.free === 0) return -1
    let maxBytes = requestMaxBytes(frame)
    if (maxBytes > INLINE_MAX_BYTES) maxBytes = Buffer.byteLength(frame.text) + 24 + (frame.body?.byteLength ?? 0)
    const at = this.#outbox.begin(maxBytes, false)
    if (at < 0) return -1
    const id = this.#requests.take()
    const bodyBytes = writeRequest(this.#outbox, at, frame)
    this.#requests.put(id, exchange, this.#outbox.end(bodyBytes, KIND.REQUEST, id))
    return id
  }

  /** Gives a request up: its slot is free, its handler's signal is aborted, its answer will find nobody. */
  cancelRequest(id: number): void {
    if (this.state === 'dead' || this.#requests.remove(id) === null) return
    this.#outbox.sendText(KIND.CANCEL, id, '')
  }

  /** Answers the requests whose time is up. Called regularly. */
  expire(nowMs: number): void {
    this.#requests.expire(nowMs)
    this.#pace.look(nowMs, this.#requests.free === 0)
  }

  /** How fast it works off what it has. For who found no room. */
  drainRateWhenFull(): DrainRate['verdict'] {
    return this.#pace.whenFull()
  }

  /**
   * False while it leaves frames unread: it is in a handler that keeps its thread. Asked at each dispatch; what was unread at
   * the last one and still is counts from there.
   */
  isPrompt(nowMs: number): boolean {
    const position = this.#outbox.readPosition
    if (position !== this.#seenPosition || this.#outbox.isRead) {
      this.#seenPosition = position
      this.#seenMs = nowMs
      return true
    }
    return nowMs - this.#seenMs < PROMPT_MS
  }

  /** Reads what it has written, without being rung: a thread that is in a handler cannot ring. */
  collect(): void {
    this.#inbox.drain()
  }

  /** Takes back requests that the thread has not begun, as many as another lane can take. They count as never sent. */
  takeBackRequests(maxRequests: number): { body: Buffer; exchange: Exchange }[] {
    return this.#requests.takeBack(maxRequests, (position) => this.#outbox.takeBack(position))
  }

  // ── events ────────────────────────────────────────────────────────────────

  /** False when the ring is full: the hub keeps the delivery. */
  sendDelivery(deliveryId: number, frame: EventFrame, form: PayloadForm): boolean {
    // Half of the ring is the requests' alone.
    if (this.#outbox.usedBytes > RING_BYTES / 2) return false
    const at = this.#outbox.begin(eventMaxBytes(frame, form), false)
    if (at < 0) return false
    this.#outbox.end(writeEvent(this.#outbox, this.#outbox.doubles, at, frame, form), KIND.DELIVERY, deliveryId)
    this.deliveriesInFlight++
    return true
  }

  /** Gives a delivery up: a handler that never ends must not use up the lane's room for events. */
  abandonDelivery(deliveryId: number): void {
    if (this.state === 'dead') return
    this.#abandoned.add(deliveryId)
    this.deliveriesInFlight--
  }

  #answered(deliveryId: number): void {
    if (this.#abandoned.size === 0 || !this.#abandoned.delete(deliveryId)) this.deliveriesInFlight--
  }

  // ── frames from the lane ──────────────────────────────────────────────────

  readonly #onFrame = (kind: number, id: number, at: number, length: number): void => {
    try {
      this.#read(kind, id, at, length)
    } catch (error) {
      // Thrown into the message loop, it would end the process.
      this.#listener.onFault(this, error)
    }
  }

  #read(kind: number, id: number, at: number, length: number): void {
    const { bytes, words } = this.#inbox
    switch (kind) {
      case KIND.RESPONSE: {
        const exchange = this.#requests.remove(id)
        if (exchange === null) return
        this.#pace.countAnswer()
        const status = words[at >> 2]!
        const headBytes = words[(at >> 2) + 1]!
        const headAt = at + RESPONSE_FIXED_BYTES
        const head = headBytes === 0 ? '' : bytes.utf8Slice(headAt, headAt + headBytes)
        const bodyAt = headAt + headBytes
        // Not `subarray`: a Buffer's is twice as slow as a plain view.
        const body =
          (status & NO_BODY_FLAG) !== 0
            ? null
            : new Uint8Array(bytes.buffer, bytes.byteOffset + bodyAt, at + length - bodyAt)
        exchange.answer(status & STATUS_MASK, head, body)
        return
      }
      case KIND.DELIVERED: {
        const count = length >> 2
        for (let n = 0; n < count; n++) {
          const deliveryId = words[(at >> 2) + n]!
          this.#answered(deliveryId)
          this.#listener.onDelivered(deliveryId)
        }
        return
      }
      case KIND.PUBLISH:
        try {
          this.#listener.onPublish(this, readEvent(this.#inbox, this.#inbox.doubles, at, length, 'bytes'))
        } catch (error) {
          this.#refused.push({ seq: id, error: toWire(error) })
        }
        this.#takenUntil = id
        return
      case KIND.RECORD: {
        const event = readEvent(this.#inbox, this.#inbox.doubles, at, length, 'bytes')
        this.#listener.onRecord(this, event, id === 1)
        return
      }
      case KIND.DELIVERY_REPLY:
        this.#answered(id)
        this.#listener.onDeliveryReply(id, bytes.utf8Slice(at, at + length))
        return
      case KIND.DELIVERY_FAILED:
        this.#answered(id)
        this.#listener.onDeliveryFailed(id, JSON.parse(bytes.utf8Slice(at, at + length)) as WireError)
        return
      case KIND.LOG:
        this.#listener.onLog(this, JSON.parse(bytes.utf8Slice(at, at + length)) as LogRecord)
        return
      case KIND.CALL:
        return this.#calls.call(id, bytes.utf8Slice(at, at + length))
      case KIND.ADDRESS_WANTED:
        this.#address.answer(id, this.#requests.get(id)?.clientAddress() ?? '')
        return
      case KIND.STREAM_OPEN: {
        const headBytes = words[(at >> 2) + 1]!
        const headAt = at + RESPONSE_FIXED_BYTES
        const exchange = this.#requests.get(id)
        if (exchange === null) return
        this.#requests.markStream(id)
        exchange.openStream(words[at >> 2]! & STATUS_MASK, bytes.utf8Slice(headAt, headAt + headBytes))
        return
      }
      case KIND.STREAM_DATA:
        this.#requests.get(id)?.streamData(Buffer.from(bytes.subarray(at, at + length)))
        return
      case KIND.STREAM_END:
        this.#requests.remove(id)?.endStream()
        return
      case KIND.FILE_OPEN: {
        const [lengthBytes, rest] = readNumbered(bytes.utf8Slice(at, at + length))
        const [status, head] = readNumbered(rest)
        const tell = (taken: number): void => this.#outbox.answerText(KIND.FILE_TAKEN, id, String(taken))
        const exchange = this.#requests.get(id)
        if (exchange === null) return
        this.#requests.markFile(id)
        exchange.openFile(status, head, lengthBytes, tell)
        return
      }
      case KIND.SOCKET_ACCEPT:
        return this.sockets.accept(this.#requests.remove(id), bytes.utf8Slice(at, at + length))
    }
    this.sockets.read(kind, id, this.#inbox, at, length)
  }

  readonly #afterDrain = (): void => {
    if (this.state === 'dead') return
    if (this.#takenUntil >= 0) this.#answerPublishes()
    this.onRoom()
  }

  /** Publishes are answered once per batch: everything up to a number is taken, but for those refused. */
  #answerPublishes(): void {
    for (const { seq, error } of this.#refused)
      this.#outbox.answerText(KIND.PUBLISH_REFUSED, seq, JSON.stringify(error))
    if (this.#refused.length > 0) this.#refused = []
    this.#outbox.answerText(KIND.PUBLISH_TAKEN, this.#takenUntil, '')
    this.#takenUntil = -1
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** Reads what the thread wrote before it died, then gives up all that was in flight there. */
  dispose(): UnfinishedWork {
    // First: what its last acknowledgements make room for must not be sent into its ring.
    this.state = 'dead'
    try {
      this.#inbox.drainAll()
      for (let next = receiveMessageOnPort(this.port); next !== undefined; next = receiveMessageOnPort(this.port)) {
        if (typeof next.message !== 'number') this.#onMessage(next.message as ToPrimary)
      }
    } catch (error) {
      this.#listener.onFault(this, error)
    }
    this.#calls.close()
    this.sockets.abandon()
    const unfinished = { requests: this.#requests.clear(), unreadDeliveries: this.#outbox.takeBackAll(KIND.DELIVERY) }
    this.deliveriesInFlight = 0
    this.#outbox.close()
    this.port.close()
    this.#bulk.close()
    return unfinished
  }
}
