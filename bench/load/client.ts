// One keep-alive connection of the generator: requests as bytes, and a reader of answers.
import { connect, type Socket } from 'node:net'

/** Seven headers of a browser, besides `host`. */
const BROWSER_HEADERS = [
  'user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'accept: text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8',
  'accept-language: en-GB,en;q=0.7,de;q=0.3',
  'accept-encoding: gzip, deflate, br, zstd',
  'cookie: session=0f8fad5bd9cb469fa16570867728950e; theme=dark',
  'referer: http://127.0.0.1/people?page=2',
  'cache-control: no-cache',
]

/** The bytes of a GET with browser-like headers. */
export function getRequest(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${BROWSER_HEADERS.join('\r\n')}\r\n\r\n`
}

/** The bytes of a POST with a JSON body and browser-like headers. */
export function postRequest(path: string, body: unknown): string {
  const text = JSON.stringify(body)
  const headers = [...BROWSER_HEADERS, 'content-type: application/json', `content-length: ${Buffer.byteLength(text)}`]
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers.join('\r\n')}\r\n\r\n${text}`
}

const CR = 13
const LF = 10
const COLON = 58
const ZERO = 48
const STATUS_AT = 'HTTP/1.1 '.length
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024

/** `more`: not complete yet. `broken`: not an answer that this reader can frame; close the connection. */
export type ReadOutcome = 'ok' | 'non2xx' | 'more' | 'broken'

/** Where the parts of the previous answer lay. */
interface Shape {
  totalBytes: number
  headBytes: number
  lengthAt: number
  lengthDigits: string
}

/**
 * Frames the answers on one connection by status line and `content-length`.
 *
 * A benchmark gets the same kind of answer a million times, so the reader first compares a chunk with the shape of the previous
 * answer (end of the head, place and digits of the length): that costs a few byte comparisons. Anything else is parsed in full.
 */
export class ResponseReader {
  /** Status of the last complete answer. */
  status = 0
  /** Whether the last complete answer, a 503, had `retry-after`. */
  saysRetryAfter = false
  #shape: Shape | undefined
  #pending: Buffer | undefined

  /** Takes the next `bytes` of the connection. `chunk` may be overwritten afterwards. One answer at most is expected at a time. */
  read(chunk: Buffer, bytes: number): ReadOutcome {
    if (!this.#pending && this.#hasKnownShape(chunk, bytes)) return this.#complete(chunk, this.#shape!.headBytes)
    const part = chunk.subarray(0, bytes)
    const whole = this.#pending ? Buffer.concat([this.#pending, part]) : part
    const outcome = this.#parse(whole)
    this.#pending = outcome === 'more' ? Buffer.from(whole) : undefined
    return outcome
  }

  #hasKnownShape(chunk: Buffer, bytes: number): boolean {
    const shape = this.#shape
    if (!shape || bytes !== shape.totalBytes) return false
    const { headBytes, lengthAt, lengthDigits } = shape
    if (chunk[headBytes - 4] !== CR || chunk[headBytes - 3] !== LF) return false
    if (chunk[headBytes - 2] !== CR || chunk[headBytes - 1] !== LF) return false
    if (chunk[lengthAt - 2] !== COLON && chunk[lengthAt - 1] !== COLON) return false
    for (let digit = 0; digit < lengthDigits.length; digit++) {
      if (chunk[lengthAt + digit] !== lengthDigits.charCodeAt(digit)) return false
    }
    return chunk[lengthAt + lengthDigits.length] === CR
  }

  #parse(whole: Buffer): ReadOutcome {
    if (whole.length > MAX_RESPONSE_BYTES) return 'broken'
    const headEnd = whole.indexOf('\r\n\r\n')
    if (headEnd < 0) return 'more'
    const headBytes = headEnd + 4
    const head = whole.toString('latin1', 0, headBytes)
    if (!/^HTTP\/1\.1 [1-5]\d\d[ \r]/.test(head)) return 'broken'
    const length = /\r\ncontent-length: ?(\d+)\r\n/i.exec(head)
    if (!length) return this.#withoutLength(whole, headBytes)
    const lengthDigits = length[1]!
    const totalBytes = headBytes + Number(lengthDigits)
    if (whole.length < totalBytes) return 'more'
    if (whole.length > totalBytes) return 'broken'
    const lengthAt = length.index + length[0].length - '\r\n'.length - lengthDigits.length
    this.#shape = { totalBytes, headBytes, lengthAt, lengthDigits }
    return this.#complete(whole, headBytes)
  }

  /** Only 204 and 304 may come without a length; a chunked answer is beyond this reader. */
  #withoutLength(whole: Buffer, headBytes: number): ReadOutcome {
    const status = whole.toString('latin1', STATUS_AT, STATUS_AT + 3)
    const bodiless = status === '204' || status === '304'
    return bodiless && whole.length === headBytes ? this.#complete(whole, headBytes) : 'broken'
  }

  #complete(answer: Buffer, headBytes: number): ReadOutcome {
    const digit = (at: number) => answer[STATUS_AT + at]! - ZERO
    this.status = digit(0) * 100 + digit(1) * 10 + digit(2)
    if (this.status < 300) return this.status >= 200 ? 'ok' : 'non2xx'
    this.saysRetryAfter = this.status === 503 && /\r\nretry-after: ?\d/i.test(answer.toString('latin1', 0, headBytes))
    return 'non2xx'
  }
}

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
  opened(connection: Connection): void
  /** The answer to its request is complete, and it takes the next request. */
  answered(connection: Connection, answer: ResponseReader): void
  /** It was refused, reset or closed, or its answer was not HTTP. It reopens by itself. */
  lost(connection: Connection): void
}

/** One keep-alive connection for one request at a time, until it is closed. A lost connection is reopened. */
export class Connection {
  /** When the last request was due, and when it was sent. */
  dueMs = 0
  sentMs = 0
  /** Whether its answer is not complete. */
  isBusy = false
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
  send(request: Buffer, dueMs: number, nowMs: number): void {
    this.dueMs = dueMs
    this.sentMs = nowMs
    this.isBusy = true
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
        else if (outcome !== 'more') {
          this.isBusy = false
          this.#events.answered(this, reader)
        }
        return true
      },
    }
    const socket: Socket = connect({ ...this.#target, noDelay: true, onread })
    this.#socket = socket
    socket.on('connect', () => this.#events.opened(this))
    // 'close' always follows, and counts the failure once.
    socket.on('error', () => {})
    socket.on('close', () => this.#lost())
  }

  #lost(): void {
    if (this.#closed) return
    this.#events.lost(this)
    this.isBusy = false
    this.#reconnect = setTimeout(() => this.#open(), RECONNECT_DELAY_MS)
  }
}
