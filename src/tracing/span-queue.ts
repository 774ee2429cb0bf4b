/** An ended span that waits for its export, and whose thread made it. */
export interface QueuedSpan<Source> {
  /** As `encodeSpan` has put it. */
  readonly text: string
  readonly source: Source
}

/** Spans that wait. When it is full the oldest give way: what has just happened is what people look for. */
export class SpanQueue<Source> {
  readonly #slots: (QueuedSpan<Source> | undefined)[]
  #from = 0
  #size = 0
  /** Spans that gave way since this was last set to 0. */
  dropped = 0

  constructor(max: number) {
    this.#slots = new Array(max).fill(undefined)
  }

  get size(): number {
    return this.#size
  }

  push(text: string, source: Source): void {
    if (this.#size === this.#slots.length) {
      this.#take()
      this.dropped++
    }
    this.#slots[(this.#from + this.#size++) % this.#slots.length] = { text, source }
  }

  /** The oldest, `max` at most. */
  shift(max: number): QueuedSpan<Source>[] {
    const batch: QueuedSpan<Source>[] = []
    while (batch.length < max && this.#size > 0) batch.push(this.#take())
    return batch
  }

  #take(): QueuedSpan<Source> {
    const span = this.#slots[this.#from]!
    this.#slots[this.#from] = undefined
    this.#from = (this.#from + 1) % this.#slots.length
    this.#size--
    return span
  }
}
