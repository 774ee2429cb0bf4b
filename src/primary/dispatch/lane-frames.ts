// Reads the frames of a lane, and answers its calls and publications.

import type { MessagePort } from 'node:worker_threads'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { toWire, type WireError } from '../../core/errors/wire.ts'
import { exactMs } from '../../core/schedule/steady-time.ts'
import type { DeliverySink } from '../../runtime/events/event-server.ts'
import { type EventFrame, readEvent } from '../../transport/frames/event-frame.ts'
import { KIND, parseNumbered, readAcknowledgements, readNumber, readText } from '../../transport/frames/frames.ts'
import { readResponseBody, readResponseHead, readResponseStatus } from '../../transport/frames/response-frame.ts'
import type { AnswerCell } from '../../transport/memory/words.ts'
import type { LogRecord } from '../../transport/messages.ts'
import { type BatchListener, Inbox } from '../../transport/rings/inbox.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'
import type { BodySink } from '../http/request-body.ts'
import type { WorkerSockets } from '../http/worker-sockets.ts'
import type { DeliveryCount } from './delivery-count.ts'
import type { DrainRate } from './drain-rate.ts'
import type { RequestSlots } from './request-slots.ts'

/** Answers the calls of one lane's tools to the primary. */
class CallAnswers {
  readonly #outbox: Outbox
  readonly #onCall: (tool: string, method: string, args: unknown[]) => unknown
  #isClosed = false

  constructor(outbox: Outbox, onCall: (tool: string, method: string, args: unknown[]) => unknown) {
    this.#outbox = outbox
    this.#onCall = onCall
  }

  call(id: number, json: string): void {
    const [tool, method, args] = JSON.parse(json) as [string, string, unknown[]]
    let result: unknown
    try {
      result = this.#onCall(tool, method, args)
    } catch (error) {
      return this.#fail(id, error)
    }
    if (result instanceof Promise) {
      result.then(
        (value) => this.#answer(id, value),
        (error) => this.#fail(id, error),
      )
    } else this.#answer(id, result)
  }

  /** From now on no call is answered. */
  close(): void {
    this.#isClosed = true
  }

  #answer(id: number, value: unknown): void {
    if (this.#isClosed) return
    let json: string
    try {
      json = JSON.stringify(value ?? null) ?? 'null'
    } catch (error) {
      return this.#fail(id, error)
    }
    this.#outbox.answerText(KIND.CALL_RESULT, id, json)
  }

  #fail(id: number, error: unknown): void {
    if (!this.#isClosed) this.#outbox.answerText(KIND.CALL_ERROR, id, JSON.stringify(toWire(error)))
  }
}

/** Answers the publications of one lane, once per batch of frames: everything up to a number is accepted, except what was refused. */
class PublishAnswers {
  readonly #outbox: Outbox
  #answeredUpTo = -1
  #refused: { sequence: number; error: WireError }[] = []

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  accept(sequence: number): void {
    this.#answeredUpTo = sequence
  }

  refuse(sequence: number, error: unknown): void {
    this.#refused.push({ sequence, error: toWire(error) })
    this.#answeredUpTo = sequence
  }

  /** Sends the answers to what has come since the last call. */
  send(): void {
    if (this.#answeredUpTo < 0) return
    for (const { sequence, error } of this.#refused)
      this.#outbox.answerText(KIND.PUBLISH_REFUSED, sequence, JSON.stringify(error))
    if (this.#refused.length > 0) this.#refused = []
    this.#outbox.answerText(KIND.PUBLISH_ACCEPTED, this.#answeredUpTo, '')
    this.#answeredUpTo = -1
  }
}

/** Takes what the frames of a lane are for. */
export interface FrameListener<Sender> {
  /** Takes a published event, or throws. */
  onPublish(lane: Sender, event: EventFrame): void
  /** An event that is in the durable log. */
  onStored(lane: Sender, event: EventFrame): void
  /** An event that another broker than the hub carries, without its payload. */
  onRecord(lane: Sender, event: EventFrame): void
  /** Takes the answers to the deliveries. */
  readonly deliveries: DeliverySink
  /** A call of a lane's tool to its instance in the primary, or of a tool host (tool `#host`). */
  onCall(tool: string, method: string, args: unknown[]): unknown
  onLog(lane: Sender | null, record: LogRecord): void
  /** A fault of the primary while it read what a lane sent: one frame is lost, and nothing else. */
  onFault(lane: Sender, error: unknown): void
}

/** The lane that has written the frames. */
interface FrameSender {
  readonly state: string
  readonly sockets: WorkerSockets
  /** Where answers were among the frames of a batch, there is room. */
  onRoom(): void
}

interface LaneFramesOptions<Sender> {
  lane: Sender
  listener: FrameListener<Sender>
  /** What the lane writes into, and the port for bodies that are too large for it. */
  ring: SharedArrayBuffer
  bulk: MessagePort
  outbox: Outbox
  requests: RequestSlots
  deliveries: DeliveryCount
  drainRate: DrainRate
  /** Where the lane waits for the address of a client. */
  addressCell: AnswerCell
}

/** Reads the frames of one lane, and gives each to the part of the primary that it is for. */
export class LaneFrames<Sender extends FrameSender> implements BodySink, BatchListener {
  readonly #lane: Sender
  readonly #listener: FrameListener<Sender>
  readonly #inbox: Inbox
  readonly #outbox: Outbox
  readonly #requests: RequestSlots
  readonly #deliveries: DeliveryCount
  readonly #drainRate: DrainRate
  readonly #addressCell: AnswerCell
  readonly #calls: CallAnswers
  readonly #publishAnswers: PublishAnswers
  /** When the first answer of the batch was read; 0: none was. */
  #batchMs = 0

  constructor(options: LaneFramesOptions<Sender>) {
    const { lane, listener, outbox } = options
    this.#lane = lane
    this.#listener = listener
    this.#outbox = outbox
    this.#requests = options.requests
    this.#deliveries = options.deliveries
    this.#drainRate = options.drainRate
    this.#addressCell = options.addressCell
    this.#calls = new CallAnswers(outbox, (tool, method, args) => listener.onCall(tool, method, args))
    this.#publishAnswers = new PublishAnswers(outbox)
    this.#inbox = new Inbox(options.ring, options.bulk, this.#onFrame, this)
  }

  /** Reads what the lane has written: when it rings, or when it cannot. */
  drain(): void {
    this.#inbox.drain()
  }

  /** Reads what is there now: what another lane has written may have come later. */
  catchUp(): void {
    this.#inbox.catchUp()
  }

  /** Reads everything that is left: the lane is gone. */
  drainAll(): void {
    this.#inbox.drainAll()
  }

  /** Calls of the lane's tools are not answered any more. */
  close(): void {
    this.#calls.close()
  }

  readonly #onFrame = (kind: number, id: number, at: number, length: number): void => {
    try {
      this.#read(kind, id, at, length)
    } catch (error) {
      // Thrown into the message loop, it would end the process.
      this.#listener.onFault(this.#lane, error)
    }
  }

  beginBatch(): void {
    this.#outbox.beginBatch()
  }

  endBatch(): void {
    this.#batchMs = 0
    if (this.#lane.state === 'dead') return
    this.#publishAnswers.send()
    this.#lane.onRoom()
    this.#outbox.endBatch()
  }

  #read(kind: number, id: number, at: number, length: number): void {
    switch (kind) {
      case KIND.RESPONSE:
        return this.#onResponse(id, at, length)
      case KIND.SETTLED:
        this.#requests.remove(id)
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
        return this.#listener.onStored(this.#lane, readEvent(this.#inbox, at, length, 'bytes'))
      case KIND.RECORD:
        return this.#listener.onRecord(this.#lane, readEvent(this.#inbox, at, length, 'bytes'))
      case KIND.LOG:
        return this.#listener.onLog(this.#lane, JSON.parse(readText(this.#inbox, at, length)) as LogRecord)
      case KIND.CALL:
        return this.#calls.call(id, readText(this.#inbox, at, length))
      case KIND.ADDRESS_WANTED:
        return this.#addressCell.answer(id, this.#requests.get(id)?.clientAddress() ?? '')
      case KIND.RESPONSE_HEAD:
        return this.#onResponseHead(id, at, length)
      case KIND.DATA:
        return this.#requests.get(id)?.streamData(Buffer.from(this.#inbox.bytes.subarray(at, at + length)))
      case KIND.END:
        return this.#requests.remove(id)?.endStream(length > 0)
      case KIND.BODY_WANTED:
        return this.#requests.get(id)?.wantBody(readNumber(this.#inbox, at, length), id, this)
      case KIND.SOCKET_ACCEPT:
        return this.#lane.sockets.accept(this.#requests.remove(id), ...parseNumbered(readText(this.#inbox, at, length)))
      case KIND.SOCKET_TEXT:
      case KIND.SOCKET_BYTES:
        return this.#lane.sockets.send(id, this.#bytes(at, length), kind === KIND.SOCKET_BYTES)
      case KIND.SOCKET_HANDLED:
        return this.#lane.sockets.handled(id, readNumber(this.#inbox, at, length))
      case KIND.SOCKET_CLOSE:
        return this.#lane.sockets.close(id, ...parseNumbered(readText(this.#inbox, at, length)))
    }
  }

  #bytes(at: number, length: number): Uint8Array {
    const { bytes } = this.#inbox
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length)
  }

  bodyPiece(id: number, piece: Uint8Array): void {
    const outbox = this.#outbox
    // An answer to BODY_WANTED: never refused.
    const at = outbox.begin(piece.byteLength, true, true)
    if (at < 0) return
    outbox.bytes.set(piece, at)
    outbox.end(piece.byteLength, KIND.DATA, id)
  }

  bodyEnded(id: number, fault: ErrorCode | ''): void {
    this.#outbox.answerText(KIND.END, id, fault)
  }

  #onResponse(id: number, at: number, length: number): void {
    const exchange = this.#requests.remove(id)
    if (exchange === null) return
    this.#drainRate.countAnswer()
    this.#batchMs ||= exactMs()
    exchange.route?.pace.answered(this.#batchMs - exchange.startMs)
    const inbox = this.#inbox
    exchange.answer(readResponseStatus(inbox, at), readResponseHead(inbox, at), readResponseBody(inbox, at, length))
  }

  #onPublish(sequence: number, at: number, length: number): void {
    try {
      this.#listener.onPublish(this.#lane, readEvent(this.#inbox, at, length, 'bytes'))
      this.#publishAnswers.accept(sequence)
    } catch (error) {
      this.#publishAnswers.refuse(sequence, error)
    }
  }

  #onResponseHead(id: number, at: number, length: number): void {
    const status = readResponseStatus(this.#inbox, at)
    const head = readResponseHead(this.#inbox, at)
    const lengthText = readResponseBody(this.#inbox, at, length)
    if (lengthText === null) return this.#requests.beginStream(id)?.openStream(status, head)
    const lengthBytes = Number(Buffer.from(lengthText).toString())
    const flushed = (bytes: number): void => this.#outbox.answerText(KIND.BODY_FLUSHED, id, String(bytes))
    this.#requests.beginFile(id)?.openFile(status, head, lengthBytes, flushed)
  }
}
