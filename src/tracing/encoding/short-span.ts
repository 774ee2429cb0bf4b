import { withoutSecretTexts } from '../../core/schemas/secret-texts.ts'
import type { WideFrameBuffer } from '../../transport/frames/frame-buffer.ts'
import { utf8MaxBytes } from '../../transport/frames/frame-buffer.ts'
import type { RawBuffer } from '../../transport/memory/raw-buffer.ts'
import { ATTR } from './attributes.ts'
import { SPAN, writeAttribute, writePlace } from './otlp.ts'
import type { ProtoWriter } from './proto-writer.ts'
import type { SpanPlace } from './span-record.ts'

/**
 * A span as its thread leaves it when nothing about it is unusual: what it has in common with many others is encoded already, and what it
 * has alone is a text. The thread only copies; the exporting thread encodes the span, if it exports it at all.
 *
 *   ┌───────┬─────┬────────┬─────────────────┬────────────────────┬────────────────┬──────┬────────────────┬────────┬──────┐
 *   │ START │ END │ COMMON │ TRACE | PARENT  │ PATH | REQUEST ID  │ QUERY | REMOTE │ TEXT │ –              │ common │ text │
 *   └───────┴─────┴────────┴─────────────────┴────────────────────┴────────────────┴──────┴────────────────┴────────┴──────┘
 *   double  double  bytes    lengths, 16 bits each, in UTF-16 units                  bytes                   at byte 40
 */
const FIXED_BYTES = 40
const START_DOUBLE = 0
const END_DOUBLE = 1
const COMMON_WORD = 4
const CONTEXTS_WORD = 5
const REQUEST_WORD = 6
const QUERY_WORD = 7
const TEXT_WORD = 8
const REMOTE = 1 << 16

/** What a span of a request has alone. */
export interface OwnTexts {
  readonly path: string
  readonly requestId: string
  /** The keys of the query. */
  readonly query: string
}

/** Of a span that is none of a request. */
export const NO_TEXTS: OwnTexts = { path: '', requestId: '', query: '' }

/** The texts of a short span, in their order. */
export const textOfShort = ({ traceContext, parent }: SpanPlace, { path, requestId, query }: OwnTexts): string =>
  traceContext + parent + path + requestId + query

export const shortMaxBytes = (text: string, commonBytes: number): number =>
  FIXED_BYTES + commonBytes + utf8MaxBytes(text)

/** @param at a multiple of 8 @param text as `textOfShort` gives it @returns how many bytes it takes */
export function writeShort(
  to: WideFrameBuffer,
  at: number,
  place: SpanPlace,
  texts: OwnTexts,
  text: string,
  first: Uint8Array,
  second: Uint8Array,
): number {
  const { bytes, words, doubles } = to
  const commonBytes = first.length + second.length
  const textAt = at + FIXED_BYTES + commonBytes
  doubles[(at >> 3) + START_DOUBLE] = place.startMs
  doubles[(at >> 3) + END_DOUBLE] = place.endMs
  const word = at >> 2
  words[word + COMMON_WORD] = commonBytes
  words[word + CONTEXTS_WORD] = place.traceContext.length | (place.parent.length << 16)
  words[word + REQUEST_WORD] = texts.path.length | (texts.requestId.length << 16)
  words[word + QUERY_WORD] = texts.query.length | (place.isParentRemote ? REMOTE : 0)
  bytes.set(first, at + FIXED_BYTES)
  if (second.length > 0) bytes.set(second, at + FIXED_BYTES + first.length)
  const textBytes = bytes.utf8Write(text, textAt)
  words[word + TEXT_WORD] = textBytes
  return FIXED_BYTES + commonBytes + textBytes
}

/** Encodes a short span. @param from need not be aligned */
export function encodeShort(to: ProtoWriter, memory: Buffer, from: number): void {
  const word = (index: number): number => memory.readInt32LE(from + index * 4)
  const commonAt = from + FIXED_BYTES
  const textAt = commonAt + word(COMMON_WORD)
  const text = (memory as RawBuffer).utf8Slice(textAt, textAt + word(TEXT_WORD))
  const [contexts, request, query] = [word(CONTEXTS_WORD), word(REQUEST_WORD), word(QUERY_WORD)]
  const parentAt = contexts & 0xffff
  const pathAt = parentAt + (contexts >>> 16)
  const requestIdAt = pathAt + (request & 0xffff)
  const queryAt = requestIdAt + (request >>> 16)
  writePlace(to, {
    traceContext: text.slice(0, parentAt),
    parent: text.slice(parentAt, pathAt),
    isParentRemote: (query & REMOTE) !== 0,
    startMs: memory.readDoubleLE(from + START_DOUBLE * 8),
    endMs: memory.readDoubleLE(from + END_DOUBLE * 8),
  })
  to.piece(memory, commonAt, textAt)
  if (queryAt === pathAt) return
  writeAttribute(to, SPAN.attributes, ATTR.URL_PATH, withoutSecretTexts(text.slice(pathAt, requestIdAt)))
  writeAttribute(to, SPAN.attributes, ATTR.REQUEST_ID, text.slice(requestIdAt, queryAt))
  if (queryAt < text.length) writeAttribute(to, SPAN.attributes, ATTR.URL_QUERY, text.slice(queryAt))
}
