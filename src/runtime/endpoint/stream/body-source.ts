// Bodies of answers that are sent in pieces: of a file, of an iterable.
import type { FileHandle } from 'node:fs/promises'
import type { CausalContext } from '../../../contracts/tracing.ts'
import { causality } from '../../../core/causality/context.ts'
import { AS_EVENT_STREAM, type EventStreamSource } from '../../../core/streams/event-stream.ts'

/** The body of an answer that is sent in pieces. Its holder closes it. */
export interface BodySource {
  /** -1 for a body whose length is not known before its end. */
  readonly lengthBytes: number
  /** The next piece, of at most PIECE_BYTES; null at the end. @throws when there is no next one although the body has not ended */
  next(): Promise<Uint8Array | null>
  /** Nobody wants a further piece. May be called at any time, and again. */
  close(): Promise<void> | void
}

/** Bytes of a piece of a body at most. Files of at most this are sent in one. */
export const PIECE_BYTES = 60_000
/** Bytes of a larger body that are on their way at a time: it is read as fast as the client reads. */
export const WINDOW_BYTES = 240_000

/** A part of an open file that is the body of an answer. Its holder closes it. */
export class FileBody implements BodySource {
  readonly lengthBytes: number
  readonly #handle: FileHandle
  #at: number
  #left: number

  constructor(handle: FileHandle, fromByte: number, lengthBytes: number) {
    this.#handle = handle
    this.lengthBytes = lengthBytes
    this.#at = fromByte
    this.#left = lengthBytes
  }

  /** The next piece; null at the end. @throws when the file has become shorter */
  async next(): Promise<Uint8Array | null> {
    if (this.#left === 0) return null
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, this.#left))
    const { bytesRead } = await this.#handle.read(piece, 0, piece.byteLength, this.#at)
    if (bytesRead === 0) throw new Error('The file has become shorter while it was sent')
    this.#at += bytesRead
    this.#left -= bytesRead
    return piece.subarray(0, bytesRead)
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }
}

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

const TEXT_TYPE = 'text/plain; charset=utf-8'
const BYTES_TYPE = 'application/octet-stream'
/** A JSON value a line. */
const LINES_TYPE = 'application/x-ndjson; charset=utf-8'
const EVENTS_TYPE = 'text/event-stream'
const NOTHING: AsyncIterable<never> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}
const OVER: IteratorResult<unknown> = { done: true, value: undefined }

type Chunks = AsyncIterator<unknown>

/** What a handler returned in order to be sent chunk by chunk; null for a value of another kind. */
export function streamOf(result: unknown): StreamBody | null {
  if (typeof result !== 'object' || result === null) return null
  if (AS_EVENT_STREAM in result) {
    const frames = (result as EventStreamSource)[AS_EVENT_STREAM]
    return new StreamBody(frames === null ? NOTHING : frames(), EVENTS_TYPE)
  }
  const begin = (result as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator]
  return typeof begin === 'function' ? new StreamBody(result as AsyncIterable<unknown>) : null
}

/** The chunks of an async iterable: text, bytes, or other values, each of which becomes a line of JSON. */
export class StreamBody implements BodySource {
  readonly lengthBytes = -1
  /** What the code that makes the chunks belongs to. */
  cause: CausalContext | null = null
  readonly #iterable: AsyncIterable<unknown>
  /** Null: the first chunk tells. */
  readonly #type: string | null
  #chunks: Chunks | null = null
  /** Bytes of a chunk that is larger than a piece. */
  #rest: Uint8Array | null = null
  /** The first chunk, which was read to know what the body is. */
  #first: Uint8Array | null = null
  #isOver = false
  #stopWaiting: ((result: IteratorResult<unknown>) => void) | null = null

  constructor(iterable: AsyncIterable<unknown>, type: string | null = null) {
    this.#iterable = iterable
    this.#type = type
    // A Readable that fails before it is read, or is never read, would end the thread.
    const { on } = iterable as { on?: unknown }
    if (typeof on === 'function') on.call(iterable, 'error', () => {})
  }

  /**
   * Waits for the first chunk: what is thrown before it can still be answered.
   * @returns the content type of such chunks
   */
  async begin(): Promise<string> {
    const { done, value } = await this.#pull()
    if (done) this.#isOver = true
    else this.#first = bytesOf(value)
    if (this.#type !== null) return this.#type
    if (value instanceof Uint8Array) return BYTES_TYPE
    return done || typeof value === 'string' ? TEXT_TYPE : LINES_TYPE
  }

  /** True for a stream of events that has ended before its first one. */
  get hasNoEvent(): boolean {
    return this.isOfEvents && this.#isOver && this.#first === null
  }

  get isOfEvents(): boolean {
    return this.#type === EVENTS_TYPE
  }

  async next(): Promise<Uint8Array | null> {
    while (!this.#isOver || this.#first !== null || this.#rest !== null) {
      const bytes = this.#rest ?? this.#first ?? (await this.#nextChunk())
      this.#rest = null
      this.#first = null
      // An empty chunk would end the body.
      if (bytes === null || bytes.byteLength === 0) continue
      if (bytes.byteLength > PIECE_BYTES) this.#rest = bytes.subarray(PIECE_BYTES)
      return bytes.subarray(0, PIECE_BYTES)
    }
    return null
  }

  /** Ends the iterable: its `finally` runs, at the latest when what it waits for now has come. */
  close(): void {
    const wasOver = this.#isOver
    this.#isOver = true
    this.#first = null
    this.#rest = null
    this.#stopWaiting?.(OVER)
    if (wasOver) return
    this.#run(() => {
      try {
        // An iterator of a Readable that was never asked leaves it open.
        const { destroy } = this.#iterable as { destroy?: unknown }
        if (typeof destroy === 'function') destroy.call(this.#iterable)
        else (this.#chunks ?? this.#iterable[Symbol.asyncIterator]()).return?.().then(undefined, () => {})
      } catch {
        // Nobody waits for what comes after the last chunk that somebody wanted.
      }
    })
  }

  async #nextChunk(): Promise<Uint8Array | null> {
    const { done, value } = await this.#pull()
    if (!done) return bytesOf(value)
    this.#isOver = true
    return null
  }

  #run(work: () => void): void {
    if (this.cause === null) work()
    else causality.run(this.cause, work)
  }

  /** The next chunk, or the end when `close` was called meanwhile: the iterable may wait for something that never comes. */
  async #pull(): Promise<IteratorResult<unknown>> {
    if (this.#isOver) return OVER
    try {
      return await new Promise<IteratorResult<unknown>>((resolve, reject) => {
        this.#stopWaiting = resolve
        this.#run(() => {
          this.#chunks ??= this.#iterable[Symbol.asyncIterator]()
          this.#chunks.next().then(resolve, reject)
        })
      })
    } catch (thrown) {
      this.#isOver = true
      throw thrown
    } finally {
      this.#stopWaiting = null
    }
  }
}

/** @throws TypeError for what is no JSON */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return Buffer.from(chunk)
  const text = toJson(chunk)
  if (text === undefined) throw new TypeError(`A streamed answer has a chunk that is no JSON: ${typeof chunk}`)
  return Buffer.from(`${text}\n`)
}
