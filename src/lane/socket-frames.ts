import type { WebSocketServer } from '../runtime/endpoint/web-socket-server.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import { readNumbered } from '../transport/frames/numbered-text.ts'
import type { Inbox } from '../transport/rings/inbox.ts'

/** What the primary tells a lane of its sockets. */
export function readSocketFrame(
  sockets: WebSocketServer,
  kind: number,
  number: number,
  { bytes }: Inbox,
  at: number,
  length: number,
): void {
  switch (kind) {
    case KIND.SOCKET_TEXT:
      return sockets.received(number, bytes.utf8Slice(at, at + length), length)
    case KIND.SOCKET_BYTES:
      // The frame's memory is reused.
      return sockets.received(number, Buffer.from(bytes.subarray(at, at + length)), length)
    case KIND.SOCKET_TAKEN:
      return sockets.taken(number, Number(bytes.latin1Slice(at, at + length)))
    case KIND.SOCKET_CLOSED:
      return sockets.closed(number, ...readNumbered(bytes.utf8Slice(at, at + length)))
  }
}
