import { Fifo } from '../../core/collections/fifo.ts'
import type { EventRow } from '../../runtime/event-log/event-rows.ts'

/** An event that so many processes have died with is tried alone from then on. */
const SUSPICIOUS_DEATHS = 3

interface Suspect {
  seq: number
  key: string | null
}

/** Events that processes have died with, more than once or twice: they are tried one at a time, and what has the key of one waits behind it. */
export class Suspects {
  readonly #queue = new Fifo<Suspect>()
  /** The one that is tried; null: none. */
  #tried: Suspect | null = null
  /** Key of a suspect → positions that wait behind it, in their order. */
  readonly #behind = new Map<string, number[]>()
  /** Up to where the log had events each time that a process ended without order. */
  uncleanEnds: readonly number[] = []

  /**
   * A process has died too often while it was there: perhaps of it.
   * @param areDeathsKnown it is known at which deaths of this machine's processes it was in flight: of those of others nobody here knows more
   */
  isSuspicious({ seq, recovered = 0 }: EventRow, areDeathsKnown: boolean): boolean {
    if (recovered >= SUSPICIOUS_DEATHS) return true
    if (areDeathsKnown) return false
    let deaths = 0
    for (const last of this.uncleanEnds) if (Number(seq) <= last) deaths++
    return deaths >= SUSPICIOUS_DEATHS
  }

  /** Position of the one that is tried; 0: none. */
  get tried(): number {
    return this.#tried?.seq ?? 0
  }

  /** Events that wait here, without the one that is tried. */
  get size(): number {
    let behind = 0
    for (const { length } of this.#behind.values()) behind += length
    return this.#queue.size + behind
  }

  add(seq: number, key: string | null): void {
    this.#queue.push({ seq, key })
    if (key !== null) this.#behind.set(key, [])
  }

  /** True when a suspect of this key has not ended. */
  holds(key: string | null): boolean {
    return key !== null && this.#behind.has(key)
  }

  /** Keeps an event until the suspect of its key has ended. */
  keep(seq: number, key: string | null): void {
    this.#behind.get(key!)!.push(seq)
  }

  has(seq: number): boolean {
    if (seq === this.tried || this.#queue.find((each) => each.seq === seq) !== undefined) return true
    return [...this.#behind.values()].some((positions) => positions.includes(seq))
  }

  /** The one that was tried has ended. @returns the positions that have waited behind it, in their order */
  ended(): readonly number[] {
    const key = this.#tried?.key ?? null
    this.#tried = null
    if (key === null) return []
    const behind = this.#behind.get(key) ?? []
    this.#behind.delete(key)
    return behind
  }

  /** The one that was to be tried could not be read: it is the next again. */
  putBack(): void {
    if (this.#tried !== null) this.#queue.unshift(this.#tried)
    this.#tried = null
  }

  /** The next one is tried. @returns its position; 0: there is none */
  next(): number {
    this.#tried = this.#queue.shift() ?? null
    return this.tried
  }
}
