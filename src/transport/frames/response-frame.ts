// The layout of an answer in a ring.
import type { FrameBuffer } from './frames.ts'

// RESPONSE: the status, the length of the head in bytes, then the head (`name: value` lines) and the body.
// RESPONSE_HEAD: the same, with the length of the body that follows in place of a body (-1 where nobody knows it); none before events.

export const RESPONSE_FIXED_BYTES = 8
const NO_BODY_FLAG = 1 << 16
const STATUS_MASK = NO_BODY_FLAG - 1

export function writeResponse(
  to: FrameBuffer,
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

// The reading side. One function per field, not one object per response: there is a response for every request.

export const readResponseStatus = ({ words }: FrameBuffer, at: number): number => words[at >> 2]! & STATUS_MASK

export function readResponseHead({ bytes, words }: FrameBuffer, at: number): string {
  const headBytes = words[(at >> 2) + 1]!
  const headAt = at + RESPONSE_FIXED_BYTES
  return headBytes === 0 ? '' : bytes.utf8Slice(headAt, headAt + headBytes)
}

/** Null for a response without a body. The memory is the frame's. */
export function readResponseBody({ bytes, words }: FrameBuffer, at: number, length: number): Uint8Array | null {
  const word = at >> 2
  if ((words[word]! & NO_BODY_FLAG) !== 0) return null
  const bodyAt = at + RESPONSE_FIXED_BYTES + words[word + 1]!
  // Not `subarray`: a Buffer's is twice as slow as a plain view.
  return new Uint8Array(bytes.buffer, bytes.byteOffset + bodyAt, at + length - bodyAt)
}
