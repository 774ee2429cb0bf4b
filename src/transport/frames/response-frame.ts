import type { FrameTarget } from './frame-target.ts'

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
