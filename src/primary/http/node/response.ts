// Where an answer is written by node:http.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientResponse, SocketListener, SocketUserData } from '../library.ts'

/** A longer body is written as it is. */
const ONE_PIECE_MAX_BYTES = 4_096
const NO_BYTES = Buffer.alloc(0)
const BEYOND_ASCII = /[\x80-\uffff]/

/** A request that may become a WebSocket: what `upgrade` of its response wants. */
export interface NodeHandshake {
  /** @param head names and values in turn */
  accept(socket: SocketListener, protocol: string, head: readonly string[]): void
}

/** What a response tells its connection. */
export interface ResponseOwner {
  /** Nothing that comes behind the request is answered. */
  readonly isOver: boolean
  /** From now on that is so. */
  isLast(): void
  /** The answer has left, or the connection is gone. */
  responseDone(response: NodeResponse): void
}

/** An answer written through node:http, which keeps it in order with those before it. */
export class NodeResponse implements ClientResponse {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #owner: ResponseOwner
  #status = 200
  /** Names and values in turn. */
  readonly #head: string[] = []
  #onAborted: (() => void) | null = null
  #onWritable: ((offset: number) => boolean) | null = null
  /** Bytes of a body of known length that have left. */
  #flushedBytes = 0
  /** Bytes of it that are written and have not. */
  #waitingBytes = 0
  /** Something waits for the client to read. */
  #isBlocked = false
  /** The last byte was written, or there will be none. */
  #isEnded = false

  constructor(req: IncomingMessage, res: ServerResponse, owner: ResponseOwner) {
    this.#req = req
    this.#res = res
    this.#owner = owner
    res.on('finish', () => owner.responseDone(this))
    res.on('close', () => {
      this.abandon()
      owner.responseDone(this)
    })
  }

  /** The whole request has come. */
  get isRequestComplete(): boolean {
    return this.#req.complete
  }

  get hasBegun(): boolean {
    return this.#res.headersSent
  }

  /** A stream, or a file that has not left. */
  get isUnderWay(): boolean {
    return this.#res.headersSent && !this.#isEnded
  }

  /** The answer is written, and its client does not read it. */
  get isStuck(): boolean {
    return this.#isEnded && !this.#res.writableFinished
  }

  /** No answer can be given any more. */
  abandon(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#onAborted?.()
  }

  onAborted(callback: () => void): void {
    this.#onAborted = callback
  }

  onData(callback: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    const { 'content-length': length } = this.#req.headers
    let leftBytes = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
    let isOver = false
    this.#req.on('data', (chunk: Buffer) => {
      leftBytes -= chunk.byteLength
      isOver = leftBytes === 0
      callback(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength) as ArrayBuffer, isOver)
    })
    this.#req.on('end', () => isOver || callback(new ArrayBuffer(0), true))
  }

  pause(): void {
    this.#req.pause()
  }

  resume(): void {
    this.#req.resume()
  }

  onWritable(callback: (offset: number) => boolean): void {
    this.#onWritable = callback
  }

  cork(write: () => void): void {
    write()
  }

  writeStatus(line: string): this {
    this.#status = Number(line.slice(0, 3))
    return this
  }

  writeHeader(name: string, value: string): this {
    let lineEnd = value.indexOf('\r\n')
    this.#head.push(name, latin1Of(lineEnd < 0 ? value : value.slice(0, lineEnd)))
    while (lineEnd >= 0) {
      const start = lineEnd + 2
      const colonAt = value.indexOf(': ', start)
      lineEnd = value.indexOf('\r\n', start)
      const line = lineEnd < 0 ? value.slice(colonAt + 2) : value.slice(colonAt + 2, lineEnd)
      this.#head.push(value.slice(start, colonAt), latin1Of(line))
    }
    return this
  }

  write(chunk: Uint8Array): boolean {
    if (!this.#res.headersSent) {
      // A stream that nobody waited for would keep the connection open.
      if (this.#owner.isOver) {
        this.close()
        return false
      }
      this.#writeHead(false)
    }
    return this.#send(Buffer.from(chunk))
  }

  tryEnd(piece: Uint8Array, totalBytes: number): [isAccepted: boolean, isComplete: boolean] {
    if (this.#isBlocked) return [false, false]
    if (!this.#res.headersSent) {
      this.#head.push('content-length', String(totalBytes))
      this.#writeHead(false)
    }
    const copy = Buffer.from(piece)
    if (this.#flushedBytes + copy.byteLength >= totalBytes) {
      this.#isEnded = true
      this.#res.end(copy)
      return [true, true]
    }
    const isAccepted = this.#send(copy)
    if (isAccepted) this.#flushedBytes += copy.byteLength
    else this.#waitingBytes = copy.byteLength
    return [isAccepted, false]
  }

  /** False when not all of it is with the kernel: `onWritable` is told when it is. */
  #send(bytes: Buffer): boolean {
    this.#res.write(bytes, this.#sent)
    // node:http holds it back until the end of the turn, so that what a client cannot take would not show.
    this.#req.socket.uncork()
    this.#isBlocked = this.#req.socket.writableLength > 0
    return !this.#isBlocked
  }

  readonly #sent = (error?: Error | null): void => {
    if (error || this.#isEnded || !this.#isBlocked || this.#req.socket.writableLength > 0) return
    this.#isBlocked = false
    this.#flushedBytes += this.#waitingBytes
    this.#waitingBytes = 0
    this.#onWritable?.(this.#flushedBytes)
  }

  getWriteOffset(): number {
    return this.#flushedBytes
  }

  end(body?: string | Uint8Array, close = false): void {
    const bytes = body === undefined ? NO_BYTES : bytesOf(body)
    const isWhole = !this.#res.headersSent
    if (isWhole) {
      this.#head.push('content-length', String(bytes.byteLength))
      this.#writeHead(close)
    }
    this.#isEnded = true
    if (bytes.byteLength === 0) this.#res.end()
    // As a text of bytes it goes with the head in one piece, which the kernel takes at less cost than two.
    else if (isWhole && bytes.byteLength <= ONE_PIECE_MAX_BYTES) this.#res.end(bytes.toString('latin1'), 'latin1')
    // It is lent for the call.
    else this.#res.end(typeof body === 'string' ? bytes : Buffer.from(bytes))
  }

  endWithoutBody(): void {
    this.#writeHead(this.#head.some((text, n) => n % 2 === 0 && text === 'connection'))
    this.#isEnded = true
    this.#res.end()
  }

  close(): void {
    this.abandon()
    this.#req.socket.destroy()
  }

  getRemoteAddressAsText(): ArrayBuffer {
    return new TextEncoder().encode(addressOf(this.#req.socket)).buffer as ArrayBuffer
  }

  upgrade(userData: SocketUserData, _key: string, protocol: string, _extensions: string, context: object): void {
    this.#isEnded = true
    ;(context as NodeHandshake).accept(userData.socket, protocol, this.#head)
  }

  #writeHead(close: boolean): void {
    const isLast = close || this.#owner.isOver || !this.#res.shouldKeepAlive
    // Else node:http would add `keep-alive` to each answer, which is the default.
    this.#res.removeHeader('connection')
    if (isLast && !this.#head.includes('connection')) this.#head.push('connection', 'close')
    if (isLast) this.#owner.isLast()
    this.#res.writeHead(this.#status, this.#head)
  }
}

/** Of the client; empty when it is gone. */
export function addressOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
}

/** node:http writes each character as a byte. */
function latin1Of(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/** Not copied where they are bytes. */
function bytesOf(body: string | Uint8Array): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
