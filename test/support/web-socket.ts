import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from './until.ts'

export const OPCODE = { CONTINUATION: 0, TEXT: 1, BINARY: 2, CLOSE: 8, PING: 9, PONG: 10 } as const

/** Headers of a handshake. */
export const HANDSHAKE = {
  upgrade: 'websocket',
  connection: 'Upgrade',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

export interface Frame {
  opcode: number
  payload: Buffer
}

/** One frame as a client sends it. Source: RFC 6455, section 5.2. */
export function frameOf(opcode: number, payload: string | Uint8Array, isFinal = true, reserved = 0): Buffer {
  const body = Buffer.from(payload as string)
  const length = body.byteLength
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  const mask = randomBytes(4)
  return Buffer.concat([head, mask, body.map((byte, n) => byte ^ mask[n & 3]!)])
}

export const closeFrame = (code: number, reason = ''): Buffer =>
  frameOf(OPCODE.CLOSE, Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]))

/** A WebSocket client that says what it is told to, right or wrong, and keeps what comes. */
export class RawWebSocket {
  readonly tcp: Socket
  /** Status line and headers, and the body where there was no upgrade. */
  head = ''
  readonly frames: Frame[] = []
  isEnded = false
  #rest: Buffer = Buffer.alloc(0)

  constructor(tcp: Socket) {
    this.tcp = tcp
    tcp.on('data', (chunk: Buffer) => this.#read(chunk))
    tcp.on('error', () => {})
    tcp.on('close', () => {
      this.isEnded = true
    })
  }

  get status(): number {
    return Number(this.head.slice(9, 12))
  }

  /** The handshake has its answer: a switch of protocols, or a whole response. */
  get isAnswered(): boolean {
    if (this.head === '' || this.status === 101) return this.head !== ''
    const bodyBytes = Number(/^content-length: (\d+)\r$/im.exec(this.head)?.[1] ?? 0)
    return Buffer.byteLength(this.head) >= Buffer.byteLength(this.head.split('\r\n\r\n', 1)[0]!) + 4 + bodyBytes
  }

  get texts(): string[] {
    return this.frames.filter(({ opcode }) => opcode === OPCODE.TEXT).map(({ payload }) => payload.toString())
  }

  /** Code and reason of the close frame that has come; null when none has. */
  get closed(): [code: number, reason: string] | null {
    const frame = this.frames.find(({ opcode }) => opcode === OPCODE.CLOSE)
    if (frame === undefined) return null
    return frame.payload.length < 2 ? [1005, ''] : [frame.payload.readUInt16BE(0), frame.payload.toString('utf8', 2)]
  }

  send(message: string | Uint8Array): void {
    this.tcp.write(frameOf(typeof message === 'string' ? OPCODE.TEXT : OPCODE.BINARY, message))
  }

  /** The text message that comes as the `count`-th. */
  async text(count: number): Promise<string> {
    await until(() => this.texts.length >= count, `${count} messages`).catch((error: Error) => {
      const { texts, closed, isEnded } = this
      throw new Error(`${error.message}; there are ${JSON.stringify({ texts, closed, isEnded })}`)
    })
    return this.texts[count - 1]!
  }

  async close(code = 1000, reason = ''): Promise<void> {
    this.tcp.write(closeFrame(code, reason))
    await this.ended()
  }

  async ended(): Promise<void> {
    await until(() => this.isEnded, 'the connection is closed')
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    if (this.head === '' || this.status !== 101) {
      const end = this.#rest.indexOf('\r\n\r\n')
      if (end < 0) return
      this.head = this.#rest.toString()
      if (this.status !== 101) return
      this.head = this.#rest.toString('latin1', 0, end)
      this.#rest = this.#rest.subarray(end + 4)
    }
    for (;;) {
      const rest = this.#rest
      if (rest.length < 2) return
      const short = rest[1]! & 0x7f
      const at = short < 126 ? 2 : short === 126 ? 4 : 10
      if (rest.length < at) return
      const length = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
      if (rest.length < at + length) return
      this.frames.push({ opcode: rest[0]! & 0x0f, payload: rest.subarray(at, at + length) })
      this.#rest = rest.subarray(at + length)
    }
  }
}

/** Sends a handshake and waits for its answer, whatever that is. `null` leaves a header out. */
export async function openWebSocket(
  port: number,
  path: string,
  headers: Record<string, string | null> = {},
): Promise<RawWebSocket> {
  const tcp = connect(port, '127.0.0.1')
  const client = new RawWebSocket(tcp)
  await once(tcp, 'connect')
  const key = randomBytes(16).toString('base64')
  const all: Record<string, string | null> = {
    host: `127.0.0.1:${port}`,
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': key,
    ...headers,
  }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : `${name}: ${value}\r\n`))
  tcp.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  await until(() => client.isAnswered || client.isEnded, `an answer to the handshake of ${path}`)
  if (client.status === 101) {
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    if (!client.head.toLowerCase().includes(`sec-websocket-accept: ${accept}`.toLowerCase())) {
      throw new Error(`The key is not the one that was asked for:\n${client.head}`)
    }
  }
  return client
}
