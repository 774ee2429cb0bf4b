import type { BodyStream, SavedFile, SaveOptions } from '../../contracts/request-body.ts'
import { type ErrorCode, HeddleError } from '../../core/errors/catalogue.ts'
import { gathered } from './gathered-bytes.ts'
import { saveToFile } from './saved-file.ts'

/** Bytes of a body that are asked for and not read yet, at most. */
export const BODY_WINDOW_BYTES = 256 * 1024

/** The body of a request that its handler reads while it comes. */
export class IncomingBody implements BodyStream, AsyncIterableIterator<Buffer> {
  bytesRead = 0
  readonly #want: (bytes: number) => void
  #pieces: Buffer[] = []
  /** Bytes that were read and not asked for again. */
  #spentBytes = BODY_WINDOW_BYTES
  #isComplete = false
  #fault: Error | null = null
  #waiting: { resolve: (result: IteratorResult<Buffer>) => void; reject: (error: unknown) => void } | null = null

  /** @param want asks for further bytes */
  constructor(want: (bytes: number) => void) {
    this.#want = want
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  // Promises of its own: a body of 500 MB has ten thousand pieces.
  next(): Promise<IteratorResult<Buffer>> {
    if (this.#fault !== null) return Promise.reject(this.#fault)
    if (this.#waiting !== null) return Promise.reject(new TypeError('The body is being read already'))
    const piece = this.#pieces.shift()
    if (piece !== undefined) return Promise.resolve(this.#read(piece))
    if (this.#isComplete) return Promise.resolve(OVER)
    return new Promise((resolve, reject) => {
      // First: in the listener's own thread what is asked for comes at once.
      this.#waiting = { resolve, reject }
      this.#ask()
    })
  }

  /** The reader has left its loop. */
  return(): Promise<IteratorResult<Buffer>> {
    this.#break(new Error('The rest of the body was given up, by leaving the loop that read it'))
    return Promise.resolve(OVER)
  }

  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile> {
    return saveToFile(this, path, options)
  }

  bytes(maxBytes?: number): Promise<Buffer> {
    return gathered(this, maxBytes)
  }

  // ── for the runtime ───────────────────────────────────────────────────────

  /** Bytes that were asked for have come. */
  add(piece: Buffer): void {
    if (this.#fault !== null) return
    const waiting = this.#waiting
    if (waiting === null) return void this.#pieces.push(piece)
    this.#waiting = null
    waiting.resolve(this.#read(piece))
  }

  /** All has come. */
  complete(): void {
    this.#isComplete = true
    this.#waiting?.resolve(OVER)
    this.#waiting = null
  }

  /** Nothing more can be read of it. Does nothing when all has been read. */
  fail(code: ErrorCode): void {
    this.#break(new HeddleError(code))
  }

  #break(fault: Error): void {
    if (this.#fault !== null || (this.#isComplete && this.#pieces.length === 0)) return
    this.#fault = fault
    this.#pieces = []
    this.#waiting?.reject(fault)
    this.#waiting = null
  }

  #read(piece: Buffer): IteratorResult<Buffer> {
    this.bytesRead += piece.byteLength
    this.#spentBytes += piece.byteLength
    if (this.#spentBytes >= BODY_WINDOW_BYTES / 2) this.#ask()
    return { done: false, value: piece }
  }

  #ask(): void {
    if (this.#spentBytes === 0 || this.#isComplete) return
    const bytes = this.#spentBytes
    this.#spentBytes = 0
    this.#want(bytes)
  }
}

const OVER: IteratorResult<Buffer> = { done: true, value: undefined }
