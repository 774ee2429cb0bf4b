import { connect, type Socket } from 'node:net'
import { ResponseReader } from './response-reader.ts'

const READ_BUFFER_BYTES = 16 * 1024
/** Keeps a server that refuses connections from being hammered. */
const RECONNECT_DELAY_MS = 20

/** Where a load goes to. */
export interface Target {
  host: string
  port: number
}

/** What a connection reports, in the middle of the load: must be cheap. */
export interface ConnectionEvents {
  /** It is open, for the first time or anew, and takes a request. */
  opened(): void
  /** The answer to its request is complete, and it takes the next. */
  answered(answer: ResponseReader): void
  /** It was refused, reset or closed, or its answer was not HTTP. It opens anew by itself. */
  lost(): void
}

/** One keep-alive connection for one request at a time, until closed. A lost connection is opened anew. */
export class Connection {
  #socket: Socket | undefined
  #closed = false
  #reconnect: NodeJS.Timeout | undefined
  readonly #target: Target
  readonly #events: ConnectionEvents

  constructor({ host, port }: Target, events: ConnectionEvents) {
    this.#target = { host, port }
    this.#events = events
    this.#open()
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** Only after it was opened, and when the request before has its answer. */
  send(request: Buffer): void {
    this.#socket!.write(request)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#reconnect)
    this.#socket?.destroy()
  }

  #open(): void {
    const reader = new ResponseReader()
    // `onread` hands the bytes over in one buffer of our own: no stream machinery and no allocation per answer.
    const onread = {
      buffer: Buffer.allocUnsafe(READ_BUFFER_BYTES),
      callback: (bytes: number, buffer: Uint8Array): boolean => {
        const outcome = reader.read(buffer as Buffer, bytes)
        if (outcome === 'broken') socket.destroy()
        else if (outcome !== 'more') this.#events.answered(reader)
        return true
      },
    }
    const socket: Socket = connect({ ...this.#target, noDelay: true, onread })
    this.#socket = socket
    socket.on('connect', () => this.#events.opened())
    // 'close' always follows, and counts the failure once.
    socket.on('error', () => {})
    socket.on('close', () => this.#lost())
  }

  #lost(): void {
    if (this.#closed) return
    this.#events.lost()
    this.#reconnect = setTimeout(() => this.#open(), RECONNECT_DELAY_MS)
  }
}
