import { connect, type Socket } from 'node:net'
import { ResponseReader } from './response-reader.ts'

const READ_BUFFER_BYTES = 16 * 1024
/** Keeps a server that refuses connections from being hammered. */
const RECONNECT_DELAY_MS = 20

/** What a connection reports, in the middle of the load: must be cheap. */
export interface ConnectionEvents {
  answered(ok: boolean, latencyMs: number): void
  failed(): void
}

/** One keep-alive connection with one request in flight, for ever, until closed. A lost connection is opened anew. */
export class LoadConnection {
  #socket: Socket | undefined
  #sentAtMs = 0
  #next: number
  #closed = false
  #reconnect: NodeJS.Timeout | undefined
  readonly #target: { host: string; port: number }
  readonly #requests: readonly Buffer[]
  readonly #events: ConnectionEvents

  constructor(
    target: { host: string; port: number },
    requests: readonly Buffer[],
    firstRequest: number,
    events: ConnectionEvents,
  ) {
    this.#target = target
    this.#requests = requests
    this.#next = firstRequest % requests.length
    this.#events = events
    this.#open()
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
        else if (outcome !== 'more') this.#answered(outcome === 'ok')
        return true
      },
    }
    const socket: Socket = connect({ ...this.#target, noDelay: true, onread })
    this.#socket = socket
    socket.on('connect', () => this.#send())
    // 'close' always follows, and counts the failure once.
    socket.on('error', () => {})
    socket.on('close', () => this.#lost())
  }

  #send(): void {
    const request = this.#requests[this.#next]!
    this.#next = this.#next + 1 === this.#requests.length ? 0 : this.#next + 1
    this.#sentAtMs = performance.now()
    this.#socket!.write(request)
  }

  #answered(ok: boolean): void {
    this.#events.answered(ok, performance.now() - this.#sentAtMs)
    if (!this.#closed) this.#send()
  }

  #lost(): void {
    if (this.#closed) return
    this.#events.failed()
    this.#reconnect = setTimeout(() => this.#open(), RECONNECT_DELAY_MS)
  }
}
