import { type FileBody, PIECE_BYTES, WINDOW_BYTES } from './file-body.ts'
import type { Reply } from './reply.ts'

/** Takes the pieces of a file: sends them over the ring in a lane, and straight to the listener in the primary. */
export interface FileSink {
  answer(requestId: number, reply: Reply): void
  /** The head of an answer whose body comes in pieces. */
  openFile(requestId: number, status: number, head: string, lengthBytes: number): void
  /** False when there was no room for it. */
  filePiece(requestId: number, piece: Uint8Array): boolean
  /** The body ends here. The connection is closed when it is not complete. */
  endStream(requestId: number): void
}

/** Sends one file as fast as its client reads. */
export class FileSender {
  readonly #sink: FileSink
  readonly #requestId: number
  #onTheWay = 0
  #isGone = false
  #wake: (() => void) | null = null

  constructor(sink: FileSink, requestId: number) {
    this.#sink = sink
    this.#requestId = requestId
  }

  /** Bytes have left for the client. */
  flushed(bytes: number): void {
    this.#onTheWay -= bytes
    this.#wake?.()
  }

  /** The client is gone. */
  cancel(): void {
    this.#isGone = true
    this.#wake?.()
  }

  /** Sends the file, and closes it. @throws the error of reading it; the answer has ended then */
  async send(status: number, head: string, file: FileBody, isHead: boolean): Promise<void> {
    const sink = this.#sink
    const id = this.#requestId
    let isOpen = false
    try {
      if (!isHead && file.lengthBytes <= PIECE_BYTES) {
        const body = (await file.next()) ?? new Uint8Array(0)
        return sink.answer(id, { status, head, body })
      }
      sink.openFile(id, status, head, file.lengthBytes)
      isOpen = true
      // The listener has answered by itself.
      if (isHead) return
      for (;;) {
        const piece = await file.next()
        while (this.#onTheWay > (piece === null ? 0 : WINDOW_BYTES) && !this.#isGone) await this.#room()
        if (piece === null || this.#isGone || !sink.filePiece(id, piece)) return
        this.#onTheWay += piece.byteLength
      }
    } finally {
      await file.close()
      if (isOpen) sink.endStream(id)
    }
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
