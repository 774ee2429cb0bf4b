import type { ErrorCode } from '../core/errors/catalogue.ts'
import type { WireError } from '../core/errors/wire.ts'
import type { RequestServer } from '../runtime/endpoint/request-server.ts'
import type { EventServer } from '../runtime/events/event-server.ts'
import { readEvent } from '../transport/frames/event-frame.ts'
import { KIND, parseNumbered, readNumber, readText } from '../transport/frames/frames.ts'
import { readRequest } from '../transport/frames/request-frame.ts'
import type { LaneInit } from '../transport/messages.ts'
import { Inbox } from '../transport/rings/inbox.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { LaneFlight, RecordedDeliveries } from './flight.ts'
import type { PrimaryCalls, RingPublisher } from './ring-ports.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

export interface PrimaryFramesOptions {
  /** Takes the answers. */
  outbox: Outbox
  requests: RequestServer
  events: EventServer
  hubDeliveries: RecordedDeliveries
  publisher: RingPublisher
  calls: PrimaryCalls
  flight: LaneFlight
  /** Handles the messages of the primary that wait. Called before the first request. */
  catchUp: () => void
}

/** Reads the frames of the primary, and gives each to the part of the lane that it is for. */
export class PrimaryFrames {
  readonly #inbox: Inbox
  readonly #requests: RequestServer
  readonly #events: EventServer
  readonly #hubDeliveries: RecordedDeliveries
  readonly #publisher: RingPublisher
  readonly #calls: PrimaryCalls
  readonly #flight: LaneFlight
  readonly #catchUp: () => void
  #isCaughtUp = false

  constructor({ inbound, bulk }: LaneInit, options: PrimaryFramesOptions) {
    this.#requests = options.requests
    this.#events = options.events
    this.#hubDeliveries = options.hubDeliveries
    this.#publisher = options.publisher
    this.#calls = options.calls
    this.#flight = options.flight
    this.#catchUp = options.catchUp
    this.#inbox = new Inbox(inbound, bulk, this.#onFrame, options.outbox)
  }

  /** The primary has rung. */
  drain(): void {
    this.#inbox.drain()
  }

  /** What this thread ran may have been stopped while a frame was read. */
  recover(): void {
    this.#inbox.recover()
  }

  readonly #onFrame = (kind: number, id: number, at: number, length: number): void => {
    switch (kind) {
      case KIND.REQUEST:
        return this.#onRequest(id, at)
      case KIND.DELIVERY:
        return this.#onDelivery(id, at, length)
      case KIND.PUBLISH_ACCEPTED:
        return this.#publisher.accepted(id)
      case KIND.PUBLISH_REFUSED:
        return this.#publisher.refused(id, parseJson(readText(this.#inbox, at, length)) as WireError)
      case KIND.CANCEL:
        return this.#requests.cancel(id)
      case KIND.BODY_FLUSHED:
        return this.#requests.fileFlushed(id, readNumber(this.#inbox, at, length))
      case KIND.DATA:
        // A copy: the frame's memory is reused.
        return this.#requests.bodyPiece(id, Buffer.from(this.#inbox.bytes.subarray(at, at + length)))
      case KIND.END:
        return this.#requests.bodyEnded(id, readText(this.#inbox, at, length) as ErrorCode | '')
      case KIND.CALL_RESULT:
        return this.#calls.resolve(id, readText(this.#inbox, at, length))
      case KIND.CALL_ERROR:
        return this.#calls.reject(id, readText(this.#inbox, at, length))
    }
    this.#onSocketFrame(kind, id, at, length)
  }

  #onRequest(id: number, at: number): void {
    // The numbers of the routes were sent before it. An inbox that is still awake reads the ring before they are received.
    if (!this.#isCaughtUp) {
      this.#isCaughtUp = true
      this.#catchUp()
    }
    const frame = readRequest(this.#inbox, at)
    this.#flight.beginRequest(id, frame)
    this.#requests.handle(id, frame)
  }

  #onDelivery(id: number, at: number, length: number): void {
    const frame = readEvent(this.#inbox, at, length, 'text')
    this.#hubDeliveries.begin(id, frame)
    this.#events.handle(id, frame, this.#hubDeliveries)
  }

  #onSocketFrame(kind: number, number: number, at: number, length: number): void {
    const { sockets } = this.#requests
    const inbox = this.#inbox
    switch (kind) {
      case KIND.SOCKET_TEXT:
        return sockets.received(number, readText(inbox, at, length), length)
      case KIND.SOCKET_BYTES:
        // A copy: the frame's memory is reused.
        return sockets.received(number, Buffer.from(inbox.bytes.subarray(at, at + length)), length)
      case KIND.SOCKET_FLUSHED:
        return sockets.flushed(number, readNumber(inbox, at, length))
      case KIND.SOCKET_CLOSE:
        return sockets.closed(number, ...parseNumbered(readText(inbox, at, length)))
    }
  }
}
