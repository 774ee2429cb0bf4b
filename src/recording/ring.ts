/** Records of a thread as JSON in shared memory, where they outlive the thread: it writes them, and a thread beside it reads them. */
import { readable } from '../core/errors/description.ts'
import { createRing, maxFrameBytes, RING_DATA_BYTE, RingConsumer, RingProducer } from '../transport/memory/spsc-ring.ts'

/** With less room than this a ring takes nothing more, so that what would not fit is not encoded. Bytes. */
const ROOM_MIN_BYTES = 16_384
/** Records that are skipped at a time. */
const SKIPPED = 64

/** @param bytes a power of two */
export const createRecordRing = (bytes: number): SharedArrayBuffer => createRing(bytes)

/** The writing end, of which a thread has one. It never waits: what does not fit is dropped and counted. The id of a frame is that count. */
export class RecordWriter<Kept extends object> {
  readonly #ring: RingProducer
  readonly #jsonOf: (record: Kept) => string
  readonly #maxBytes: number
  readonly #fullBytes: number
  #lost = 0

  /** @param jsonOf what is written of a record */
  constructor(memory: SharedArrayBuffer, jsonOf: (record: Kept) => string = JSON.stringify) {
    const capacity = memory.byteLength - RING_DATA_BYTE
    this.#ring = new RingProducer(memory)
    this.#jsonOf = jsonOf
    this.#maxBytes = maxFrameBytes(capacity)
    this.#fullBytes = capacity - ROOM_MIN_BYTES
  }

  /** Never throws, whatever a plugin has thrown, logged or given to a tool: what cannot be read is lost. @param make not called where there is no room */
  write(make: () => Kept): void {
    const text = this.#ring.usedBytes > this.#fullBytes ? undefined : readable(() => this.#jsonOf(make()))
    const length = text === undefined ? 0 : Buffer.byteLength(text)
    const at = text === undefined || length > this.#maxBytes ? -1 : this.#ring.reserve(length)
    if (at < 0) {
      this.#lost++
      return
    }
    this.#ring.bytes.utf8Write(text!, at, length)
    this.#ring.commit(length, 0, this.#lost)
  }
}

/** The reading end. */
export class RecordReader {
  readonly memory: SharedArrayBuffer
  readonly #ring: RingConsumer
  /** The count that the thread has reported last; -1 before the first report. */
  #reported = -1
  #lost = 0

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#ring = new RingConsumer(memory)
  }

  /** Passes on the oldest records as JSON, at most `max`. @returns how many */
  read(max: number, take: (json: string) => void): number {
    const { bytes } = this.#ring
    return this.#ring.drain((_kind, lost, at, length) => {
      this.#note(lost)
      take(bytes.utf8Slice(at, at + length))
    }, max)
  }

  /** The share of the ring that is full: its thread drops its newest records when that is 1. */
  get fill(): number {
    return this.#ring.usedBytes / (this.memory.byteLength - RING_DATA_BYTE)
  }

  /** Drops the oldest records until no more than this share of the ring is full. */
  skipTo(fill: number): void {
    const skip = (_kind: number, lost: number): void => this.#note(lost)
    while (this.fill > fill) this.#lost += this.#ring.drain(skip, SKIPPED)
  }

  #note(lost: number): void {
    // A reader that was started later does not know what was reported before.
    if (this.#reported >= 0) this.#lost += lost - this.#reported
    this.#reported = lost
  }

  /** How many were lost or skipped since the last call. */
  takeLost(): number {
    const lost = this.#lost
    this.#lost = 0
    return lost
  }
}
