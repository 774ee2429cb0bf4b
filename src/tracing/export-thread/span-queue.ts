import { type Piece, release } from './span-memory.ts'

/** An ended span that waits for its export, and the thread that made it. */
export interface QueuedSpan<Source> {
  /** The encoded span is its memory from `from` up to `to`. */
  readonly piece: Piece
  readonly from: number
  readonly to: number
  /** It is a short span, and still to be encoded. */
  readonly isShort: boolean
  /** The encoded scope; null: the runtime's own. */
  readonly scope: Uint8Array | null
  readonly source: Source
}

/** Most bytes of all spans together: about 200,000 ordinary spans. */
const QUEUE_MAX_BYTES = 64 << 20
const FIRST_SLOTS = 2048

/** Spans that wait. When the queue is full, in number or in size, the oldest are dropped: people look for what has just happened. */
export class SpanQueue<Source> {
  readonly #max: number
  #slots: (QueuedSpan<Source> | undefined)[]
  #from = 0
  #size = 0
  #bytes = 0
  /** Spans that were dropped since this was last set to 0. */
  dropped = 0

  constructor(max: number) {
    this.#max = max
    this.#slots = new Array(Math.min(max, FIRST_SLOTS)).fill(undefined)
  }

  get size(): number {
    return this.#size
  }

  /** How many more it takes before it drops one. */
  get room(): number {
    return this.#bytes < QUEUE_MAX_BYTES ? this.#max - this.#size : 0
  }

  /** Drops all spans. */
  clear(): void {
    while (this.#size > 0) {
      this.#drop()
    }
  }

  push(span: QueuedSpan<Source>): void {
    while (this.#size > 0 && (this.#size === this.#max || this.#bytes + span.to - span.from > QUEUE_MAX_BYTES)) {
      this.#drop()
    }
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[(this.#from + this.#size++) % this.#slots.length] = span
    this.#bytes += span.to - span.from
  }

  /** Takes the oldest spans, which are to be released when they are sent: at most `max` and about `maxBytes` together. */
  shift(max: number, maxBytes: number): QueuedSpan<Source>[] {
    const batch: QueuedSpan<Source>[] = []
    for (let bytes = 0; batch.length < max && this.#size > 0; ) {
      const { from, to } = this.#slots[this.#from]!
      bytes += to - from
      if (bytes > maxBytes && batch.length > 0) break
      batch.push(this.#take())
    }
    return batch
  }

  /** The memory of a large queue grows only as it is needed. */
  #grow(): void {
    const spans = this.shift(this.#size, Number.POSITIVE_INFINITY)
    this.#slots = new Array(Math.min(this.#max, this.#slots.length * 2)).fill(undefined)
    this.#from = 0
    for (const span of spans) this.push(span)
  }

  #drop(): void {
    release(this.#take())
    this.dropped++
  }

  #take(): QueuedSpan<Source> {
    const span = this.#slots[this.#from]!
    this.#slots[this.#from] = undefined
    this.#from = (this.#from + 1) % this.#slots.length
    this.#size--
    this.#bytes -= span.to - span.from
    return span
  }
}
