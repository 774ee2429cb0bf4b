import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One answer, as it stood on the wire. */
export interface RawResponse {
  status: number
  /** Names in lower case; a header that came twice has two values. */
  headers: Map<string, string[]>
  body: Buffer
  /** The whole head, for what must not be in it. */
  head: string
}

const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ([\x20-\x7e\x80-\xff\t]*)$/
const NEXT_ANSWER_MS = 20_000

/** A connection that sends exactly the bytes it is told, and reads answers without forgiving anything. */
export class RawConnection {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #isClosed = false
  #wake: () => void = () => {}
  readonly #closed: Promise<void>

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    socket.on('end', () => socket.end())
    // A reset is one way for the other side to close.
    socket.on('error', () => {})
    this.#closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true
        this.#wake()
        resolve()
      })
    })
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  /** Resolves when the bytes are with the kernel, or the connection is gone. */
  async send(bytes: string | Uint8Array): Promise<void> {
    if (this.#isClosed) return
    await new Promise<void>((resolve) => {
      this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => resolve())
    })
  }

  /** Sends FIN and goes on reading. */
  halfClose(): void {
    this.#socket.end()
  }

  /** Goes away without a goodbye. */
  drop(): void {
    this.#socket.destroy()
  }

  /** Sends a reset instead of a FIN. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** What has come and was not read as an answer. */
  get rest(): Buffer {
    return this.#received
  }

  /** Resolves with the milliseconds until the other side has closed. @throws after `timeoutMs` */
  async closed(timeoutMs: number): Promise<number> {
    const startedMs = performance.now()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`The connection is open after ${timeoutMs} ms`)), timeoutMs)
    })
    try {
      await Promise.race([this.#closed, late])
    } finally {
      clearTimeout(timer)
    }
    return performance.now() - startedMs
  }

  /** Resolves when bytes have come, the other side has closed, or the time is over. */
  async arrival(timeoutMs: number): Promise<void> {
    if (this.#received.length > 0 || this.#isClosed) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      timer = setTimeout(resolve, timeoutMs)
    })
    clearTimeout(timer)
  }

  /** The next answer, checked strictly; an interim one (1xx) has a head only. Null when the connection closed before its first byte. */
  async response(options: { isHead?: boolean; isInterim?: boolean } = {}): Promise<RawResponse | null> {
    const headEnd = await this.#find()
    if (headEnd < 0) return null
    const response = parseHead(this.#received.subarray(0, headEnd).toString('latin1'))
    this.#received = this.#received.subarray(headEnd + 4)
    if (options.isInterim) return response
    const bodyBytes = bodyLength(response, options.isHead === true)
    await this.#wait(() => this.#received.length >= bodyBytes)
    assert.ok(this.#received.length >= bodyBytes, 'the connection closed inside a body')
    response.body = Buffer.from(this.#received.subarray(0, bodyBytes))
    this.#received = this.#received.subarray(bodyBytes)
    return response
  }

  async #find(): Promise<number> {
    await this.#wait(() => this.#received.includes('\r\n\r\n'))
    const at = this.#received.indexOf('\r\n\r\n')
    if (at < 0) assert.equal(this.#received.toString('latin1'), '', 'the connection closed inside a head')
    return at
  }

  async #wait(condition: () => boolean): Promise<void> {
    const deadlineMs = performance.now() + NEXT_ANSWER_MS
    while (!condition() && !this.#isClosed) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0) {
        this.drop()
        throw new Error(`No answer within ${NEXT_ANSWER_MS} ms; came so far: ${this.#received.toString('latin1')}`)
      }
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, leftMs)
      })
      clearTimeout(timer)
    }
  }
}

/** Reads the head of the next answer whole, in whatever pieces it comes; what has come of the body is with it. The socket is paused then. */
export async function readHead(socket: Socket): Promise<string> {
  let head = ''
  socket.resume()
  while (!head.includes('\r\n\r\n')) head += ((await once(socket, 'data')) as [Buffer])[0].toString('latin1')
  socket.pause()
  return head
}

/** @throws for anything that is not a head of HTTP/1.1, by the letter */
export function parseHead(head: string): RawResponse {
  const [statusLine, ...lines] = head.split('\r\n')
  const match = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(statusLine!)
  assert.ok(match, `not a status line: ${JSON.stringify(statusLine)}`)
  const headers = new Map<string, string[]>()
  for (const line of lines) {
    const field = HEADER_LINE.exec(line)
    assert.ok(field, `not a header line: ${JSON.stringify(line)}`)
    const name = field[1]!.toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), field[2]!])
  }
  return { status: Number(match[1]), headers, body: Buffer.alloc(0), head }
}

function bodyLength({ status, headers, head }: RawResponse, isHead: boolean): number {
  const lengths = headers.get('content-length') ?? []
  assert.equal(headers.has('transfer-encoding'), false, `an unexpected transfer-encoding in\n${head}`)
  if (status === 204 || status === 304) {
    assert.equal(lengths.length, 0, `a content-length with ${status}`)
    return 0
  }
  assert.equal(lengths.length, 1, `exactly one content-length in\n${head}`)
  assert.match(lengths[0]!, /^\d+$/)
  return isHead ? 0 : Number(lengths[0])
}

/** One value of a header that came exactly once; undefined when it did not come. */
export function headerOf(response: RawResponse, name: string): string | undefined {
  const values = response.headers.get(name) ?? []
  assert.ok(values.length < 2, `${name} came ${values.length} times`)
  return values[0]
}

/** What every answer of the runtime has and has not. */
export function assertOurs(response: RawResponse | null): asserts response is RawResponse {
  assert.ok(response, 'the connection closed without an answer')
  assert.equal(headerOf(response, 'x-content-type-options'), 'nosniff', response.head)
  assert.match(headerOf(response, 'x-request-id') ?? '', /^[\x21-\x7e]{1,128}$/)
  for (const name of ['server', 'uwebsockets', 'x-powered-by']) assert.equal(response.headers.has(name), false, name)
}

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
export function jsonOf(response: RawResponse): any {
  assert.equal(headerOf(response, 'content-type'), 'application/json; charset=utf-8')
  return JSON.parse(response.body.toString('utf8'))
}

/** The failure envelope, and nothing else. */
export function assertFailure(
  response: RawResponse | null,
  status: number,
  error: string | RegExp,
  details?: unknown,
): asserts response is RawResponse {
  assertOurs(response)
  assert.equal(response.status, status, response.body.toString('utf8'))
  const envelope = jsonOf(response)
  if (error instanceof RegExp) assert.match(envelope.error, error)
  assert.deepEqual(envelope, {
    success: false,
    error: error instanceof RegExp ? envelope.error : error,
    ...(details === undefined ? {} : { details }),
  })
}

/** A request as text; `content-length` is added for a body unless the headers say how it is framed. */
export function requestText(
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body?: string | Uint8Array,
): Buffer {
  const framed = Object.keys(headers).some((name) => /^(content-length|transfer-encoding)$/i.test(name))
  const all: Record<string, string> = { host: 'localhost', ...headers }
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array())
  if (body !== undefined && !framed) all['content-length'] = String(bytes.byteLength)
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), bytes])
}

/** One request on a connection of its own. */
export async function ask(
  port: number,
  method: string,
  target: string,
  headers?: Record<string, string>,
  body?: string | Uint8Array,
): Promise<RawResponse> {
  const connection = await RawConnection.open(port)
  try {
    await connection.send(requestText(method, target, headers, body))
    const response = await connection.response({ isHead: method === 'HEAD' })
    assertOurs(response)
    return response
  } finally {
    connection.drop()
  }
}

/** Sends raw bytes on a connection of its own and reads one answer; null when it was closed without one. */
export async function sendRaw(port: number, bytes: string | Uint8Array): Promise<RawResponse | null> {
  const connection = await RawConnection.open(port)
  try {
    await connection.send(bytes)
    return await connection.response()
  } finally {
    connection.drop()
  }
}
