import type { Reply } from '../runtime/endpoint/reply.ts'
import type { ReplySink } from '../runtime/endpoint/request-server.ts'
import type { SocketSink } from '../runtime/endpoint/sockets/server.ts'
import { utf8MaxBytes } from '../transport/frames/frame-buffer.ts'
import { INLINE_MAX_BYTES, KIND } from '../transport/frames/frame-kinds.ts'
import { RESPONSE_FIXED_BYTES, writeResponse } from '../transport/frames/response-frame.ts'
import { fileHeadText, numberedText } from '../transport/frames/text-frame.ts'
import type { AnswerCell } from '../transport/memory/answer-cell.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { LaneFlight } from './lane-flight.ts'

/**
 * Frames of streams and sockets that wait for the primary, at most. Far below `LANE_MEMORY_MB`, or slow readers would use up the lane's
 * memory.
 */
const STREAMS_MAX_WAITING_BYTES = 64 << 20
/** A primary that does not answer within this is overloaded or stuck, milliseconds. */
const ADDRESS_TIMEOUT_MS = 1000

/** Sends a lane's answers to its clients, over the ring. */
export class RingReplies implements ReplySink, SocketSink {
  readonly #outbox: Outbox
  readonly #address: AnswerCell
  readonly #flight: LaneFlight

  constructor(outbox: Outbox, address: AnswerCell, flight: LaneFlight) {
    this.#outbox = outbox
    this.#address = address
    this.#flight = flight
  }

  answer(id: number, reply: Reply): void {
    const { body, head } = reply
    this.#flight.endRequest(id, reply.status >= 500)
    let maxBytes = RESPONSE_FIXED_BYTES + utf8MaxBytes(head)
    if (typeof body === 'string') {
      maxBytes += maxBytes + utf8MaxBytes(body) > INLINE_MAX_BYTES ? Buffer.byteLength(body) : utf8MaxBytes(body)
    } else if (body !== null) maxBytes += body.byteLength
    const at = this.#outbox.begin(maxBytes, true, true)
    this.#outbox.end(writeResponse(this.#outbox, at, reply.status, head, body), KIND.RESPONSE, id)
  }

  settled(id: number): void {
    this.#outbox.answerText(KIND.SETTLED, id, '')
  }

  openStream(id: number, head: string): void {
    const at = this.#outbox.begin(RESPONSE_FIXED_BYTES + utf8MaxBytes(head), true)
    if (at >= 0) this.#outbox.end(writeResponse(this.#outbox, at, 200, head, null), KIND.STREAM_OPEN, id)
  }

  streamData(id: number, chunk: string): boolean {
    return this.#hasRoom && this.#outbox.sendText(KIND.STREAM_DATA, id, chunk)
  }

  endStream(id: number, isBroken = false): void {
    this.#outbox.answerText(KIND.STREAM_END, id, isBroken ? 'broken' : '')
  }

  openFile(id: number, status: number, head: string, lengthBytes: number): void {
    this.#flight.endRequest(id, false)
    this.#outbox.answerText(KIND.FILE_OPEN, id, fileHeadText({ status, head, lengthBytes }))
  }

  filePiece(id: number, piece: Uint8Array): boolean {
    return this.#sendBytes(KIND.STREAM_DATA, id, piece)
  }

  wantBody(id: number, bytes: number): void {
    this.#outbox.answerText(KIND.BODY_WANTED, id, String(bytes))
  }

  /** Blocks this lane for one turn of the primary. Only the first read on a route pays for that: the route's later requests bring the address along. */
  clientAddress(id: number): string {
    if (!this.#outbox.sendText(KIND.ADDRESS_WANTED, id, '')) return ''
    this.#outbox.flush()
    return this.#address.wait(id, ADDRESS_TIMEOUT_MS) ?? ''
  }

  // ── sockets ───────────────────────────────────────────────────────────────

  acceptSocket(requestId: number, number: number, protocol: string): void {
    this.#flight.endRequest(requestId, false)
    this.#outbox.answerText(KIND.SOCKET_ACCEPT, requestId, numberedText(number, protocol))
  }

  sendMessage(number: number, message: string | Uint8Array): boolean {
    if (!this.#hasRoom) return false
    if (typeof message === 'string') return this.#outbox.sendText(KIND.SOCKET_SEND_TEXT, number, message)
    return this.#sendBytes(KIND.SOCKET_SEND_BYTES, number, message)
  }

  /** The primary needs this only for its budget of unhandled messages: it need not be woken for it. */
  messageHandled(number: number, weight: number): void {
    const text = String(weight)
    const at = this.#outbox.begin(text.length, true, true)
    this.#outbox.end(this.#outbox.bytes.latin1Write(text, at), KIND.SOCKET_HANDLED, number, false)
  }

  closeSocket(number: number, code: number, reason: string): void {
    this.#outbox.answerText(KIND.SOCKET_CLOSE, number, numberedText(code, reason))
  }

  #sendBytes(kind: number, id: number, bytes: Uint8Array): boolean {
    const at = this.#outbox.begin(bytes.byteLength, true)
    if (at < 0) return false
    this.#outbox.bytes.set(bytes, at)
    this.#outbox.end(bytes.byteLength, kind, id)
    return true
  }

  get #hasRoom(): boolean {
    return this.#outbox.waitingBytes < STREAMS_MAX_WAITING_BYTES
  }
}
