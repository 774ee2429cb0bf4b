import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { WideFrameBuffer } from '../frames/frame-buffer.ts'
import { BULK_FLAG, KIND_MASK } from '../frames/frame-kinds.ts'
import type { RawBuffer } from '../memory/raw-buffer.ts'
import { RingConsumer } from '../memory/spsc-ring.ts'

/** Frames that one turn of the loop reads, at most, so that timers and sockets get their turn under load. */
const FRAMES_PER_TURN = 1024

/** The body is at offset `at`, `length` bytes long, in the inbox's `bytes`, `words` and `doubles` until the callback returns. */
export type FrameHandler = (kind: number, id: number, at: number, length: number) => void

/** The receiving end of a lane's ring: call `drain` when the doorbell rings. */
export class Inbox implements WideFrameBuffer {
  bytes: RawBuffer
  words: Int32Array
  doubles: Float64Array
  readonly #ring: RingConsumer
  readonly #ringDoubles: Float64Array
  readonly #bulk: MessagePort
  readonly #handle: FrameHandler
  readonly #afterDrain: () => void
  #isAwake = false

  /** @param afterDrain runs after each batch of frames, for answers that go out once per batch */
  constructor(memory: SharedArrayBuffer, bulk: MessagePort, handle: FrameHandler, afterDrain: () => void) {
    this.#ring = new RingConsumer(memory)
    this.#ringDoubles = new Float64Array(this.#ring.bytes.buffer, this.#ring.bytes.byteOffset)
    this.#bulk = bulk
    this.#handle = handle
    this.#afterDrain = afterDrain
    this.bytes = this.#ring.bytes
    this.words = this.#ring.words
    this.doubles = this.#ringDoubles
  }

  /** Wakes the inbox: the doorbell was rung. */
  readonly drain = (): void => {
    if (!this.#isAwake) this.#turn()
  }

  /**
   * Reads the frames and comes back next turn, until a turn finds none: only then the other side has to ring again.
   * Under load it never has to: one empty turn is cheaper than a message between threads.
   */
  readonly #turn = (): void => {
    this.#isAwake = true
    let frames = 1
    try {
      frames = this.#ring.drain(this.#read, FRAMES_PER_TURN)
    } finally {
      // Runs also when a handler threw: the other frames must not wait for the next doorbell.
      if (frames > 0) this.#afterDrain()
      if (frames > 0 || !this.#ring.sleep()) setImmediate(this.#turn)
      else this.#isAwake = false
    }
  }

  /** Reads all frames that are left: the other side is gone. */
  drainAll(): void {
    while (this.#ring.drain(this.#read, FRAMES_PER_TURN) > 0);
    this.#afterDrain()
  }

  readonly #read = (kind: number, id: number, at: number, length: number): void => {
    if ((kind & BULK_FLAG) === 0) return this.#handle(kind, id, at, length)
    const received = receiveMessageOnPort(this.#bulk) as
      | { message: { body: ArrayBuffer; bodyBytes: number } }
      | undefined
    if (received === undefined) throw new Error('A large frame came without its body')
    const { body, bodyBytes } = received.message
    this.bytes = Buffer.from(body) as RawBuffer
    this.words = new Int32Array(body)
    this.doubles = new Float64Array(body)
    try {
      this.#handle(kind & KIND_MASK, id, 0, bodyBytes)
    } finally {
      this.bytes = this.#ring.bytes
      this.words = this.#ring.words
      this.doubles = this.#ringDoubles
    }
  }
}
