import type { DeadLetter } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import { timeOrderedId } from '../../core/causality/ids.ts'
import { splitKeys } from '../../runtime/events/payload.ts'

/** Dead letters that are kept at most; then the oldest one is dropped. */
export const DEAD_LETTERS_MAX = 1000

/** A delivery that failed for good, with all that its replay needs. */
export interface StoredLetter<Event> {
  readonly id: string
  readonly event: Event
  /** The consumer that it is replayed to. */
  readonly group: string
  readonly subscriber: string
  readonly error: string
  readonly attempts: number
  /** The report of the last death, when threads died of the delivery. */
  readonly blackBox: BlackBox | null
  readonly atMs: number
}

interface LetterEvent {
  readonly id: string
  readonly event: string
  readonly payloadKeys: string
  readonly requestId: string | null
}

/** The dead-letter store of the in-process bus. */
export class DeadLetters<Event extends LetterEvent> {
  readonly #letters = new Map<string, StoredLetter<Event>>()

  /** @returns the letter that was dropped for it, if any */
  add(letter: Omit<StoredLetter<Event>, 'id' | 'atMs'>): StoredLetter<Event> | undefined {
    const id = `dl_${timeOrderedId()}`
    this.#letters.set(id, { ...letter, id, atMs: Date.now() })
    if (this.#letters.size <= DEAD_LETTERS_MAX) return undefined
    const oldest = this.#letters.values().next().value!
    this.#letters.delete(oldest.id)
    return oldest
  }

  /** Oldest first, without payload values. */
  list(): DeadLetter[] {
    return [...this.#letters.values()].map((letter) => ({
      id: letter.id,
      event: letter.event.event,
      event_id: letter.event.id,
      subscriber: letter.subscriber,
      error: letter.error,
      attempts: letter.attempts,
      ...(letter.blackBox === null ? {} : { black_box: { ...letter.blackBox, steps: [] } }),
      payload_keys: splitKeys(letter.event.payloadKeys),
      timestamp: new Date(letter.atMs).toISOString(),
      request_id: letter.event.requestId,
    }))
  }

  get(id: string): StoredLetter<Event> | undefined {
    return this.#letters.get(id)
  }

  delete(id: string): boolean {
    return this.#letters.delete(id)
  }
}
