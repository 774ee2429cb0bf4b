import { HeddleError } from '../../core/errors/catalogue.ts'

/** The default of EVENT_BUS_MAX_NAMES. */
export const EVENT_NAMES_MAX = 1000

/** The names of the events that each plugin publishes, where a broker outside of the process takes them: each costs it a stream. */
export class EventNames {
  readonly #max: number
  readonly #names = new Map<string, Set<string>>()

  /** @param max EVENT_BUS_MAX_NAMES */
  constructor(max: number) {
    this.#max = max
  }

  /** @throws EVENT_NAMES_LIMIT */
  check(emitter: string, event: string): void {
    let names = this.#names.get(emitter)
    if (names === undefined) {
      names = new Set()
      this.#names.set(emitter, names)
    }
    if (names.has(event)) return
    if (names.size >= this.#max) throw tooManyNames(emitter, event, this.#max)
    names.add(event)
  }
}

export function tooManyNames(emitter: string, event: string, max: number): HeddleError {
  return new HeddleError(
    'EVENT_NAMES_LIMIT',
    `${emitter} has published ${max} different events, and ${event} is one more than EVENT_BUS_MAX_NAMES allows: put what differs into the payload`,
  )
}
