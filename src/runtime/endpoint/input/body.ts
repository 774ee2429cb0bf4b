// A body that its handler reads while it comes.

import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { BodyStream, SavedFile, SaveOptions } from '../../../contracts/http-request.ts'
import { type ErrorCode, HeddleError } from '../../../core/errors/catalogue.ts'

/** Bytes that `bytes()` and `text()` gather unless they are told otherwise. */
const GATHERED_MAX_BYTES = 1 << 20

/** All bytes that come, in memory. @throws HTTP_BODY_TOO_LARGE */
export async function gathered(chunks: AsyncIterable<Buffer>, maxBytes = GATHERED_MAX_BYTES): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const chunk of bounded(chunks, maxBytes)) pieces.push(chunk)
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
}

async function* bounded(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new HeddleError('HTTP_BODY_TOO_LARGE', `There are more than ${maxBytes} bytes`)
    yield chunk
  }
}

/** Writes what comes to a file of another name in the same folder, and renames it when all is on the disk. Nothing stays when it fails. */
export async function saveToFile(
  chunks: AsyncIterable<Buffer>,
  path: string | URL,
  { maxBytes = Number.POSITIVE_INFINITY }: SaveOptions = {},
): Promise<SavedFile> {
  const target = path instanceof URL ? fileURLToPath(path) : resolve(path)
  const unfinished = join(dirname(target), `.upload-${randomBytes(8).toString('hex')}.part`)
  try {
    // With `flush` all of it is on the disk before the file is closed.
    const file = createWriteStream(unfinished, { flags: 'wx', flush: true })
    await pipeline(bounded(chunks, maxBytes), file)
    await rename(unfinished, target)
    return { path: target, bytes: file.bytesWritten }
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
}

/** Bytes of a body that are asked for and have not come, at most. */
const BODY_WINDOW_BYTES = 256 * 1024

/** The body of a request that its handler reads while it comes. */
export class IncomingBody extends Readable implements BodyStream {
  readonly #want: (bytes: number) => void
  #cameBytes = 0
  #awaitedBytes = 0
  #isComplete = false
  readonly #check: ((piece: Buffer) => void) | null

  /**
   * @param want asks for further bytes
   * @param check throws for what its reader must not get
   */
  constructor(want: (bytes: number) => void, check: ((piece: Buffer) => void) | null = null) {
    super({ highWaterMark: 1 })
    this.#want = want
    this.#check = check
    // An error without a listener ends the thread.
    this.on('error', () => {})
  }

  get bytesRead(): number {
    return this.#cameBytes - this.readableLength
  }

  saveTo(path: string | URL, options?: SaveOptions): Promise<SavedFile> {
    return saveToFile(this, path, options)
  }

  bytes(maxBytes?: number): Promise<Buffer> {
    return gathered(this, maxBytes)
  }

  override _read(): void {
    if (this.#awaitedBytes > BODY_WINDOW_BYTES / 2 || this.#isComplete) return
    const bytes = BODY_WINDOW_BYTES - this.#awaitedBytes
    // First: in the listener's own thread what is asked for comes at once.
    this.#awaitedBytes = BODY_WINDOW_BYTES
    this.#want(bytes)
  }

  /** Without an error: the reader has left its loop, or all was read. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isLeft = error === null && !this.readableEnded
    done(isLeft ? new Error('The rest of the body was given up, by leaving the loop that read it') : error)
  }

  // ── for the runtime ───────────────────────────────────────────────────────

  /** Bytes that were asked for have come. */
  add(piece: Buffer): void {
    if (this.destroyed) return
    this.#cameBytes += piece.byteLength
    this.#awaitedBytes -= piece.byteLength
    try {
      this.#check?.(piece)
    } catch (fault) {
      this.destroy(fault as Error)
      return
    }
    this.push(piece)
  }

  /** All has come. */
  complete(): void {
    this.#isComplete = true
    this.push(null)
  }

  /** Nothing more can be read of it. Does nothing when all has been read. */
  fail(code: ErrorCode): void {
    if (!this.#isComplete || this.readableLength > 0) this.destroy(new HeddleError(code))
  }
}
