import { createHash } from 'node:crypto'
import { hasFailed, isUnchanged } from './file-answer.ts'
import type { Incoming } from './incoming.ts'
import { errorReply, type Reply } from './reply.ts'

/** The handler's own tag, if it has set one. */
const OWN_TAG = /^etag: ([^\r]*)\r\n/m
const CONTENT_TYPE = /^content-type: [^\r]*\r\n/m

/**
 * The answer of a route with `etag`: with a tag of its bytes, or 304 for a client that has them. Only for a GET (or HEAD) that was answered
 * with 200 and a body. Source: RFC 9110, sections 8.8.3 and 13.1.1 and 13.1.2.
 */
export function tagged(reply: Reply, { method, headers }: Pick<Incoming, 'method' | 'headers'>): Reply {
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
  if (isUnchanged(headers, tag, null)) return { status: 304, head: head.replace(CONTENT_TYPE, ''), body: null }
  return { status, head, body }
}
