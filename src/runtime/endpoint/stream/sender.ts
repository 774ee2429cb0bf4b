// Sends a body in pieces, as fast as its client reads.

import type { AnswerSink } from '../request-thread.ts'
import { type BodySource, PIECE_BYTES, WINDOW_BYTES } from './body-source.ts'

/** Pieces that are on their way at a time, however small. */
const WINDOW_PIECES = 1_024

/** Sends one body as fast as its client reads. */
export class FileSender {
  readonly #sink: AnswerSink
  readonly #requestId: number
  #onTheWay = 0
  /** Sent since nothing was on the way. */
  #pieces = 0
  #isGone = false
  #wake: (() => void) | null = null

  constructor(sink: AnswerSink, requestId: number) {
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
