// A body that its handler reads while it comes.

import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BodyStream, SavedFile, SaveOptions } from '../../../contracts/http-request.ts'
import { type ErrorCode, HeddleError } from '../../../core/errors/catalogue.ts'

/** Bytes that `bytes()` and `text()` gather unless they are told otherwise. */
const GATHERED_MAX_BYTES = 1 << 20

/** All bytes that come, in memory. @throws HTTP_BODY_TOO_LARGE */
export async function gathered(chunks: AsyncIterable<Buffer>, maxBytes = GATHERED_MAX_BYTES): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    pieces.push(chunk)
  }
  return Buffer.concat(pieces, bytes)
}

function tooLarge(maxBytes: number): HeddleError {
  return new HeddleError('HTTP_BODY_TOO_LARGE', `There are more than ${maxBytes} bytes`)
}

/** Writes what comes to a file of another name in the same folder, and renames it when all is on the disk. Nothing stays when it fails. */
export async function saveToFile(
  chunks: AsyncIterable<Buffer>,
  path: string | URL,
  { maxBytes = Number.POSITIVE_INFINITY }: SaveOptions = {},
): Promise<SavedFile> {
  const target = path instanceof URL ? fileURLToPath(path) : resolve(path)
  const unfinished = join(dirname(target), `.upload-${randomBytes(8).toString('hex')}.part`)
  const file = await open(unfinished, 'wx')
  try {
    let bytes = 0
    try {
      for await (const chunk of chunks) {
        bytes += chunk.byteLength
        if (bytes > maxBytes) throw tooLarge(maxBytes)
        await file.appendFile(chunk)
      }
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(unfinished, target)
    return { path: target, bytes }
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

/** Bytes of a body that are asked for and not read yet, at most. */
const BODY_WINDOW_BYTES = 256 * 1024

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
