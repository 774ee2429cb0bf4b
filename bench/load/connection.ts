import { connect, type Socket } from 'node:net'
import { ResponseReader } from './response-reader.ts'

const READ_BUFFER_BYTES = 16 * 1024
/** Keeps a server that refuses connections from being hammered. */
const RECONNECT_DELAY_MS = 20

/** The address of the server under load. */
export interface Target {
  host: string
  port: number
}

/** What a connection reports. It is called during the load and must be cheap. */
export interface ConnectionEvents {
  /** It was opened or reopened, and takes a request. */
  opened(): void
  /** The answer to its request is complete, and it takes the next request. */
  answered(answer: ResponseReader): void
  /** It was refused, reset or closed, or its answer was not HTTP. It reopens by itself. */
  lost(): void
}

/** One keep-alive connection for one request at a time, until it is closed. A lost connection is reopened. */
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

  /** Call it only after the connection was opened and the request before was answered. */
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
    // `onread` gives the bytes in one buffer that is reused: no stream and no allocation per answer.
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
