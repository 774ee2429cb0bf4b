import { Unreachable } from './failures.ts'

/** The parts of a WebSocket that are used, of the platform's or of a library's. */
interface SocketLike {
  binaryType: string
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
  addEventListener(type: string, listener: (event: SocketEvent) => void): void
}

interface SocketEvent {
  data?: unknown
  code?: number
  reason?: string
  message?: string
}

/** Messages that wait to be read. With more of them the channel closes itself with 4008: a WebSocket cannot be told to wait. */
const MAX_UNREAD = 10_000

/**
 * A WebSocket. `for await (const message of channel)` reads its messages until it is closed. Text that is JSON comes parsed, other text as text, and bytes as
 * an `ArrayBuffer`.
 */
export class Channel<Received = unknown, Sent = unknown> implements AsyncIterable<Received> {
  /** Why it was closed: 1012 asks to connect again, 1006 is a connection that broke. */
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #socket: SocketLike
  readonly #unread: Received[] = []
  #wake = () => {}
  #isClosed = false

  constructor(socket: SocketLike) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#take(data))
    this.closed = new Promise((resolve) => {
      socket.addEventListener('close', ({ code = 1006, reason = '' }) => {
        this.#isClosed = true
        this.#wake()
        resolve({ code, reason })
      })
    })
  }

  /** @throws Unreachable when there is no handshake */
  static async open<Received, Sent>(socket: SocketLike, url: string): Promise<Channel<Received, Sent>> {
    socket.binaryType = 'arraybuffer'
    const channel = new Channel<Received, Sent>(socket)
    await new Promise<void>((resolve, reject) => {
      const refuse = ({ message, reason }: SocketEvent) =>
        reject(new Unreachable('UNREACHABLE', `${url} did not open: ${message || reason || 'no handshake'}`, 1))
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', refuse)
      socket.addEventListener('close', refuse)
    })
    return channel
  }

  /** Sends text and bytes as they are, anything else as JSON. */
  send(message: Sent): void {
    const isPlain = typeof message === 'string' || message instanceof Uint8Array
    this.#socket.send(isPlain ? message : JSON.stringify(message))
  }

  /** @param code 1000, or 4000 to 4999 */
  close(code = 1000, reason = ''): void {
    this.#socket.close(code, reason)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Received, void, void> {
    try {
      for (;;) {
        while (this.#unread.length > 0) yield this.#unread.shift() as Received
        if (this.#isClosed) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      this.close()
    }
  }

  #take(data: unknown): void {
    if (this.#unread.length >= MAX_UNREAD) return this.close(4008, 'Too many messages are unread')
    this.#unread.push((typeof data === 'string' ? parsed(data) : data) as Received)
    this.#wake()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // It is text.
    return text
  }
}
