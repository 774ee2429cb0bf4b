// How the bytes of an answer are compressed and tagged.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { hasLine, withoutBlanks, withoutLine } from '../../core/http/http-error.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import { hasFailed, isUnchanged } from './files/file-answer.ts'
import { errorReply, JSON_TYPE, type Reply } from './reply.ts'

/** True for a client that takes this encoding. Source: RFC 9110, section 12.5.3; without preferences among those that are taken. */
export function takes(accepted: string, encoding: string): boolean {
  for (const part of accepted.toLowerCase().split(',')) {
    const [name, ...parameters] = part.split(';').map(withoutBlanks)
    if (name === encoding) return !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  }
  return false
}

/** Smaller bodies are sent as they are: they fit into a packet or two. */
const COMPRESSED_MIN_BYTES = 1_024
/** Of 11. Higher ones cost many times the processor time for a few percent. */
const BROTLI_QUALITY = 4
const COMPRESSIBLE =
  /^content-type: (?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript|x-ndjson)|image\/svg\+xml)/m
const REFUSED = /^(?:content-encoding: |content-range: |cache-control: [^\r]*no-transform)/m
const STRONG_TAG = /^etag: (?=")/m

const viaBrotli = promisify(brotliCompress)
const viaGzip = promisify(gzip)

/** True for an answer that is sent compressed to those who take it. */
export function isCompressible({ head, body }: Reply): boolean {
  // A text has at least as many bytes as characters, or is not worth the count.
  if (body === null || body.length < COMPRESSED_MIN_BYTES) return false
  // Without a type it is JSON.
  return (COMPRESSIBLE.test(head) || !hasLine(head, 'content-type')) && !REFUSED.test(head)
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
  return {
    status,
    head: hasLine(head, 'content-type') ? encoded : `content-type: ${JSON_TYPE}\r\n${encoded}`,
    body: bytes,
  }
}

/** The handler's own tag, if it has set one. */
const OWN_TAG = /^etag: ([^\r]*)\r\n/m

/**
 * The answer of a route with `etag`: with a tag of its bytes, or 304 for a client that has them. Only for a GET (or HEAD) that was answered
 * with 200 and a body. Source: RFC 9110, sections 8.8.3 and 13.1.1 and 13.1.2.
 */
export function tagged(reply: Reply, { method, headers }: Pick<RequestFrame, 'method' | 'headers'>): Reply {
  const { status, body } = reply
  if (status !== 200 || body === null || (method !== 'GET' && method !== 'HEAD')) return reply
  let { head } = reply
  let tag = OWN_TAG.exec(head)?.[1]
  if (tag === undefined) {
    // Weak: a proxy may compress what it passes on.
    tag = `W/"${createHash('sha1').update(body).digest('base64url')}"`
    head += `etag: ${tag}\r\n`
  }
  if (hasFailed(headers, tag, null)) return errorReply('HTTP_PRECONDITION')
  if (isUnchanged(headers, tag, null)) return { status: 304, head: withoutLine(head, 'content-type'), body: null }
  return { status, head, body }
}
