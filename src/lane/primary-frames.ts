// Reads the frames of the primary, and hands each to its part of the lane.
import type { ErrorCode, WireError } from '../core/errors/catalogue.ts'
import { machineMs } from '../core/schedule/clock.ts'
import type { RequestServer } from '../runtime/endpoint/request-server.ts'
import type { EventServer } from '../runtime/events/event-server.ts'
import { readEvent } from '../transport/frames/event-frame.ts'
import { KIND, parseNumbered, readNumber, readText } from '../transport/frames/frames.ts'
import { readRequest } from '../transport/frames/request-frame.ts'
import type { LaneInit } from '../transport/messages.ts'
import { Inbox } from '../transport/rings/inbox.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { PrimaryCalls, RingAcknowledgements, RingPublisher } from './ring-ports.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** The parts of a lane that take frames. */
interface FrameReaders {
  requests: RequestServer
  events: EventServer
  /** Told of each delivery that begins. */
  acknowledgements: RingAcknowledgements
  publisher: RingPublisher
  calls: PrimaryCalls
  /** Handles the messages on the port. Called before the first request. */
  catchUp: () => void
  /** True when no delivery may begin any more. */
  isLeaving: () => boolean
  /** Gives a delivery back that has not begun. */
  giveBack: (deliveryId: number) => void
}

/** @param outbox told of each batch of frames */
export function primaryInbox({ inbound, bulk }: LaneInit, outbox: Outbox, readers: FrameReaders): Inbox {
  const { requests, events, acknowledgements, publisher, calls, catchUp, isLeaving, giveBack } = readers
  const { sockets } = requests
  let isCaughtUp = false
  const inbox = new Inbox(inbound, bulk, onFrame, outbox)
  return inbox

  function onFrame(kind: number, id: number, at: number, length: number): void {
    // Puts builtins back that plugins have replaced meanwhile.
    requests.isSound()
    switch (kind) {
      case KIND.REQUEST:
        return onRequest(id, at)
      case KIND.DELIVERY:
        return onDelivery(id, at, length)
      case KIND.PUBLISH_ACCEPTED:
        return publisher.accepted(id)
      case KIND.PUBLISH_REFUSED:
        return publisher.refused(id, parseJson(readText(inbox, at, length)) as WireError)
      case KIND.CANCEL:
        return requests.cancel(id)
      case KIND.BODY_FLUSHED:
        return requests.fileFlushed(id, readNumber(inbox, at, length))
      case KIND.REQUEST_DATA:
        // A copy: the frame's memory is reused.
        return requests.bodyPiece(id, Buffer.from(inbox.bytes.subarray(at, at + length)))
      case KIND.REQUEST_END:
        return requests.bodyEnded(id, readText(inbox, at, length) as ErrorCode | '')
      case KIND.CALL_RESULT:
        return calls.resolve(id, readText(inbox, at, length))
      case KIND.CALL_ERROR:
        return calls.reject(id, readText(inbox, at, length))
    }
    onSocketFrame(kind, id, at, length)
  }

  function onRequest(id: number, at: number): void {
    // The numbers of the routes were posted before it, but an inbox that is awake reads the ring before the port.
    if (!isCaughtUp) {
      isCaughtUp = true
      catchUp()
    }
    requests.handle(id, readRequest(inbox, at))
  }

  function onDelivery(id: number, at: number, length: number): void {
    if (isLeaving() || !events.isSound()) return giveBack(id)
    const frame = readEvent(inbox, at, length, 'text')
    // Its limit has let it begin, and no longer counts it.
    if (frame.beginBy !== 0 && machineMs() > frame.beginBy) return giveBack(id)
    acknowledgements.begin(id, frame)
    events.handle(id, frame, acknowledgements)
  }

  function onSocketFrame(kind: number, number: number, at: number, length: number): void {
    switch (kind) {
      case KIND.SOCKET_IN_TEXT:
        return sockets.received(number, readText(inbox, at, length), length)
      case KIND.SOCKET_IN_BYTES:
        // A copy: the frame's memory is reused.
        return sockets.received(number, Buffer.from(inbox.bytes.subarray(at, at + length)), length)
      case KIND.SOCKET_FLUSHED:
        return sockets.flushed(number, readNumber(inbox, at, length))
      case KIND.SOCKET_CLOSE:
        return sockets.closed(number, ...parseNumbered(readText(inbox, at, length)))
    }
  }
}
