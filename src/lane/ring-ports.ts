// A lane's ends of the rings: answers, acknowledgements, publications, calls.

import { Fifo } from '../core/collections/fifo.ts'
import { fromWire, HeddleError, type WireError } from '../core/errors/catalogue.ts'
import { errorReply, type Reply } from '../runtime/endpoint/reply.ts'
import type { AnswerSink, RequestSteps } from '../runtime/endpoint/request-thread.ts'
import type { DeliverySink } from '../runtime/events/event-server.ts'
import type { Publisher } from '../runtime/events/publication.ts'
import { type EventFrame, eventMaxBytes, writeEvent } from '../transport/frames/event-frame.ts'
import {
  acknowledgementBytes,
  INLINE_MAX_BYTES,
  KIND,
  type Kind,
  numberedText,
  utf8MaxBytes,
  writeAcknowledgements,
} from '../transport/frames/frames.ts'
import { RESPONSE_FIXED_BYTES, writeResponse } from '../transport/frames/request-frame.ts'
import { type FlightRecorder, STEP_EVENT } from '../transport/memory/flight-recorder.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { Builtins } from './builtins.ts'

// Taken before plugins can replace them.
const { parse: parseJson, stringify: toJson } = JSON

/** Acknowledgements that go out in one frame at most. */
const ACKS_PER_FRAME = 4096

/** Steps whose numbers are kept until their deliveries end: more than a lane has in flight. */
const STEPS = 4096
const STEP_MASK = STEPS - 1
const EVENT_ID_PREFIX = 'evt_'.length

/** Answers the hub's deliveries. Each delivery is a step of the flight recorder, which ends with its answer. */
export class RingAcknowledgements implements DeliverySink {
  readonly #outbox: Outbox
  readonly #recorder: FlightRecorder
  /** Number of the step of each delivery. */
  readonly #steps = new Int32Array(STEPS)
  readonly #ids: number[] = []
  #isScheduled = false

  readonly #builtins: Builtins

  constructor(outbox: Outbox, recorder: FlightRecorder, builtins: Builtins) {
    this.#outbox = outbox
    this.#recorder = recorder
    this.#builtins = builtins
  }

  begin(deliveryId: number, { id, subscriber }: EventFrame): void {
    const eventId = id.slice(EVENT_ID_PREFIX)
    const step = this.#recorder.begin(STEP_EVENT, subscriber, deliveryId, eventId, Date.now())
    this.#steps[deliveryId & STEP_MASK] = step
  }

  #end(deliveryId: number, failed: boolean): void {
    this.#recorder.endFrame(this.#steps[deliveryId & STEP_MASK]!, deliveryId, Date.now(), failed)
  }

  /** Acknowledgements of one turn of the loop go out together. */
  delivered(deliveryId: number): void {
    if (this.#isLost()) return
    this.#end(deliveryId, false)
    this.#ids.push(deliveryId)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#send)
  }

  reply(deliveryId: number, json: string): void {
    if (this.#isLost()) return
    this.#end(deliveryId, false)
    this.#outbox.sendText(KIND.DELIVERY_REPLY, deliveryId, json)
  }

  failed(deliveryId: number, error: WireError): void {
    if (this.#isLost()) return
    this.#end(deliveryId, true)
    this.#outbox.sendText(KIND.DELIVERY_FAILED, deliveryId, toJson(error))
  }

  /** With replaced builtins the outcome is unknown: another lane gets the event. */
  #isLost(): boolean {
    return !this.#builtins.isSound()
  }

  readonly #send = (): void => {
    this.#builtins.isSound()
    this.#isScheduled = false
    for (let from = 0; from < this.#ids.length; from += ACKS_PER_FRAME) {
      const count = Math.min(ACKS_PER_FRAME, this.#ids.length - from)
      const bytes = acknowledgementBytes(count)
      const frame = this.#outbox.begin(KIND.DELIVERED, 0, bytes)
      writeAcknowledgements(frame, frame.at, this.#ids, from, count)
      frame.send(bytes)
    }
    this.#ids.length = 0
  }
}

interface Publishing {
  seq: number
  id: string
  resolve: (id: string) => void
  reject: (error: Error) => void
  isRefused: boolean
}

/** Publishes events to the hub, and reports events that the store or a broker has taken. */
export class RingPublisher implements Publisher {
  readonly #outbox: Outbox
  /** Unanswered publications, in their order. */
  readonly #publishing = new Fifo<Publishing>()
  #seq = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  publish(event: EventFrame): Promise<string> {
    const seq = this.#seq
    const frame = this.#outbox.begin(KIND.PUBLISH, seq, eventMaxBytes(event, 'text'))
    if (frame === null) throw new HeddleError('EVENT_BUS_FULL', 'Too many events wait to leave this lane')
    this.#seq = (seq + 1) & 0x7fffffff
    frame.send(writeEvent(frame, frame.at, event, 'text'))
    return new Promise((resolve, reject) => {
      this.#publishing.push({ seq, id: event.id, resolve, reject, isRefused: false })
    })
  }

  /** Reports a stored event without its payload, which the primary reads from the store. It is not answered. */
  stored(event: EventFrame): void {
    event.payload = ''
    const frame = this.#outbox.begin(KIND.STORED, 0, eventMaxBytes(event, 'text'))
    frame.send(writeEvent(frame, frame.at, event, 'text'))
  }

  /** Reports an event that a broker has taken, for the trace of the primary. Dropped when there is no room. */
  record(event: EventFrame): void {
    const { payload } = event
    event.payload = ''
    const frame = this.#outbox.begin(KIND.RECORD, 0, eventMaxBytes(event, 'bytes'))
    frame?.send(writeEvent(frame, frame.at, event, 'bytes'))
    event.payload = payload
  }

  /** The hub has accepted all publications up to `seq`, except the refused ones. */
  accepted(seq: number): void {
    for (;;) {
      const next = this.#publishing.peek()
      // Sequence numbers wrap: compare by distance.
      if (next === undefined || ((seq - next.seq) & 0x7fffffff) > 0x3fffffff) return
      this.#publishing.shift()
      if (!next.isRefused) next.resolve(next.id)
    }
  }

  refused(seq: number, error: WireError): void {
    const publishing = this.#publishing.find((each) => each.seq === seq)
    if (publishing === undefined) return
    publishing.isRefused = true
    publishing.reject(fromWire(error))
  }
}

/** Maximum number of open calls of one lane to the primary. */
const CALLS_MAX_OPEN = 65_536

/** A lane's calls to the primary: tools with one store per process, and the runtime's own services (tool `#host`). */
export class PrimaryCalls {
  readonly #outbox: Outbox
  readonly #open = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  #nextId = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /** Unanswered calls. */
  get open(): number {
    return this.#open.size
  }

  call(tool: string, method: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#open.size >= CALLS_MAX_OPEN)
        return reject(new HeddleError('LANE_BUSY', `${CALLS_MAX_OPEN} calls are open`))
      const id = this.#nextId
      this.#nextId = (id + 1) & 0x7fffffff
      if (!this.#outbox.sendText(KIND.CALL, id, toJson([tool, method, args]))) {
        return reject(new HeddleError('LANE_BUSY', 'The ring to the primary is full'))
      }
      this.#open.set(id, { resolve, reject })
    })
  }

  resolve(id: number, json: string): void {
    this.#take(id)?.resolve(parseJson(json))
  }

  reject(id: number, json: string): void {
    this.#take(id)?.reject(fromWire(parseJson(json) as WireError))
  }

  #take(id: number) {
    const call = this.#open.get(id)
    this.#open.delete(id)
    return call
  }
}

/** Maximum backlog of frames above which streams and sockets send no more. Far below `LANE_MEMORY_MB`, which slow readers would use up. */
const STREAMS_MAX_WAITING_BYTES = 64 << 20

/** The answer of a lane with replaced builtins: the plugin's own may be wrong. */
const SPOILT = errorReply('HTTP_INTERNAL')

/** Sends a lane's answers to its clients, over the ring. */
export class RingReplies implements AnswerSink {
  readonly #outbox: Outbox
  readonly #steps: RequestSteps
  readonly #builtins: Builtins

  constructor(outbox: Outbox, steps: RequestSteps, builtins: Builtins) {
    this.#outbox = outbox
    this.#steps = steps
    this.#builtins = builtins
  }

  answer(id: number, given: Reply): void {
    const { status, body, head } = this.#builtins.isSound() ? given : SPOILT
    this.#steps.end(id, status >= 500)
    let maxBytes = RESPONSE_FIXED_BYTES + utf8MaxBytes(head)
    if (typeof body === 'string') {
      maxBytes += maxBytes + utf8MaxBytes(body) > INLINE_MAX_BYTES ? Buffer.byteLength(body) : utf8MaxBytes(body)
    } else if (body !== null) maxBytes += body.byteLength
    const frame = this.#outbox.begin(KIND.RESPONSE, id, maxBytes)
    frame.send(writeResponse(frame, frame.at, status, head, body))
  }

  settled(id: number): void {
    this.#outbox.sendText(KIND.SETTLED, id, '')
  }

  openStream(id: number, head: string): void {
    if (!this.#builtins.isSound()) return this.answer(id, SPOILT)
    this.#openBody(id, 200, head, null)
  }

  streamData(id: number, chunk: string): boolean {
    return this.#builtins.isSound() && this.#hasRoom && this.#outbox.sendText(KIND.RESPONSE_DATA, id, chunk)
  }

  endStream(id: number, isBroken = false): void {
    this.#outbox.sendText(KIND.RESPONSE_END, id, isBroken || !this.#builtins.isSound() ? 'broken' : '')
  }

  openFile(id: number, status: number, head: string, lengthBytes: number): void {
    if (!this.#builtins.isSound()) return this.answer(id, SPOILT)
    this.#steps.end(id, false)
    this.#openBody(id, status, head, String(lengthBytes))
  }

  /** @param length of the body that follows; null before events */
  #openBody(id: number, status: number, head: string, length: string | null): void {
    const maxBytes = RESPONSE_FIXED_BYTES + utf8MaxBytes(head) + (length?.length ?? 0)
    const frame = this.#outbox.begin(KIND.RESPONSE_HEAD, id, maxBytes)
    frame.send(writeResponse(frame, frame.at, status, head, length))
  }

  filePiece(id: number, piece: Uint8Array): boolean {
    return this.#builtins.isSound() && this.#sendBytes(KIND.RESPONSE_DATA, id, piece)
  }

  wantBody(id: number, bytes: number): void {
    this.#outbox.sendText(KIND.BODY_WANTED, id, String(bytes))
  }

  // ── sockets ───────────────────────────────────────────────────────────────

  acceptSocket(requestId: number, number: number, protocol: string): void {
    if (!this.#builtins.isSound()) return this.answer(requestId, SPOILT)
    this.#steps.end(requestId, false)
    this.#outbox.sendText(KIND.SOCKET_ACCEPT, requestId, numberedText(number, protocol))
  }

  sendMessage(number: number, message: string | Uint8Array): boolean {
    if (!this.#builtins.isSound() || !this.#hasRoom) return false
    if (typeof message === 'string') return this.#outbox.sendText(KIND.SOCKET_OUT_TEXT, number, message)
    return this.#sendBytes(KIND.SOCKET_OUT_BYTES, number, message)
  }

  messageHandled(number: number, weight: number): void {
    this.#outbox.sendText(KIND.SOCKET_HANDLED, number, String(weight))
  }

  closeSocket(number: number, code: number, reason: string): void {
    this.#outbox.sendText(KIND.SOCKET_CLOSE, number, numberedText(code, reason))
  }

  #sendBytes(kind: Kind, id: number, bytes: Uint8Array): boolean {
    const frame = this.#outbox.begin(kind, id, bytes.byteLength)
    if (frame === null) return false
    frame.bytes.set(bytes, frame.at)
    frame.send(bytes.byteLength)
    return true
  }

  get #hasRoom(): boolean {
    return this.#outbox.waitingBytes < STREAMS_MAX_WAITING_BYTES
  }
}
