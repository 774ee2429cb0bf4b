import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { DeliveryRow } from './log-reader.ts'

/** A retry that is due later than this leaves the hub until then, milliseconds. */
const RETRY_LEAVES_MS = 1000

/** Stored events of which deliveries wait in the log, and not in the hub, for their next attempt. */
export class AwayRetries {
  readonly #positions = new Set<number>()
  readonly #onAway: (dueMs: number, seq: number) => void

  /** @param onAway told when deliveries of an event wait in the log until then */
  constructor(onAway: (dueMs: number, seq: number) => void) {
    this.#onAway = onAway
  }

  get size(): number {
    return this.#positions.size
  }

  has(seq: number): boolean {
    return this.#positions.has(seq)
  }

  /** Its deliveries are here again. */
  delete(seq: number): void {
    this.#positions.delete(seq)
  }

  /** @returns false when it is due so soon that it stays */
  add(seq: number, dueMs: number): boolean {
    if (dueMs - Date.now() < RETRY_LEAVES_MS) return false
    this.#positions.add(seq)
    this.#onAway(dueMs, seq)
    return true
  }

  /** An event waits in the log when the next attempts of all its deliveries are due later, and nothing waits behind it. */
  keeps({ seq, key }: EventFrame, left: readonly DeliveryRow[] | null): boolean {
    if (key !== null || left === null || left.length === 0) return false
    if (left.some(({ deaths }) => Number(deaths) > 0)) return false
    return this.add(seq, Math.min(...left.map(({ due_ms }) => Number(due_ms))))
  }
}
