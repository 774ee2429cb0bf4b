import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'

/** Letters of a page at most, and where nobody asks for less. */
export const DEAD_LETTERS_PAGE_MAX = 1000
/** What a page takes as JSON at most, but for its newest letter. */
export const DEAD_LETTERS_PAGE_BYTES = 4 * 1024 * 1024

/** Collects one page of the dead letters, from the newest to older ones. */
export class LetterPage {
  readonly #limit: number
  readonly #newestFirst: DeadLetter[] = []
  #bytes = 0

  constructor({ limit = DEAD_LETTERS_PAGE_MAX }: DeadLetterPage) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.#newestFirst.length >= this.#limit || this.#bytes >= DEAD_LETTERS_PAGE_BYTES
  }

  /** False when the letter belongs to the next page. */
  add(letter: DeadLetter): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(letter))
    const isTooLarge = this.#bytes + bytes > DEAD_LETTERS_PAGE_BYTES && this.#newestFirst.length > 0
    if (this.isFull || isTooLarge) return false
    this.#newestFirst.push(letter)
    this.#bytes += bytes
    return true
  }

  oldestFirst(): DeadLetter[] {
    return [...this.#newestFirst].reverse()
  }
}
