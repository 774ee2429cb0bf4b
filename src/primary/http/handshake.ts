import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { errorReply, type Reply } from '../../runtime/endpoint/reply.ts'
import type { ClientRequest, HandshakeContext } from './library.ts'

/** What the library asks for when a connection becomes a WebSocket. */
export interface Handshake {
  readonly key: string
  readonly context: HandshakeContext
  readonly limitBytes: number
}

const VERSION = '13'

/**
 * Why a request for a WebSocket is refused, or null. Source: RFC 6455, section 4.2.1.
 * @param context null when the library has seen no `sec-websocket-key` of the right length
 */
export function handshakeFault(req: ClientRequest, context: HandshakeContext | null): ErrorCode | null {
  const isUpgrade =
    /(?:^|[, \t])websocket(?:$|[, \t])/i.test(req.getHeader('upgrade')) &&
    /(?:^|[, \t])upgrade(?:$|[, \t])/i.test(req.getHeader('connection'))
  if (!isUpgrade || req.getHeader('sec-websocket-version') !== VERSION) return 'HTTP_UPGRADE_REQUIRED'
  if (context === null || !/^[A-Za-z0-9+/]{22}==$/.test(req.getHeader('sec-websocket-key'))) return 'HTTP_BAD_REQUEST'
  return null
}

/** The answer to a request that must speak WebSocket. Source: RFC 9110, section 15.5.22. */
export function upgradeRequired(): Reply {
  const reply = errorReply('HTTP_UPGRADE_REQUIRED')
  return { ...reply, head: `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: ${VERSION}\r\n` }
}
