// What happens at the WebSockets of a lane, as frames for its ring.
import { INLINE_MAX_BYTES, KIND, numberedText } from '../../transport/frames/frames.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'
import type { SocketPort } from '../http/worker-sockets.ts'

/** Bytes of the ring that messages take at most: the rest is for requests. */
const RING_SHARE_BYTES = 1 << 19
const RETRY_MS = 2

/** A frame that waits for room. */
interface Waiting {
  kind: number
  number: number
  body: Uint8Array | string
}

/** Tells a lane of its sockets, by their numbers there. */
export class LaneSocketPort implements SocketPort {
  readonly #outbox: Outbox
  #waiting: Waiting[] = []
  #retryTimer: NodeJS.Timeout | undefined

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /** The lane is gone. */
  close(): void {
    clearTimeout(this.#retryTimer)
    this.#waiting = []
  }

  message(number: number, message: Uint8Array, isBinary: boolean): void {
    const kind = isBinary ? KIND.SOCKET_BYTES : KIND.SOCKET_TEXT
    // A copy: the library reuses the memory.
    if (this.#waiting.length > 0 || !this.#trySend(kind, number, message)) {
      this.#wait({ kind, number, body: message.slice() })
    }
  }

  flushed(number: number, bytes: number): void {
    this.#send(KIND.SOCKET_FLUSHED, number, String(bytes))
  }

  closed(number: number, code: number, reason: string): void {
    this.#send(KIND.SOCKET_CLOSE, number, numberedText(code, reason))
  }

  refused(number: number): void {
    this.closed(number, 1006, '')
  }

  /** Sends behind frames that wait: a close must not overtake a message. */
  #send(kind: number, number: number, text: string): void {
    if (this.#waiting.length === 0) this.#outbox.answerText(kind, number, text)
    else this.#wait({ kind, number, body: text })
  }

  #trySend(kind: number, number: number, body: Uint8Array): boolean {
    const outbox = this.#outbox
    if (body.byteLength <= INLINE_MAX_BYTES && outbox.usedBytes > RING_SHARE_BYTES) return false
    const at = outbox.begin(body.byteLength, false)
    if (at < 0) return false
    outbox.bytes.set(body, at)
    outbox.end(body.byteLength, kind, number)
    return true
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#retryTimer ??= setTimeout(this.#retry, RETRY_MS)
  }

  readonly #retry = (): void => {
    this.#retryTimer = undefined
    let sent = 0
    for (const { kind, number, body } of this.#waiting) {
      if (typeof body === 'string') this.#outbox.answerText(kind, number, body)
      else if (!this.#trySend(kind, number, body)) break
      sent++
    }
    this.#waiting.splice(0, sent)
    if (this.#waiting.length > 0) this.#retryTimer = setTimeout(this.#retry, RETRY_MS)
  }
}
