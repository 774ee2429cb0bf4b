import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { takes } from './accept-encoding.ts'
import { JSON_TYPE, type Reply } from './reply.ts'

/** Smaller bodies are sent as they are: they fit into a packet or two. */
export const COMPRESSED_MIN_BYTES = 1_024
/** Of 11. Higher ones cost many times the processor time for a few percent. */
const BROTLI_QUALITY = 4
const COMPRESSIBLE =
  /^content-type: (?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript|x-ndjson)|image\/svg\+xml)/m
const CONTENT_TYPE = /^content-type: /m
const REFUSED = /^(?:content-encoding: |content-range: |cache-control: [^\r]*no-transform)/m
const STRONG_TAG = /^etag: (?=")/m

const viaBrotli = promisify(brotliCompress)
const viaGzip = promisify(gzip)

/** True for an answer that is sent compressed to those who take it. */
export function isCompressible({ head, body }: Reply): boolean {
  // A text has at least as many bytes as characters, or is not worth the count.
  if (body === null || body.length < COMPRESSED_MIN_BYTES) return false
  // Without a type it is JSON.
  return (COMPRESSIBLE.test(head) || !CONTENT_TYPE.test(head)) && !REFUSED.test(head)
}

/** A compressible answer, as a client gets it that accepts these encodings. The work is done in the thread pool. */
export async function compressed(reply: Reply, accepted: string): Promise<Reply> {
  const { status, body } = reply
  // Also for those who get it as it is: a cache has to tell them apart.
  const head = `${reply.head}vary: accept-encoding\r\n`
  const encoding = takes(accepted, 'br') ? 'br' : takes(accepted, 'gzip') ? 'gzip' : ''
  if (encoding === '') return { status, head, body }
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY }
  const bytes = encoding === 'br' ? await viaBrotli(body!, { params }) : await viaGzip(body!)
  // Of the bytes that are sent a strong tag would say too much.
  const encoded = `${head.replace(STRONG_TAG, 'etag: W/')}content-encoding: ${encoding}\r\n`
  return { status, head: CONTENT_TYPE.test(head) ? encoded : `content-type: ${JSON_TYPE}\r\n${encoded}`, body: bytes }
}
