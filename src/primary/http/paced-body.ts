import type { HttpResponse } from 'uWebSockets.js'

/** A client that reads nothing of a file for so long is cut off, milliseconds. */
export const FILE_STALL_MS = 30_000
const LOOK_MS = 1_000
/** What has left is told in portions of this size: each lets the sender read on. */
const FLUSH_REPORT_BYTES = 60_000

const bodies = new Set<PacedBody>()
let lookTimer: NodeJS.Timeout | undefined

/** The body of an answer whose length is known, in pieces: it tells when they have left, and holds what whoever sends it has sent. */
export class PacedBody {
  readonly #res: HttpResponse
  readonly #lengthBytes: number
  readonly #onFlushed: (bytes: number) => void
  readonly #onGone: () => void
  readonly #pieces: Uint8Array[] = []
  /** Where the first piece begins in the body. */
  #at = 0
  #untold = 0
  #isBlocked = false
  #isOver = false
  #progressMs = Date.now()

  /** @param onGone runs once when all is sent, or the client was cut off */
  constructor(res: HttpResponse, lengthBytes: number, onFlushed: (bytes: number) => void, onGone: () => void) {
    this.#res = res
    this.#lengthBytes = lengthBytes
    this.#onFlushed = onFlushed
    this.#onGone = onGone
    res.onWritable((offset) => {
      this.#isBlocked = false
      this.#flushed(offset)
      this.#flush()
      return !this.#isBlocked
    })
    bodies.add(this)
    lookTimer ??= setInterval(() => {
      for (const body of bodies) body.#look(Date.now())
    }, LOOK_MS).unref()
  }

  send(piece: Uint8Array): void {
    if (this.#isOver) return
    this.#pieces.push(piece)
    if (!this.#isBlocked) this.#flush()
  }

  /** Nothing comes any more: what is not complete by now never will be. */
  end(): void {
    if (this.#isOver) return
    this.forget()
    this.#res.close()
  }

  /** The connection is gone. */
  forget(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.length = 0
    bodies.delete(this)
    if (bodies.size === 0) {
      clearInterval(lookTimer)
      lookTimer = undefined
    }
    this.#onGone()
  }

  /** The library keeps nothing of a piece that did not fit: it says how far it came. */
  #flush(): void {
    while (this.#pieces.length > 0 && !this.#isBlocked && !this.#isOver) {
      const piece = this.#pieces[0]!
      this.#res.cork(() => {
        const [isAccepted, isComplete] = this.#res.tryEnd(piece as Uint8Array<ArrayBuffer>, this.#lengthBytes)
        if (isComplete) {
          // Told before: whoever sent it waits for nothing else.
          this.#onFlushed(piece.byteLength + this.#untold)
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
    this.#progressMs = Date.now()
    this.#untold += flushedBytes
    while (flushedBytes > 0) {
      const piece = this.#pieces[0]!
      const part = Math.min(flushedBytes, piece.byteLength)
      if (part === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(part)
      flushedBytes -= part
      this.#at += part
    }
    if (this.#untold < FLUSH_REPORT_BYTES && this.#pieces.length > 0) return
    this.#onFlushed(this.#untold)
    this.#untold = 0
  }

  #look(nowMs: number): void {
    if (this.#pieces.length > 0 && nowMs - this.#progressMs > FILE_STALL_MS) this.end()
  }
}
