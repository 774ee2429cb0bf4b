// The reading end of a ring, with its doorbell and the port for large bodies.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { clock } from '../../core/schedule/clock.ts'
import { skipStopped } from '../../core/schedule/stopped-immediate.ts'
import { BULK_FLAG, KIND_MASK } from '../frames/frames.ts'
import { type FrameMemory, frameMemory, type RawBuffer, RingConsumer } from '../memory/spsc-ring.ts'

/** Frames that one turn of the loop reads, at most, so that timers and sockets get their turn under load. */
const FRAMES_PER_TURN = 1024
/**
 * A turn ends after this time too, milliseconds: a thousand requests of a millisecond each would be one turn of a second, in which the
 * thread has no heartbeat, and seems to hang.
 */
const TURN_MS = 10
/** As many turns read a ring that is full of the smallest frames. */
const CATCH_UP_TURNS = 8
/**
 * The clock is read after one frame, then after two, four and so on, and after this many at most. So a turn of frames that take equally
 * long takes twice its time and one frame at most.
 */
const FRAMES_PER_CLOCK = 32

/** The body is at offset `at`, `length` bytes long, in the inbox's `bytes`, `words` and `doubles` until the callback returns. */
export type FrameHandler = (kind: number, id: number, at: number, length: number) => void

/** Told of each batch of frames, for answers that go out once per batch. */
export interface BatchListener {
  beginBatch(): void
  endBatch(): void
}

/** After this many looks in vain, one after another, the inbox goes to sleep without one. */
const VAIN_LOOKS_MAX = 4
/** It tries again to look after this many sleeps. */
const SLEEPS_WITHOUT_LOOK = 32

/** The receiving end of a lane's ring: call `drain` when the doorbell rings. */
export class Inbox implements FrameMemory {
  bytes!: RawBuffer
  words!: Int32Array
  doubles!: Float64Array
  readonly #ring: RingConsumer
  readonly #bulk: MessagePort
  readonly #handle: FrameHandler
  readonly #batches: BatchListener
  /** The next one in which frames are read, and the one in which they are read now: it stays when what runs is stopped. */
  #next: NodeJS.Immediate | null = null
  #running: NodeJS.Immediate | null = null
  #isAwake = false
  #isReading = false
  #vainLooks = 0
  #sleeps = 0

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

  /** What ran may have been stopped in the midst of a turn, which then was not ended. */
  recover(): void {
    this.#use(this.#ring)
    this.#isAwake = true
    this.#next = setImmediate(this.#look)
  }

  /** Node does not get on behind an immediate that was stopped. @returns false when that is none of this inbox */
  skipStopped(): boolean {
    const stopped = this.#running
    this.#running = null
    return skipStopped(stopped)
  }

  readonly #look = (): void => {
    this.#running = this.#next
    this.#turn(true)
    this.#running = null
  }

  /**
   * Reads the frames, and looks once more in the next turn, until a look finds none: only then the other side has to ring again. Under
   * load it never has to, and a look is cheaper than a message between threads.
   */
  #turn(isLook: boolean): void {
    let frames = 1
    this.#batches.beginBatch()
    try {
      frames = this.#readSome()
    } finally {
      // Runs also when a handler threw: the other frames must not wait for the next doorbell.
      this.#batches.endBatch()
      if (isLook) this.#vainLooks = frames > 0 ? 0 : this.#vainLooks + 1
      if ((frames === 0 || !this.#isLookWorthwhile()) && this.#ring.sleep()) this.#isAwake = false
      else this.#next = setImmediate(this.#look)
    }
  }

  /** @returns how many frames it has read */
  #readSome(): number {
    const untilMs = clock.now() + TURN_MS
    let frames = 0
    this.#isReading = true
    try {
      for (let wanted = 1; ; wanted = Math.min(2 * wanted, FRAMES_PER_CLOCK)) {
        const read = this.#ring.drain(this.#read, wanted)
        frames += read
        if (read < wanted || frames >= FRAMES_PER_TURN || clock.now() >= untilMs) return frames
      }
    } finally {
      this.#isReading = false
    }
  }

  /** False where the other side waits for an answer before it sends more: there each look costs a turn of the loop for nothing. */
  #isLookWorthwhile(): boolean {
    if (this.#vainLooks < VAIN_LOOKS_MAX) return true
    if (++this.#sleeps < SLEEPS_WITHOUT_LOOK) return false
    this.#sleeps = 0
    return true
  }

  /** Reads what is there now, without being rung. Not from within a frame of it. */
  catchUp(): void {
    if (this.#isReading || !this.#ring.pending) return
    this.#batches.beginBatch()
    try {
      for (let turns = 0; turns < CATCH_UP_TURNS && this.#ring.pending; turns++) this.#readSome()
    } finally {
      this.#batches.endBatch()
    }
  }

  /** Reads all frames that are left: the other side is gone. */
  drainAll(): void {
    this.#batches.beginBatch()
    this.#isReading = true
    try {
      while (this.#ring.drain(this.#read, FRAMES_PER_TURN) > 0);
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
