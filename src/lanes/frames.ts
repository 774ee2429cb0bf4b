/**
 * The frames of the two rings of a lane: what kinds there are, and how the bodies of the frequent ones are laid out.
 * Texts of one frame are written as one string and cut by their lengths (in UTF-16 units) on the other side: one copy instead of one per field.
 * Everything rare goes through the port as a structured message (messages.ts).
 */
import type { RawBuffer } from '../shm/raw-buffer.ts'

/** Bodies above this go by `postMessage` with a transfer list; the ring carries only their header. */
export const INLINE_MAX_BYTES = 65_536
/** Set in KIND when the body comes by the bulk port. */
export const BULK_FLAG = 1 << 8
export const KIND_MASK = BULK_FLAG - 1

// primary → lane
export const REQUEST = 1
export const CANCEL = 2
export const DELIVERY = 3
export const CALL_RESULT = 4
export const CALL_ERROR = 5
export const PUBLISH_TAKEN = 6
export const PUBLISH_REFUSED = 7
// lane → primary
export const RESPONSE = 16
export const STREAM_OPEN = 17
export const STREAM_DATA = 18
export const STREAM_END = 19
export const CALL = 20
export const PUBLISH = 21
export const DELIVERED = 22
export const DELIVERY_REPLY = 23
export const DELIVERY_FAILED = 24
export const LOG = 25
export const ADDRESS_WANTED = 26

/** Where a frame's body is written to: the ring itself, or a buffer of its own. */
export interface FrameTarget {
  readonly bytes: RawBuffer
  readonly words: Int32Array
}

export const utf8MaxBytes = (text: string): number => text.length * 3

/** A request as the primary's listener hands it over. `text` is requestId + ip + path + query + headers, in this order. */
export interface RequestFrame {
  routeNumber: number
  methodNumber: number
  requestIdLength: number
  ipLength: number
  pathLength: number
  queryLength: number
  text: string
  body: Uint8Array | null
}

const REQUEST_FIXED_BYTES = 24

export function requestMaxBytes(frame: RequestFrame): number {
  return REQUEST_FIXED_BYTES + utf8MaxBytes(frame.text) + (frame.body === null ? 0 : frame.body.byteLength)
}

export function writeRequest(to: FrameTarget, at: number, frame: RequestFrame): number {
  const word = at >> 2
  const { bytes, words } = to
  const textBytes = bytes.utf8Write(frame.text, at + REQUEST_FIXED_BYTES)
  words[word] = frame.routeNumber | (frame.methodNumber << 16)
  words[word + 1] = frame.requestIdLength | (frame.ipLength << 16)
  words[word + 2] = frame.pathLength
  words[word + 3] = frame.queryLength
  words[word + 4] = textBytes
  if (frame.body === null) {
    words[word + 5] = -1
    return REQUEST_FIXED_BYTES + textBytes
  }
  words[word + 5] = frame.body.byteLength
  bytes.set(frame.body, at + REQUEST_FIXED_BYTES + textBytes)
  return REQUEST_FIXED_BYTES + textBytes + frame.body.byteLength
}

/** The reading side of `writeRequest`. The body is copied: the frame's memory is reused. */
export function readRequest(from: FrameTarget, at: number): RequestFrame {
  const word = at >> 2
  const { bytes, words } = from
  const textAt = at + REQUEST_FIXED_BYTES
  const bodyAt = textAt + words[word + 4]!
  const bodyBytes = words[word + 5]!
  return {
    routeNumber: words[word]! & 0xffff,
    methodNumber: (words[word]! >>> 16) & 0xff,
    requestIdLength: words[word + 1]! & 0xffff,
    ipLength: words[word + 1]! >>> 16,
    pathLength: words[word + 2]!,
    queryLength: words[word + 3]!,
    text: bytes.utf8Slice(textAt, bodyAt),
    body: bodyBytes < 0 ? null : Buffer.from(bytes.subarray(bodyAt, bodyAt + bodyBytes)),
  }
}

/** RESPONSE and STREAM_OPEN: status, the bytes of the head (`name: value` lines), then head and body. */
export const RESPONSE_FIXED_BYTES = 8

export function writeResponse(
  to: FrameTarget,
  at: number,
  status: number,
  head: string,
  body: string | Uint8Array | null,
): number {
  const word = at >> 2
  const { bytes, words } = to
  let end = at + RESPONSE_FIXED_BYTES
  const headBytes = head === '' ? 0 : bytes.utf8Write(head, end)
  words[word] = body === null ? status | NO_BODY_FLAG : status
  words[word + 1] = headBytes
  end += headBytes
  if (typeof body === 'string') end += bytes.utf8Write(body, end)
  else if (body !== null) {
    bytes.set(body, end)
    end += body.byteLength
  }
  return end - at
}

export const NO_BODY_FLAG = 1 << 16
export const STATUS_MASK = NO_BODY_FLAG - 1

/** An event on its way to the hub, or from the hub to a subscriber. */
export interface EventFrame {
  id: string
  parentId: string | null
  event: string
  emitter: string
  requestId: string | null
  /** Ordering key of `publish`; empty in a delivery. */
  key: string | null
  /** Payload keys joined by U+0000; empty in a delivery. */
  payloadKeys: string
  timestampMs: number
  delayMs: number
  /** 0: none. */
  ttlMs: number
  /** Subscription number and attempt of a delivery; flags of a publish. */
  a: number
  b: number
  payload: string | Uint8Array
}

/*  a · b · parentId? · requestId? · lengths · … · timestamp · delay · ttl  */
/** In a delivery's `b`, beside the attempt: the publisher waits for what the subscriber returns. */
export const WANTS_REPLY = 1 << 16

const EVENT_FIXED_BYTES = 64
const NULL_LENGTH = 0xffff

export function eventMaxBytes(frame: EventFrame): number {
  const units =
    frame.id.length +
    (frame.parentId?.length ?? 0) +
    frame.event.length +
    frame.emitter.length +
    (frame.requestId?.length ?? 0) +
    (frame.key?.length ?? 0) +
    frame.payloadKeys.length
  const payload = frame.payload
  return EVENT_FIXED_BYTES + units * 3 + (typeof payload === 'string' ? payload.length * 3 : payload.byteLength)
}

export function writeEvent(to: FrameTarget, doubles: Float64Array, at: number, frame: EventFrame): number {
  const { bytes, words } = to
  const word = at >> 2
  const double = at >> 3
  const text =
    frame.id +
    (frame.parentId ?? '') +
    frame.event +
    frame.emitter +
    (frame.requestId ?? '') +
    (frame.key ?? '') +
    frame.payloadKeys
  doubles[double] = frame.timestampMs
  doubles[double + 1] = frame.delayMs
  doubles[double + 2] = frame.ttlMs
  words[word + 6] = frame.a
  words[word + 7] = frame.b
  words[word + 8] = frame.id.length | ((frame.parentId === null ? NULL_LENGTH : frame.parentId.length) << 16)
  words[word + 9] = frame.event.length | (frame.emitter.length << 16)
  words[word + 10] = frame.requestId === null ? -1 : frame.requestId.length
  words[word + 11] = frame.key === null ? -1 : frame.key.length
  const textBytes = bytes.utf8Write(text, at + EVENT_FIXED_BYTES)
  words[word + 12] = textBytes
  const payloadAt = at + EVENT_FIXED_BYTES + textBytes
  const payload = frame.payload
  if (typeof payload === 'string') return payloadAt - at + bytes.utf8Write(payload, payloadAt)
  bytes.set(payload, payloadAt)
  return payloadAt - at + payload.byteLength
}

/** @param payloadAs what the payload becomes: text for a handler, a copy of the bytes for the hub's keeping */
export function readEvent(
  from: FrameTarget,
  doubles: Float64Array,
  at: number,
  length: number,
  payloadAs: 'text' | 'bytes',
): EventFrame {
  const { bytes, words } = from
  const word = at >> 2
  const double = at >> 3
  const payloadAt = at + EVENT_FIXED_BYTES + words[word + 12]!
  const text = bytes.utf8Slice(at + EVENT_FIXED_BYTES, payloadAt)
  const idEnd = words[word + 8]! & 0xffff
  const parentLength = words[word + 8]! >>> 16
  const parentEnd = idEnd + (parentLength === NULL_LENGTH ? 0 : parentLength)
  const eventEnd = parentEnd + (words[word + 9]! & 0xffff)
  const emitterEnd = eventEnd + (words[word + 9]! >>> 16)
  const requestIdLength = words[word + 10]!
  const requestIdEnd = emitterEnd + Math.max(0, requestIdLength)
  const keyLength = words[word + 11]!
  const keyEnd = requestIdEnd + Math.max(0, keyLength)
  return {
    id: text.slice(0, idEnd),
    parentId: parentLength === NULL_LENGTH ? null : text.slice(idEnd, parentEnd),
    event: text.slice(parentEnd, eventEnd),
    emitter: text.slice(eventEnd, emitterEnd),
    requestId: requestIdLength < 0 ? null : text.slice(emitterEnd, requestIdEnd),
    key: keyLength < 0 ? null : text.slice(requestIdEnd, keyEnd),
    payloadKeys: text.slice(keyEnd),
    timestampMs: doubles[double]!,
    delayMs: doubles[double + 1]!,
    ttlMs: doubles[double + 2]!,
    a: words[word + 6]!,
    b: words[word + 7]!,
    payload: payloadAs === 'text' ? bytes.utf8Slice(payloadAt, at + length) : copyOf(bytes, payloadAt, at + length),
  }
}

function copyOf(bytes: RawBuffer, from: number, to: number): Uint8Array {
  const copy = Buffer.allocUnsafe(to - from)
  bytes.copy(copy, 0, from, to)
  return copy
}
