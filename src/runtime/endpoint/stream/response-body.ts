// The body of a Response, sent as it is made.
import type { CausalContext } from '../../../contracts/tracing.ts'
import { causality } from '../../../core/causality/context.ts'
import { type BodySource, PIECE_BYTES } from './body-source.ts'

type Chunk = Awaited<ReturnType<ReadableStreamDefaultReader<unknown>['read']>>

/** Turns of the microtask queue in which a body that is already there is read, with its end. */
const READY_TURNS = 16

/** Reads a body: whole where all of it is there, else piece by piece. */
export class ResponseBody implements BodySource {
  readonly lengthBytes = -1
  readonly #reader: ReadableStreamDefaultReader<unknown>
  /** What the code that makes the chunks belongs to. */
  readonly #cause: CausalContext | undefined
  /** Chunks that were read to see whether they are all. */
  readonly #next: Promise<Chunk>[] = []
  /** Bytes of a chunk that is larger than a piece. */
  #rest: Uint8Array | null = null

  constructor(body: ReadableStream<unknown>) {
    this.#reader = body.getReader()
    this.#cause = causality.getStore()
  }

  /** All of it, where that is one chunk and there is nothing to wait for; else null, and nothing is lost. @throws what making it throws */
  async whole(): Promise<Uint8Array | null> {
    const first = await this.#ready()
    if (first === null) return null
    if (first.done) return NO_BYTES
    // Before the head has left: a chunk that is none can still be answered.
    const bytes = bytesOf(first.value)
    return (await this.#ready())?.done ? bytes : null
  }

  /** The next chunk where it comes at once, which `next` gives again; else null. */
  async #ready(): Promise<Chunk | null> {
    const pending = this.#read()
    this.#next.push(pending)
    let isSettled = false
    const settled = (): void => {
      isSettled = true
    }
    pending.then(settled, settled)
    for (let turn = 0; turn < READY_TURNS && !isSettled; turn++) await null
    return isSettled ? pending : null
  }

  /** Sends these bytes before the others. */
  begin(bytes: Uint8Array): void {
    this.#rest = bytes
  }

  async next(): Promise<Uint8Array | null> {
    for (;;) {
      let bytes = this.#rest
      if (bytes === null) {
        const { done, value } = await (this.#next.shift() ?? this.#read())
        if (done) return null
        bytes = bytesOf(value)
      }
      this.#rest = bytes.byteLength > PIECE_BYTES ? bytes.subarray(PIECE_BYTES) : null
      // An empty piece would end the body.
      if (bytes.byteLength > 0) return bytes.subarray(0, PIECE_BYTES)
    }
  }

  /** What is being waited for ends, too. */
  close(): void {
    this.#reader.cancel().catch(() => {
      // Nobody waits for what comes after the last chunk that somebody wanted.
    })
  }

  #read(): Promise<Chunk> {
    if (this.#cause === undefined || causality.getStore() === this.#cause) return this.#reader.read()
    return causality.run(this.#cause, () => this.#reader.read())
  }
}

const NO_BYTES = new Uint8Array(0)

/** @throws TypeError for what is no bytes, as the standard has it */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  throw new TypeError(
    `The body of a Response has a chunk that is ${typeof chunk}, not bytes: pipe text through a TextEncoderStream`,
  )
}
