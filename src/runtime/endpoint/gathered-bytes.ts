import { HeddleError } from '../../core/errors/catalogue.ts'

/** Bytes that `bytes()` and `text()` gather unless they are told otherwise. */
export const GATHERED_MAX_BYTES = 1 << 20

/** All bytes that come, in memory. @throws HTTP_BODY_TOO_LARGE */
export async function gathered(chunks: AsyncIterable<Buffer>, maxBytes = GATHERED_MAX_BYTES): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    pieces.push(chunk)
  }
  return Buffer.concat(pieces, bytes)
}

export function tooLarge(maxBytes: number): HeddleError {
  return new HeddleError('HTTP_BODY_TOO_LARGE', `There are more than ${maxBytes} bytes`)
}
