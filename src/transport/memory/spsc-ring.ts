/**
 * A ring of frames in shared memory, for one producer thread and one consumer thread.
 *
 *   byte 0     64    128   192 … 256                                    256 + capacity
 *   ┌──────┬──────┬──────┬──────┬──────────────────────────────────────────┐
 *   │ HEAD │ TAIL │ RUNG │  –   │ frames                                   │
 *   └──────┴──────┴──────┴──────┴──────────────────────────────────────────┘
 *
 * HEAD, TAIL and RUNG stand in cache lines of their own: each is written by one side and read by the other,
 * and two of them in one line would bounce it between the cores.
 * HEAD and TAIL count bytes for ever, modulo 2^32; a position's offset is `position & (capacity - 1)`.
 *
 * Frame, aligned to 8 bytes, never split at the end of the ring (a WRAP length says: go on at offset 0):
 *
 *   ┌────────┬───────┬──────┬──────┬──────────────┬───────┐
 *   │ LENGTH │ STATE │  ID  │ KIND │ body         │ pad   │
 *   └────────┴───────┴──────┴──────┴──────────────┴───────┘
 *   16 bytes of header               LENGTH bytes   to 8
 */

// Taken before plugins can replace them.
const { compareExchange, exchange, load, store } = Atomics

// 32-bit words of the control block. They stand in this file, not in one of their own: a lane that tsx loads reads imported
// constants through a getter, at every use.
export const RING_HEAD_WORD = 0
export const RING_TAIL_WORD = 16
export const RING_RUNG_WORD = 32
export const RING_DATA_BYTE = 256

export const FRAME_HEADER_BYTES = 16
const FRAME_LENGTH_WORD = 0
const FRAME_STATE_WORD = 1
const FRAME_ID_WORD = 2
const FRAME_KIND_WORD = 3
/** LENGTH of the marker that sends the consumer back to offset 0. */
const FRAME_WRAP = -1

// STATE: written by the producer, then claimed by whichever side swaps it first.
const FRAME_READY = 0
const FRAME_TAKEN = 1
const FRAME_TAKEN_BACK = 2

/** Makes the memory of a ring. @param capacityBytes a power of two, at least 1024 */
export function createRing(capacityBytes: number): SharedArrayBuffer {
  if (capacityBytes < 1024 || (capacityBytes & (capacityBytes - 1)) !== 0) {
    throw new RangeError(`A ring's capacity must be a power of two of at least 1024 bytes, not ${capacityBytes}`)
  }
  return new SharedArrayBuffer(RING_DATA_BYTE + capacityBytes)
}

/** Length of a frame body at most, so that a frame always fits into an empty ring wherever HEAD is. */
export function maxFrameBytes(capacityBytes: number): number {
  return capacityBytes / 2 - FRAME_HEADER_BYTES
}

const align8 = (bytes: number): number => (bytes + 7) & ~7

/**
 * The writing end. Only one thread may hold it. Wait-free: it never waits for the consumer, it says that there is no room.
 * Between `reserve` and `commit` nothing else may write.
 */
export class RingProducer implements FrameMemory {
  /** The frames' memory; write a frame's body from the offset that `reserve` gave. */
  readonly bytes: RawBuffer
  readonly words: Int32Array
  readonly doubles: Float64Array
  readonly #control: Int32Array
  readonly #capacity: number
  readonly #mask: number
  /** Written by this side alone, so the plain copy is the truth. It does not wrap at 2^32, so that no two frames ever have one position. */
  #head: number
  /** The last TAIL that was read: never ahead of the real one, so room computed from it is really there. */
  #tailSeen: number
  #reservedAt = -1

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, RING_DATA_BYTE >> 2)
    this.#capacity = memory.byteLength - RING_DATA_BYTE
    this.#mask = this.#capacity - 1
    ;({ bytes: this.bytes, words: this.words, doubles: this.doubles } = frameMemory(memory, RING_DATA_BYTE))
    this.#head = load(this.#control, RING_HEAD_WORD) >>> 0
    this.#tailSeen = load(this.#control, RING_TAIL_WORD) >>> 0
  }

  /** The byte offset for a body of up to `maxBytes`, or -1 when there is no room for it now. */
  reserve(maxBytes: number): number {
    const frameBytes = FRAME_HEADER_BYTES + align8(maxBytes)
    let at = this.#head & this.#mask
    const untilEnd = this.#capacity - at
    const needed = frameBytes <= untilEnd ? frameBytes : untilEnd + frameBytes
    if (this.#capacity - ((this.#head - this.#tailSeen) >>> 0) < needed) {
      // Pairs with the consumer's store of TAIL: what it read before that store, we may overwrite now.
      this.#tailSeen = load(this.#control, RING_TAIL_WORD) >>> 0
      if (this.#capacity - ((this.#head - this.#tailSeen) >>> 0) < needed) return -1
    }
    if (frameBytes > untilEnd) at = 0
    this.#reservedAt = at
    return at + FRAME_HEADER_BYTES
  }

  /** Publishes the reserved frame. @returns its position, for `takeBack` */
  commit(bodyBytes: number, kind: number, id: number): number {
    const at = this.#reservedAt
    const headAt = this.#head & this.#mask
    let position = this.#head
    if (at !== headAt) {
      // The frame did not fit before the end. Alignment leaves at least 8 bytes for the marker.
      this.words[(headAt >> 2) + FRAME_LENGTH_WORD] = FRAME_WRAP
      position += this.#capacity - headAt
    }
    const word = at >> 2
    this.words[word + FRAME_LENGTH_WORD] = bodyBytes
    this.words[word + FRAME_STATE_WORD] = FRAME_READY
    this.words[word + FRAME_ID_WORD] = id
    this.words[word + FRAME_KIND_WORD] = kind
    this.#head = position + FRAME_HEADER_BYTES + align8(bodyBytes)
    this.#reservedAt = -1
    // Publishes all plain writes above; pairs with the consumer's load of HEAD.
    store(this.#control, RING_HEAD_WORD, this.#head | 0)
    return position
  }

  /** True when the consumer has to be woken: it was not rung since it last began to drain. */
  ring(): boolean {
    return exchange(this.#control, RING_RUNG_WORD, 1) === 0
  }

  /** TAIL: up to where the consumer has read, modulo 2^32. */
  get readPosition(): number {
    return load(this.#control, RING_TAIL_WORD)
  }

  /** True when the consumer has read everything. */
  get isRead(): boolean {
    return load(this.#control, RING_TAIL_WORD) === (this.#head | 0)
  }

  /** Bytes that the consumer has not released yet. */
  get usedBytes(): number {
    this.#tailSeen = load(this.#control, RING_TAIL_WORD) >>> 0
    return (this.#head - this.#tailSeen) >>> 0
  }

  /**
   * Takes a frame back that the consumer has not begun: a copy of its body, or null when the consumer was first.
   * The memory is released when the consumer passes it, as of any frame.
   */
  takeBack(position: number): Buffer | null {
    // Behind TAIL its memory may hold other frames by now.
    if (position < this.#head - this.usedBytes) return null
    const word = (position & this.#mask) >> 2
    // Decides against the consumer's swap in `drain`; the body is ours to read, for only this side ever overwrites it.
    const won = compareExchange(this.words, word + FRAME_STATE_WORD, FRAME_READY, FRAME_TAKEN_BACK) === FRAME_READY
    if (!won) return null
    const from = (position & this.#mask) + FRAME_HEADER_BYTES
    return Buffer.from(this.bytes.subarray(from, from + this.words[word + FRAME_LENGTH_WORD]!))
  }

  /** Takes back all that the other side has not begun, and tells what it was. */
  takeBackAll(visit: (kind: number, id: number) => void): void {
    for (let position = this.#head - this.usedBytes; position < this.#head; ) {
      const at = position & this.#mask
      const word = at >> 2
      const length = this.words[word + FRAME_LENGTH_WORD]!
      if (length === FRAME_WRAP) {
        position += this.#capacity - at
        continue
      }
      // As in `takeBack`: a thread that is being ended may still read.
      const won = compareExchange(this.words, word + FRAME_STATE_WORD, FRAME_READY, FRAME_TAKEN_BACK) === FRAME_READY
      if (won) visit(this.words[word + FRAME_KIND_WORD]!, this.words[word + FRAME_ID_WORD]!)
      position += FRAME_HEADER_BYTES + align8(length)
    }
  }
}

/** A frame's body is at `offset`, `length` bytes long, and stands there only until the callback returns. */
export type FrameReader = (kind: number, id: number, offset: number, length: number) => void

/** The reading end. Only one thread may hold it. */
export class RingConsumer implements FrameMemory {
  readonly bytes: RawBuffer
  readonly words: Int32Array
  readonly doubles: Float64Array
  readonly #control: Int32Array
  readonly #mask: number
  readonly #capacity: number
  /** Written by this side alone. */
  #tail: number

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, RING_DATA_BYTE >> 2)
    this.#capacity = memory.byteLength - RING_DATA_BYTE
    this.#mask = this.#capacity - 1
    ;({ bytes: this.bytes, words: this.words, doubles: this.doubles } = frameMemory(memory, RING_DATA_BYTE))
    this.#tail = load(this.#control, RING_TAIL_WORD) >>> 0
  }

  /** Bytes of what is to be read. */
  get usedBytes(): number {
    return ((load(this.#control, RING_HEAD_WORD) >>> 0) - this.#tail) >>> 0
  }

  /** True when there is a frame to read. */
  get pending(): boolean {
    return load(this.#control, RING_HEAD_WORD) >>> 0 !== this.#tail
  }

  /**
   * Says that this side goes to sleep: the next frame's producer has to ring.
   * @returns false when a frame came just before: it has to be drained, since the producer does not ring for it
   */
  sleep(): boolean {
    // Cleared before HEAD is read: a frame committed after that load finds the flag down, and its producer rings.
    store(this.#control, RING_RUNG_WORD, 0)
    return !this.pending
  }

  /**
   * Reads frames until the ring is empty or `maxFrames` are read. A reader that throws loses nothing but its own frame.
   * @returns how many were read
   */
  drain(read: FrameReader, maxFrames: number): number {
    let head = load(this.#control, RING_HEAD_WORD) >>> 0
    for (let frames = 0; ; ) {
      if (this.#tail === head) {
        head = load(this.#control, RING_HEAD_WORD) >>> 0
        if (this.#tail === head) return frames
      }
      const at = this.#tail & this.#mask
      const word = at >> 2
      const length = this.words[word + FRAME_LENGTH_WORD]!
      if (length === FRAME_WRAP) {
        this.#release((this.#tail + this.#capacity - at) >>> 0)
        continue
      }
      if (frames === maxFrames) return frames
      frames++
      const next = (this.#tail + FRAME_HEADER_BYTES + align8(length)) >>> 0
      // Decides against the producer's `takeBack`.
      const mine = compareExchange(this.words, word + FRAME_STATE_WORD, FRAME_READY, FRAME_TAKEN) === FRAME_READY
      try {
        if (mine) {
          read(this.words[word + FRAME_KIND_WORD]!, this.words[word + FRAME_ID_WORD]!, at + FRAME_HEADER_BYTES, length)
        }
      } finally {
        this.#release(next)
      }
    }
  }

  #release(tail: number): void {
    this.#tail = tail
    // Pairs with the producer's load of TAIL: everything before has been read.
    store(this.#control, RING_TAIL_WORD, tail | 0)
  }
}

/**
 * Node's Buffer with the fixed-encoding methods that it has on its prototype but not in its types.
 * They skip the encoding's look-up of `write` and `toString`, which counts at a hundred thousand frames a second.
 */
export interface RawBuffer extends Buffer {
  latin1Write(text: string, offset: number, maxBytes?: number): number
  utf8Write(text: string, offset: number, maxBytes?: number): number
  latin1Slice(from: number, to: number): string
  utf8Slice(from: number, to: number): string
}

/** Memory in which frames stand. */
export interface FrameMemory {
  readonly bytes: RawBuffer
  /** The same memory as 32-bit words, at `offset >> 2`. */
  readonly words: Int32Array
  /** And as 64-bit numbers, at `offset >> 3`. */
  readonly doubles: Float64Array
}

/** @param memory its length is a multiple of 8, like `from`: where the frames begin */
export const frameMemory = (memory: ArrayBuffer | SharedArrayBuffer, from = 0): FrameMemory => ({
  bytes: Buffer.from(memory, from) as RawBuffer,
  words: new Int32Array(memory, from),
  doubles: new Float64Array(memory, from),
})
