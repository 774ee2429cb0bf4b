// Sends a body in pieces, as fast as its client reads.

import type { Reply } from '../reply.ts'
import { type BodySource, PIECE_BYTES, WINDOW_BYTES } from './body-source.ts'

/** Pieces that are on their way at a time, however small. */
const WINDOW_PIECES = 1_024

/** Takes the pieces of a body: sends them over the ring in a lane, and straight to the listener in the primary. */
export interface FileSink {
  answer(requestId: number, reply: Reply): void
  /** The head of an answer whose body comes in pieces. @param lengthBytes -1 when it is not known */
  openFile(requestId: number, status: number, head: string, lengthBytes: number): void
  /** False when there was no room for it. */
  filePiece(requestId: number, piece: Uint8Array): boolean
  /** The body ends here. The connection is closed when it is not complete: when its length says so, or `isBroken`. */
  endStream(requestId: number, isBroken?: boolean): void
}

/** Sends one body as fast as its client reads. */
export class FileSender {
  readonly #sink: FileSink
  readonly #requestId: number
  #onTheWay = 0
  /** Sent since nothing was on the way. */
  #pieces = 0
  #isGone = false
  #wake: (() => void) | null = null

  constructor(sink: FileSink, requestId: number) {
    this.#sink = sink
    this.#requestId = requestId
  }

  /** Bytes have left for the client. */
  flushed(bytes: number): void {
    this.#onTheWay -= bytes
    if (this.#onTheWay === 0) this.#pieces = 0
    this.#wake?.()
  }

  /** The client is gone. */
  cancel(): void {
    this.#isGone = true
    this.#wake?.()
  }

  /** Sends the body, and closes it. @throws the error of reading it; the answer has ended then */
  async send(status: number, head: string, body: BodySource, isHead: boolean): Promise<void> {
    const sink = this.#sink
    const id = this.#requestId
    let isOpen = false
    let isWhole = false
    try {
      if (!isHead && body.lengthBytes >= 0 && body.lengthBytes <= PIECE_BYTES) {
        return sink.answer(id, { status, head, body: (await body.next()) ?? new Uint8Array(0) })
      }
      sink.openFile(id, status, head, body.lengthBytes)
      isOpen = true
      // The listener has answered by itself.
      if (isHead) return
      for (;;) {
        const piece = await body.next()
        while (this.#isFull(piece === null) && !this.#isGone) await this.#room()
        isWhole = piece === null && !this.#isGone
        if (piece === null || this.#isGone || !sink.filePiece(id, piece)) return
        this.#onTheWay += piece.byteLength
        this.#pieces++
      }
    } finally {
      await body.close()
      if (isOpen) sink.endStream(id, !isWhole)
    }
  }

  /** @param isEnd the body ends when all of it has left */
  #isFull(isEnd: boolean): boolean {
    if (isEnd) return this.#onTheWay > 0
    return this.#onTheWay > WINDOW_BYTES || (this.#pieces >= WINDOW_PIECES && this.#onTheWay > 0)
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null
        resolve()
      }
    })
  }
}
