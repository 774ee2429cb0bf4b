import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { ClientResponse } from './library.ts'
import { unwatch, type WatchedBody, watch } from './stall-watch.ts'

/** More than 16 KiB in one cork while the socket is full can break chunk framing (uWebSockets.js#1249). */
const MAX_WRITE_BYTES = 15_000

/** The body of an answer whose length nobody knows, sent in pieces. It reports how many bytes have left, so that the sender keeps the client's pace. */
export class ChunkedBody implements WatchedBody {
  readonly #res: ClientResponse
  readonly #isLast: boolean
  readonly #onFlushed: (bytes: number) => void
  readonly #onGone: () => void
  readonly #pieces: Uint8Array[] = []
  /** Bytes that the library has taken and the client has not. */
  #takenBytes = 0
  #unreportedBytes = 0
  #willReport = false
  #isBlocked = false
  #isOver = false
  #progressMs = steadyMs()

  /**
   * @param isLast nothing is to be read behind the request
   * @param onGone runs once when all is sent, or the client was cut off
   */
  constructor(res: ClientResponse, isLast: boolean, onFlushed: (bytes: number) => void, onGone: () => void) {
    this.#res = res
    this.#isLast = isLast
    this.#onFlushed = onFlushed
    this.#onGone = onGone
    res.onWritable(() => {
      this.#isBlocked = false
      this.#flushed(this.#takenBytes)
      this.#takenBytes = 0
      this.#flush()
      return !this.#isBlocked
    })
    watch(this)
  }

  get stuckSinceMs(): number | null {
    return this.#isBlocked ? this.#progressMs : null
  }

  send(piece: Uint8Array): void {
    if (this.#isOver) return
    this.#pieces.push(piece)
    if (!this.#isBlocked) this.#flush()
  }

  /** @param isBroken the body is not complete: the client sees it, because its end is missing */
  end(isBroken: boolean): void {
    if (this.#isOver) return
    this.forget()
    if (isBroken) this.#res.close()
    else {
      // The library closes a connection on which nothing happens.
      if (this.#isLast) this.#res.pause()
      // Without the flag that closes: the library would write its `connection: close` into the body, after the last chunk.
      this.#res.cork(() => this.#res.end())
    }
  }

  cutOff(): void {
    this.end(true)
  }

  /** The connection is gone. */
  forget(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.length = 0
    unwatch(this)
    this.#onGone()
  }

  #flush(): void {
    while (this.#pieces.length > 0 && !this.#isBlocked && !this.#isOver) {
      const piece = this.#pieces[0]!
      const part = piece.subarray(0, MAX_WRITE_BYTES)
      if (part.byteLength === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(MAX_WRITE_BYTES)
      this.#res.cork(() => {
        this.#isBlocked = !this.#res.write(part as Uint8Array<ArrayBuffer>)
      })
      if (this.#isBlocked) this.#takenBytes += part.byteLength
      else this.#flushed(part.byteLength)
    }
  }

  /** Reports once for what leaves in one turn of the loop: each report is a frame. */
  #flushed(bytes: number): void {
    this.#progressMs = steadyMs()
    this.#unreportedBytes += bytes
    if (this.#willReport) return
    this.#willReport = true
    setImmediate(() => {
      this.#willReport = false
      if (this.#isOver) return
      this.#onFlushed(this.#unreportedBytes)
      this.#unreportedBytes = 0
    })
  }
}
