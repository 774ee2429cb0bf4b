// The reading end of a ring, with its doorbell and the port for large bodies.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { BULK_FLAG, KIND_MASK } from '../frames/frames.ts'
import { type FrameMemory, frameMemory, type RawBuffer, RingConsumer } from '../memory/spsc-ring.ts'
import { NextLook } from './next-look.ts'
import { Pacing } from './pacing.ts'

/** Turns in which `catchUp` reads, at most: as many read a ring that is full of the smallest frames. */
const CATCH_UP_TURNS = 8
/** Frames that `drainAll` reads at a time. */
const FRAMES_PER_DRAIN = 1024

/** The body is at offset `at`, `length` bytes long, in the inbox's `bytes`, `words` and `doubles` until the callback returns. */
export type FrameHandler = (kind: number, id: number, at: number, length: number) => void

/** Told of each batch of frames, for answers that go out once per batch. */
export interface BatchListener {
  beginBatch(): void
  endBatch(): void
}

/** The receiving end of a lane's ring: call `drain` when the doorbell rings. */
export class Inbox implements FrameMemory {
  bytes!: RawBuffer
  words!: Int32Array
  doubles!: Float64Array
  readonly #ring: RingConsumer
  readonly #bulk: MessagePort
  readonly #handle: FrameHandler
  readonly #batches: BatchListener
  readonly #pacing = new Pacing((maxFrames) => this.#ring.drain(this.#read, maxFrames))
  readonly #nextLook = new NextLook(() => this.#turn(true))
  #isAwake = false
  #isReading = false

  constructor(memory: SharedArrayBuffer, bulk: MessagePort, handle: FrameHandler, batches: BatchListener) {
    this.#ring = new RingConsumer(memory)
    this.#bulk = bulk
    this.#handle = handle
    this.#batches = batches
    this.#use(this.#ring)
  }

  #use({ bytes, words, doubles }: FrameMemory): void {
    this.bytes = bytes
    this.words = words
    this.doubles = doubles
  }

  /** Wakes the inbox: the doorbell was rung. */
  readonly drain = (): void => {
    if (this.#isAwake) return
    this.#isAwake = true
    this.#turn(false)
  }

  /** Called after a terminated handler: the current turn never finished. */
  recover(): void {
    this.#use(this.#ring)
    this.#isAwake = true
    this.#nextLook.schedule()
  }

  /** @returns false when the immediate that was stopped is not this inbox's */
  skipStopped(): boolean {
    return this.#nextLook.skipStopped()
  }

  /**
   * Reads the frames, and looks once more in the next turn, until a look finds none: only then the other side has to ring again. Under
   * load it never has to, and a look is cheaper than a message between threads.
   */
  #turn(isLook: boolean): void {
    let frames = 1
    this.#batches.beginBatch()
    try {
      frames = this.#readTurn()
    } finally {
      // Runs also when a handler threw: the other frames must not wait for the next doorbell.
      this.#batches.endBatch()
      if (isLook) this.#pacing.looked(frames)
      if ((frames === 0 || !this.#pacing.isLookWorthwhile()) && this.#ring.sleep()) this.#isAwake = false
      else this.#nextLook.schedule()
    }
  }

  #readTurn(): number {
    this.#isReading = true
    try {
      return this.#pacing.readTurn()
    } finally {
      this.#isReading = false
    }
  }

  /** Reads what is there now, without being rung. Not from within a frame of it. */
  catchUp(): void {
    if (this.#isReading || !this.#ring.pending) return
    this.#batches.beginBatch()
    try {
      for (let turns = 0; turns < CATCH_UP_TURNS && this.#ring.pending; turns++) this.#readTurn()
    } finally {
      this.#batches.endBatch()
    }
  }

  /** Reads all frames that are left: the other side is gone. */
  drainAll(): void {
    this.#batches.beginBatch()
    this.#isReading = true
    try {
      while (this.#ring.drain(this.#read, FRAMES_PER_DRAIN) > 0);
    } finally {
      this.#isReading = false
      this.#batches.endBatch()
    }
  }

  readonly #read = (kind: number, id: number, at: number, length: number): void => {
    if ((kind & BULK_FLAG) === 0) return this.#handle(kind, id, at, length)
    const received = receiveMessageOnPort(this.#bulk) as
      | { message: { body: ArrayBuffer; bodyBytes: number } }
      | undefined
    if (received === undefined) throw new Error('A large frame came without its body')
    const { body, bodyBytes } = received.message
    this.#use(frameMemory(body))
    try {
      this.#handle(kind & KIND_MASK, id, 0, bodyBytes)
    } finally {
      this.#use(this.#ring)
    }
  }
}
