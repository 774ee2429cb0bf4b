import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import { isWanted } from './letter-filter.ts'
import { LetterPage } from './letter-page.ts'

/** Replayed letters that are kept; then the oldest are forgotten. */
export const REPLAYS_MAX = 1000

/** What has become of the letters of the hub's memory that were replayed. */
export class Replays {
  readonly #clock: Clock
  readonly #letters: DeadLetter[] = []
  /** Those whose events are under way. */
  readonly #running = new Map<object, DeadLetter>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.#running.size === 0
  }

  /** @param event the object that is delivered */
  begun(letter: DeadLetter, event: object): void {
    const replayed: DeadLetter = {
      ...letter,
      replay: { at: new Date(this.#clock.nowMs()).toISOString(), outcome: 'running' },
    }
    this.#running.set(event, replayed)
    if (this.#letters.push(replayed) > REPLAYS_MAX) this.#letters.shift()
  }

  /** @param error why it has failed again; null when it was handled. @param letter id of the new letter, if there is one */
  ended(event: object, error: string | null, letter: string | null): void {
    const replayed = this.#running.get(event)
    if (replayed === undefined) return
    this.#running.delete(event)
    const { at } = replayed.replay!
    replayed.replay =
      error === null
        ? { at, outcome: 'done' }
        : { at, outcome: 'failed', error, ...(letter === null ? {} : { letter }) }
  }

  /** Oldest first. */
  list(wanted: DeadLetterPage): DeadLetter[] {
    const page = new LetterPage(wanted)
    for (const letter of this.#letters.toSorted((a, b) => (a.id < b.id ? 1 : -1))) {
      if (wanted.before !== undefined && letter.id >= wanted.before) continue
      if (isWanted(letter, wanted) && !page.add(letter)) break
    }
    return page.oldestFirst()
  }
}
