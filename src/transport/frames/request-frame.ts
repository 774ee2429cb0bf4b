// The layout of a request in a ring.
import type { Operator } from '../../contracts/http-request.ts'
import { type FrameBuffer, INLINE_MAX_BYTES, utf8MaxBytes } from './frames.ts'

/**
 * A request as the primary's listener hands it over. `text` is ids + ip + path + query + trace + headers, in this order.
 * Texts of one frame are written as one string and cut by their lengths (in UTF-16 units) on the other side: one copy instead of one per field.
 */
export interface RequestFrame {
  routeNumber: number
  methodNumber: number
  /** The request's id; where its client has chosen it, behind a blank the key that the runtime knows it by. */
  idsLength: number
  ipLength: number
  pathLength: number
  queryLength: number
  /** The trace context of the request's span (src/core/causality/trace-context.ts); 0 while tracing is off. */
  traceLength: number
  text: string
  body: Uint8Array | null
  /** Set when the frame was written: its text has characters beyond ASCII. */
  isBeyondAscii?: boolean
  /** Only for routes under `/system`, and only within the primary: it does not travel to a lane. */
  operator?: Operator | null
}

/** The request's id. */
export function requestIdOf({ text, idsLength }: RequestFrame): string {
  const ids = text.slice(0, idsLength)
  const blank = ids.indexOf(' ')
  return blank < 0 ? ids : ids.slice(0, blank)
}

/** What the runtime knows it by. */
export function requestKeyOf({ text, idsLength }: RequestFrame): string {
  const ids = text.slice(0, idsLength)
  return ids.slice(ids.indexOf(' ') + 1)
}

const REQUEST_FIXED_BYTES = 24
/** Routes that a process can have: their numbers must fit into a frame. */
export const ROUTES_MAX = 65_535

export function requestMaxBytes({ text, body }: RequestFrame): number {
  const bodyBytes = body === null ? 0 : body.byteLength
  const maxBytes = REQUEST_FIXED_BYTES + utf8MaxBytes(text) + bodyBytes
  return maxBytes <= INLINE_MAX_BYTES ? maxBytes : REQUEST_FIXED_BYTES + Buffer.byteLength(text) + bodyBytes
}

export function writeRequest(to: FrameBuffer, at: number, frame: RequestFrame): number {
  const word = at >> 2
  const { bytes, words } = to
  const textBytes = bytes.utf8Write(frame.text, at + REQUEST_FIXED_BYTES)
  if (textBytes !== frame.text.length) frame.isBeyondAscii = true
  words[word] = frame.routeNumber | (frame.methodNumber << 16)
  words[word + 1] = frame.idsLength | (frame.ipLength << 16)
  words[word + 2] = frame.pathLength
  words[word + 3] = frame.queryLength | (frame.traceLength << 16)
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
export function readRequest(from: FrameBuffer, at: number): RequestFrame {
  const word = at >> 2
  const { bytes, words } = from
  const textAt = at + REQUEST_FIXED_BYTES
  const bodyAt = textAt + words[word + 4]!
  const bodyBytes = words[word + 5]!
  return {
    routeNumber: words[word]! & 0xffff,
    methodNumber: (words[word]! >>> 16) & 0xff,
    idsLength: words[word + 1]! & 0xffff,
    ipLength: words[word + 1]! >>> 16,
    pathLength: words[word + 2]!,
    queryLength: words[word + 3]! & 0xffff,
    traceLength: words[word + 3]! >>> 16,
    text: bytes.utf8Slice(textAt, bodyAt),
    body: bodyBytes < 0 ? null : Buffer.from(bytes.subarray(bodyAt, bodyAt + bodyBytes)),
  }
}
