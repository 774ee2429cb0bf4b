import { type CausalContext, causality } from '../../core/causality/context.ts'
import type { BodySource } from './body-source.ts'
import { PIECE_BYTES } from './file-body.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

const TEXT_TYPE = 'text/plain; charset=utf-8'
const BYTES_TYPE = 'application/octet-stream'
/** A JSON value a line. */
const LINES_TYPE = 'application/x-ndjson; charset=utf-8'
const OVER: IteratorResult<unknown> = { done: true, value: undefined }

type Chunks = AsyncIterator<unknown>

/** What a handler returned in order to be sent chunk by chunk; null for a value of another kind. */
export function streamOf(result: unknown): StreamBody | null {
  if (typeof result !== 'object' || result === null) return null
  const begin = (result as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator]
  return typeof begin === 'function' ? new StreamBody(result as AsyncIterable<unknown>) : null
}

/** The chunks of an async iterable: text, bytes, or other values, each of which becomes a line of JSON. */
export class StreamBody implements BodySource {
  readonly lengthBytes = -1
  /** What the code that makes the chunks belongs to. */
  cause: CausalContext | null = null
  readonly #iterable: AsyncIterable<unknown>
  #chunks: Chunks | null = null
  /** Bytes of a chunk that is larger than a piece. */
  #rest: Uint8Array | null = null
  /** The first chunk, which was read to know what the body is. */
  #first: Uint8Array | null = null
  #isOver = false
  #stopWaiting: ((result: IteratorResult<unknown>) => void) | null = null

  constructor(iterable: AsyncIterable<unknown>) {
    this.#iterable = iterable
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
    if (value instanceof Uint8Array) return BYTES_TYPE
    return done || typeof value === 'string' ? TEXT_TYPE : LINES_TYPE
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
