import type { ErrorCode } from '../../../core/errors/catalogue.ts'
import { errorReply, JSON_TYPE, type Reply } from '../../../runtime/endpoint/reply.ts'
import { statusLine } from '../exchange.ts'
import { makeRequestId } from '../request-head.ts'

/** What node:http says of bytes that it cannot read. Source: its `clientError` event, and llhttp's errors. */
const CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'HTTP_HEADERS_TOO_LARGE',
  HPE_INVALID_VERSION: 'HTTP_VERSION',
  ERR_HTTP_REQUEST_TIMEOUT: 'HTTP_REQUEST_TIMEOUT',
}

/** Errors of llhttp that say that the end of a request is not certain, with the words of `HeadScan.framingFault`. */
const FRAMING: Record<string, string> = {
  HPE_INVALID_CONTENT_LENGTH: 'content-length is no number',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'more than one content-length',
  HPE_INVALID_TRANSFER_ENCODING: 'unknown transfer-encoding',
}

/** Why the end of a request is not certain; null when it is something else that cannot be read. */
export function framingFaultOf({ code = '', message }: NodeJS.ErrnoException): string | null {
  if (/content-length.*transfer-encoding|transfer-encoding.*content-length/i.test(message))
    return 'content-length with transfer-encoding'
  return FRAMING[code] ?? null
}

/** The answer to a request that node:http cannot read; null when nobody is there to read it. */
export function replyToFault(error: NodeJS.ErrnoException): Reply | null {
  const { code = '', message } = error
  const framingFault = framingFaultOf(error)
  if (framingFault !== null) return errorReply('HTTP_BAD_REQUEST', `The request is ambiguous: ${framingFault}`)
  // The client has gone in the middle of a request.
  if (code === 'HPE_INVALID_EOF_STATE') return null
  // llhttp calls a line that does not end in CR LF a wrong version, too.
  const known = message.includes('CRLF') ? undefined : CODES[code]
  if (known === 'HTTP_REQUEST_TIMEOUT') return errorReply(known, 'The request did not arrive in time')
  if (known !== undefined) return errorReply(known)
  // The parser's messages name what it expected, and nothing of what came.
  if (code.startsWith('HPE_')) return errorReply('HTTP_BAD_REQUEST', `Malformed request: ${detailOf(message)}`)
  return null
}

/** `Parse Error: Expected HTTP/` without the part that they all have. */
function detailOf(message: string): string {
  const detail = message.replace(/^Parse Error:?\s*/, '')
  return detail === '' ? 'it is not HTTP/1.1' : detail
}

/** A whole answer as bytes, for a connection that has no request that could be answered. */
export function pageOf({ status, head, body }: Reply): string {
  const text = body as string
  return (
    `HTTP/1.1 ${statusLine(status)}\r\nx-content-type-options: nosniff\r\nx-request-id: ${makeRequestId()}\r\n${head}` +
    `content-type: ${JSON_TYPE}\r\nconnection: close\r\ndate: ${new Date().toUTCString()}\r\n` +
    `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}
