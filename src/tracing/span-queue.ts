/** An ended span that waits for its export, and whose thread made it. */
export interface QueuedSpan<Source> {
  /** As `encodeSpan` has put it. */
  readonly text: string
  readonly source: Source
}

/** Their texts together at most, characters: of ordinary spans about 100,000. */
const QUEUE_MAX_LENGTH = 64 << 20
const FIRST_SLOTS = 2048

/** Spans that wait. When it is full, in number or in size, the oldest give way: what has just happened is what people look for. */
export class SpanQueue<Source> {
  readonly #max: number
  #slots: (QueuedSpan<Source> | undefined)[]
  #from = 0
  #size = 0
  #length = 0
  /** Spans that gave way since this was last set to 0. */
  dropped = 0

  constructor(max: number) {
    this.#max = max
    this.#slots = new Array(Math.min(max, FIRST_SLOTS)).fill(undefined)
  }

  get size(): number {
    return this.#size
  }

  push(text: string, source: Source): void {
    while (this.#size > 0 && (this.#size === this.#max || this.#length + text.length > QUEUE_MAX_LENGTH)) {
      this.#take()
      this.dropped++
    }
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[(this.#from + this.#size++) % this.#slots.length] = { text, source }
    this.#length += text.length
  }

  /** The oldest, `max` at most, and of about `maxLength` characters together. */
  shift(max: number, maxLength: number): QueuedSpan<Source>[] {
    const batch: QueuedSpan<Source>[] = []
    for (let length = 0; batch.length < max && this.#size > 0; ) {
      length += this.#slots[this.#from]!.text.length
      if (length > maxLength && batch.length > 0) break
      batch.push(this.#take())
    }
    return batch
  }

  /** A large queue is made as large as it is needed. */
  #grow(): void {
    const spans = this.shift(this.#size, Number.POSITIVE_INFINITY)
    this.#slots = new Array(Math.min(this.#max, this.#slots.length * 2)).fill(undefined)
    this.#from = 0
    for (const { text, source } of spans) this.push(text, source)
  }

  #take(): QueuedSpan<Source> {
    const span = this.#slots[this.#from]!
    this.#slots[this.#from] = undefined
    this.#from = (this.#from + 1) % this.#slots.length
    this.#size--
    this.#length -= span.text.length
    return span
  }
}
