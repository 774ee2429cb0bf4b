import type { HttpResponse } from 'uWebSockets.js'
import { errorReply, JSON_TYPE } from '../../runtime/endpoint/reply.ts'
import { statusLine } from './status-line.ts'

/**
 * The library keeps back what fits here until it has read all that came with the request, and would run a request behind it first. What
 * is longer it sends at once.
 */
const HELD_BACK_BYTES = 16_384
/** White space behind JSON is a part of it (RFC 8259, section 2). */
const PADDING = ' '.repeat(HELD_BACK_BYTES)
/** The library ends the line that we write the body with. */
const LINE_END_BYTES = 2

/**
 * Answers 400 to a request whose end is not certain, and closes its connection before this returns: nothing that came behind the request
 * is read. A HEAD request gets no answer, because a body must not stand behind it.
 */
export function refuseFraming(res: HttpResponse, method: string, requestId: string, fault: string): void {
  try {
    if (method === 'HEAD') return
    const { status, body } = errorReply('HTTP_BAD_REQUEST', `The request is ambiguous: ${fault}`)
    const padded = body + PADDING
    const head = `nosniff\r\nx-request-id: ${requestId}\r\ncontent-type: ${JSON_TYPE}\r\nconnection: close`
    const length = Buffer.byteLength(padded) + LINE_END_BYTES
    res.writeStatus(statusLine(status))
    // `end` is of no use: it would not close the connection at once, and nothing could close it afterwards.
    res.writeHeader('x-content-type-options', `${head}\r\ncontent-length: ${length}\r\n\r\n${padded}`)
  } finally {
    res.close()
  }
}
