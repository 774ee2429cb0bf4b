// The layout of an event in a ring.
import type { TraceContext } from '../../contracts/tracing.ts'
import type { FrameMemory } from '../memory/spsc-ring.ts'
import { INLINE_MAX_BYTES } from './frames.ts'

/** Of all events of a name with the same `name`, a subscriber has one at a time: see `PublishOptions`. */
export interface UniqueEvent {
  readonly name: string
  readonly while: 'waiting' | 'running'
  /** Of a publication: the event that is there gets its payload and its time. */
  readonly replaces: boolean
}

/** An event on its way to the hub, or from the hub to a subscriber. */
export interface EventFrame {
  id: string
  parentId: string | null
  /** See ancestors.ts. */
  ancestors: string
  event: string
  emitter: string
  requestId: string | null
  /** Ordering key of `publish`, for the hub alone. */
  key: string | null
  /** In a publication the span that published, in a delivery the span of the delivery. Empty while tracing is off. */
  trace: TraceContext
  /** Payload keys joined by U+0000, for the trace alone. */
  payloadKeys: string
  timestampMs: number
  /** A fraction marks a delay until a date (`at`), which stays when the clock is set. */
  delayMs: number
  /** 0: none. */
  ttlMs: number
  /** Not in a ring: the thread that publishes one, or the hub, sees to it. */
  unique: UniqueEvent | null
  /** Of a publication, whose it is to each group that asks: JSON, group → share; empty: no group does. In the hub the share itself. */
  shares: string
  /** Id of its row in the event store; 0: it is not stored. */
  seq: number
  /** In a delivery: the subscriber's number in its thread, and the attempt with WANTS_REPLY. In a publication 0. */
  subscriber: number
  attempt: number
  /** In a delivery: until when its handler may begin, by `machineMs`; 0: at any time. */
  beginBy: number
  /** JSON text. In the hub the text's UTF-8 bytes, in a string of one character per byte: see `asBytes`. */
  payload: string
}

/** The event as the hub keeps it. @param event with text as its payload */
export const asBytes = (event: EventFrame): EventFrame => ({ ...event, payload: bytesOf(event.payload) })

/** The payload of an event of the hub. @param text JSON */
export const bytesOf = (text: string): string =>
  // Of ASCII each character is a byte already.
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')

/** The payload of an event of the hub, as JSON text. */
export const textOf = ({ payload }: Pick<EventFrame, 'payload'>): string => Buffer.from(payload, 'latin1').toString()

/** How `payload` is written: as text, or as a string of bytes, which costs the hub less than a Buffer. */
export type PayloadForm = 'text' | 'bytes'

/** In a delivery's `attempt`, beside the number: the publisher waits for what the subscriber returns. */
export const WANTS_REPLY = 1 << 16

/**
 * Bytes before the text: timestamp, delay and ttl as float64 (bytes 0–23), then words 6 to 13: subscriber, attempt, lengths of id and parent,
 * of event and emitter, of the request id, of the key and the ancestors, the bytes of the text, the length of the trace, then the id of its row and
 * the time until which it may begin, as float64 (bytes 56–71). The text follows, then the payload.
 */
const EVENT_FIXED_BYTES = 72
const NULL_LENGTH = 0xffff

export function eventMaxBytes(frame: EventFrame, form: PayloadForm): number {
  const units =
    frame.id.length +
    (frame.parentId?.length ?? 0) +
    frame.ancestors.length +
    frame.event.length +
    frame.emitter.length +
    (frame.requestId?.length ?? 0) +
    (frame.key?.length ?? 0) +
    frame.trace.length +
    frame.shares.length +
    frame.payloadKeys.length
  const { payload } = frame
  if (form === 'bytes') return EVENT_FIXED_BYTES + units * 3 + payload.length
  const most = EVENT_FIXED_BYTES + (units + payload.length) * 3
  return most <= INLINE_MAX_BYTES ? most : EVENT_FIXED_BYTES + units * 3 + Buffer.byteLength(payload)
}

export function writeEvent(to: FrameMemory, at: number, frame: EventFrame, form: PayloadForm): number {
  const { bytes, words, doubles } = to
  const word = at >> 2
  const double = at >> 3
  const text =
    frame.id +
    (frame.parentId ?? '') +
    frame.ancestors +
    frame.event +
    frame.emitter +
    (frame.requestId ?? '') +
    (frame.key ?? '') +
    frame.trace +
    frame.shares +
    frame.payloadKeys
  doubles[double] = frame.timestampMs
  doubles[double + 1] = frame.delayMs
  doubles[double + 2] = frame.ttlMs
  doubles[double + 7] = frame.seq
  doubles[double + 8] = frame.beginBy
  words[word + 6] = frame.subscriber
  words[word + 7] = frame.attempt
  words[word + 8] = frame.id.length | ((frame.parentId === null ? NULL_LENGTH : frame.parentId.length) << 16)
  words[word + 9] = frame.event.length | (frame.emitter.length << 16)
  words[word + 10] = frame.requestId === null ? -1 : frame.requestId.length
  words[word + 11] = (frame.key === null ? NULL_LENGTH : frame.key.length) | (frame.ancestors.length << 16)
  const textBytes = bytes.utf8Write(text, at + EVENT_FIXED_BYTES)
  words[word + 12] = textBytes
  words[word + 13] = frame.trace.length | (frame.shares.length << 16)
  const payloadAt = at + EVENT_FIXED_BYTES + textBytes
  const payloadBytes =
    form === 'text' ? bytes.utf8Write(frame.payload, payloadAt) : bytes.latin1Write(frame.payload, payloadAt)
  return payloadAt - at + payloadBytes
}

/** The reading side of `writeEvent`. */
export function readEvent(from: FrameMemory, at: number, length: number, form: PayloadForm): EventFrame {
  const { bytes, words, doubles } = from
  const word = at >> 2
  const double = at >> 3
  const payloadAt = at + EVENT_FIXED_BYTES + words[word + 12]!
  const text = bytes.utf8Slice(at + EVENT_FIXED_BYTES, payloadAt)
  const idEnd = words[word + 8]! & 0xffff
  const parentLength = words[word + 8]! >>> 16
  const parentEnd = idEnd + (parentLength === NULL_LENGTH ? 0 : parentLength)
  const ancestorsEnd = parentEnd + (words[word + 11]! >>> 16)
  const eventEnd = ancestorsEnd + (words[word + 9]! & 0xffff)
  const emitterEnd = eventEnd + (words[word + 9]! >>> 16)
  const requestIdLength = words[word + 10]!
  const requestIdEnd = emitterEnd + Math.max(0, requestIdLength)
  const keyLength = words[word + 11]! & 0xffff
  const keyEnd = requestIdEnd + (keyLength === NULL_LENGTH ? 0 : keyLength)
  const traceEnd = keyEnd + (words[word + 13]! & 0xffff)
  const sharesEnd = traceEnd + (words[word + 13]! >>> 16)
  const event = {
    id: text.slice(0, idEnd),
    parentId: parentLength === NULL_LENGTH ? null : text.slice(idEnd, parentEnd),
    ancestors: ancestorsEnd === parentEnd ? '' : text.slice(parentEnd, ancestorsEnd),
    event: text.slice(ancestorsEnd, eventEnd),
    emitter: text.slice(eventEnd, emitterEnd),
    requestId: requestIdLength < 0 ? null : text.slice(emitterEnd, requestIdEnd),
    key: keyLength === NULL_LENGTH ? null : text.slice(requestIdEnd, keyEnd),
    trace: text.slice(keyEnd, traceEnd),
    shares: text.slice(traceEnd, sharesEnd),
    payloadKeys: text.slice(sharesEnd),
    timestampMs: doubles[double]!,
    delayMs: doubles[double + 1]!,
    ttlMs: doubles[double + 2]!,
    unique: null,
    seq: doubles[double + 7]!,
    subscriber: words[word + 6]!,
    attempt: words[word + 7]!,
    beginBy: doubles[double + 8]!,
    payload: form === 'text' ? bytes.utf8Slice(payloadAt, at + length) : bytes.latin1Slice(payloadAt, at + length),
    // Set by the hub. Here, because an object that gets fields later needs a second one for them.
    producer: '',
    expiresMs: 0,
    source: null,
    requester: null,
  }
  return event
}
