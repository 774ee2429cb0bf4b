// Counts the stored rows, for the limits of publishers and requests.
import type { Clock } from '../../core/schedule/clock.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { Reader } from './reader.ts'
import type { SqlStore } from './sql-store.ts'

/** On a file: number of rows up to which each look counts them, and the interval above it, milliseconds. No other process changes them. */
const COUNTED_OFTEN = 10_000
const RECOUNT_MS = 600_000
/** On a server: pause between counts as a multiple of their duration, for each process. */
const COUNT_REST = 20

export interface RowCountParts {
  store: SqlStore
  reader: Reader
  memory: StoreMemory
  clock: Clock
  /** Number of processes that share a server; null on a file. */
  members: () => number | null
}

export class RowCount {
  readonly #parts: RowCountParts
  /** Known number of rows. */
  #rows = 0
  /** Time of the next count, by the steady clock. */
  #countAtMs = 0

  constructor(parts: RowCountParts) {
    this.#parts = parts
  }

  get rows(): number {
    return this.#rows
  }

  /** @param rows negative for deleted rows */
  add(rows: number): void {
    this.#rows += rows
    this.tell()
  }

  /** Counts at the start, on a file. */
  async first(): Promise<void> {
    this.#rows = await this.#parts.store.count()
  }

  /** Counts at intervals: outcomes of commits may be unknown, and others store and delete rows. */
  async look(): Promise<void> {
    const { clock, store } = this.#parts
    const startMs = clock.steadyMs()
    if (startMs < this.#countAtMs) return
    this.#countAtMs = Number.POSITIVE_INFINITY
    try {
      this.#rows = await store.count()
    } finally {
      const nowMs = clock.steadyMs()
      this.#countAtMs = nowMs + this.#restMs(nowMs - startMs)
    }
    this.tell()
  }

  #restMs(tookMs: number): number {
    const members = this.#parts.members()
    // At each look.
    if (members === null) return this.#rows > COUNTED_OFTEN ? RECOUNT_MS : -tookMs
    return COUNT_REST * members * tookMs
  }

  /** Writes the count for the publishers. */
  tell(): void {
    const { memory, reader } = this.#parts
    memory.stored = Math.max(0, this.#rows)
    // Dead letters that block a key are never dropped, so they share the limit of the rows behind them.
    const { rows, keys } = reader.parked
    memory.parked = Math.max(rows, keys)
  }
}
