import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { ClientResponse } from './library.ts'
import { unwatch, type WatchedBody, watch } from './stall-watch.ts'

/** The sender is told of bytes that have left in portions of this size; each lets it read on. */
const FLUSH_REPORT_BYTES = 60_000

/** The body of an answer whose length is known, sent in pieces. It reports how many bytes have left, so that the sender keeps the client's pace. */
export class PacedBody implements WatchedBody {
  readonly #res: ClientResponse
  readonly #lengthBytes: number
  readonly #isLast: boolean
  readonly #onFlushed: (bytes: number) => void
  readonly #onGone: () => void
  readonly #pieces: Uint8Array[] = []
  /** Offset of the first piece in the body. */
  #at = 0
  #unreportedBytes = 0
  #isBlocked = false
  #isOver = false
  #progressMs = steadyMs()

  /**
   * @param isLast nothing is to be read behind the request
   * @param onGone runs once when all is sent, or the client was cut off
   */
  constructor(
    res: ClientResponse,
    lengthBytes: number,
    isLast: boolean,
    onFlushed: (bytes: number) => void,
    onGone: () => void,
  ) {
    this.#res = res
    this.#isLast = isLast
    this.#lengthBytes = lengthBytes
    this.#onFlushed = onFlushed
    this.#onGone = onGone
    res.onWritable((offset) => {
      this.#isBlocked = false
      this.#flushed(offset)
      this.#flush()
      return !this.#isBlocked
    })
    watch(this)
  }

  get stuckSinceMs(): number | null {
    return this.#pieces.length > 0 ? this.#progressMs : null
  }

  send(piece: Uint8Array): void {
    if (this.#isOver) return
    this.#pieces.push(piece)
    if (!this.#isBlocked) this.#flush()
  }

  /** No further piece comes: a body that is not complete breaks off. */
  end(): void {
    if (this.#isOver) return
    this.forget()
    this.#res.close()
  }

  cutOff(): void {
    this.end()
  }

  /** The connection is gone. */
  forget(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.length = 0
    unwatch(this)
    this.#onGone()
  }

  /** The library does not keep a piece that did not fit: it says how much of it was written. */
  #flush(): void {
    while (this.#pieces.length > 0 && !this.#isBlocked && !this.#isOver) {
      const piece = this.#pieces[0]!
      // The library closes a connection on which nothing happens.
      if (this.#isLast) this.#res.pause()
      this.#res.cork(() => {
        const [isAccepted, isComplete] = this.#res.tryEnd(piece as Uint8Array<ArrayBuffer>, this.#lengthBytes)
        if (isComplete) {
          // Reported before the end: the sender waits for it.
          this.#onFlushed(piece.byteLength + this.#unreportedBytes)
          return this.forget()
        }
        this.#isBlocked = !isAccepted
        this.#flushed(this.#res.getWriteOffset())
      })
    }
  }

  #flushed(offset: number): void {
    let flushedBytes = offset - this.#at
    if (flushedBytes <= 0) return
    this.#progressMs = steadyMs()
    this.#unreportedBytes += flushedBytes
    while (flushedBytes > 0) {
      const piece = this.#pieces[0]!
      const part = Math.min(flushedBytes, piece.byteLength)
      if (part === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(part)
      flushedBytes -= part
      this.#at += part
    }
    if (this.#unreportedBytes < FLUSH_REPORT_BYTES && this.#pieces.length > 0) return
    this.#onFlushed(this.#unreportedBytes)
    this.#unreportedBytes = 0
  }
}
