import type { Attributes } from '@opentelemetry/api'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { RingConsumer } from '../../transport/memory/spsc-ring.ts'
import { SHORT, SPAN_RING_BYTES } from '../encoding/span-writer.ts'
import { encodeResource } from './export-request.ts'
import { SpanMemory } from './span-memory.ts'
import type { QueuedSpan } from './span-queue.ts'

/** A ring that holds more than this drops its oldest spans, because its thread would soon drop its newest ones; and so much is left then. Bytes. */
const HIGH_WATER_BYTES = SPAN_RING_BYTES / 2
const LOW_WATER_BYTES = SPAN_RING_BYTES / 4
/** Frames that are dropped at a time. */
const SKIPPED_FRAMES = 64

/** The exporting thread's end of one thread's ring. */
export class SpanSource {
  readonly resource: Resource
  /** The same, encoded. */
  readonly resourceFields: Uint8Array
  readonly memory: SharedArrayBuffer
  readonly #ring: RingConsumer
  readonly #memory = new SpanMemory()
  /** The count of lost spans that its thread reported last; -1 before the first report. */
  #lost = -1
  #newlyLost = 0

  constructor(ring: SharedArrayBuffer, attributes: Attributes) {
    this.memory = ring
    this.#ring = new RingConsumer(ring)
    this.resource = resourceFromAttributes(attributes)
    this.resourceFields = encodeResource(attributes)
  }

  /** Passes on the oldest spans, at most `max`. @returns how many */
  fetch(max: number, take: (span: QueuedSpan<SpanSource>) => void): number {
    const ring = this.#ring
    return ring.drain((kind, lost, at, length) => {
      this.#note(lost)
      const { piece, from } = this.#memory.take(length)
      ring.bytes.copy(piece.memory, from, at, at + length)
      const to = from + length
      const isShort = kind === SHORT
      if (kind < 0) return take({ piece, from, to, isShort, scope: null, source: this })
      const spanFrom = from + kind
      take({ piece, from: spanFrom, to, isShort, scope: piece.memory.subarray(from, spanFrom), source: this })
    }, max)
  }

  get isOverfull(): boolean {
    return this.#ring.usedBytes > HIGH_WATER_BYTES
  }

  /** Drops the oldest spans until there is room again. */
  makeRoom(): void {
    const skip = (_kind: number, lost: number): void => this.#note(lost)
    while (this.#ring.usedBytes > LOW_WATER_BYTES) this.#newlyLost += this.#ring.drain(skip, SKIPPED_FRAMES)
  }

  #note(lost: number): void {
    // An exporting thread that was restarted does not know what was reported before.
    if (this.#lost >= 0) this.#newlyLost += lost - this.#lost
    this.#lost = lost
  }

  /** How many spans were lost here since the last call. */
  takeLost(): number {
    const lost = this.#newlyLost
    this.#newlyLost = 0
    return lost
  }
}
