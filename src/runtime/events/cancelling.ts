// Which events are taken back.
import type { CancelFilter } from '../../contracts/events.ts'

/** What another process has had of events that were taken back. */
export interface CancelAnswer {
  /** Number of the cancel. */
  n: number
  /** Rows in hand that are no longer waiting. */
  taken: number
  /** Deliveries whose handlers were told. */
  running: number
}

export interface Meant {
  readonly id: string
  readonly event: string
  readonly key: string | null
  readonly unique: { readonly name: string } | null
}

export function isMeant(what: CancelFilter, { id, event, key, unique }: Meant): boolean {
  if (typeof what === 'string') return id === what
  return (
    event === what.event &&
    (what.key === undefined || key === what.key) &&
    (what.unique === undefined || unique?.name === what.unique)
  )
}

/** Cancels that are remembered. */
const NOTES_MAX = 10_000

/** What was taken back, and how far: up to a row of the event store, or up to a time of the entries of streams. */
export class Cancels {
  /** By id, by event, or by event and key. Names have no NUL. */
  readonly #until = new Map<string, { until: number; heardMs: number }>()

  /** @param heardMs when this process heard of it, by the steady clock. @returns false if it was known */
  add(what: CancelFilter, until: number, heardMs = Number.POSITIVE_INFINITY): boolean {
    const name = typeof what === 'string' ? what : nameOf(what.event, what.key, what.unique)
    if ((this.#until.get(name)?.until ?? -1) >= until) return false
    // The newest is the last.
    this.#until.delete(name)
    this.#until.set(name, { until, heardMs })
    if (this.#until.size > NOTES_MAX) for (const oldest of this.#until.keys()) return this.#until.delete(oldest)
    return true
  }

  /** @param at row of the event, or time of its entry @param readMs when it was read, by the steady clock: what is there after a cancel is not meant */
  has({ id, event, key, unique }: Meant, at: number, readMs = Number.NEGATIVE_INFINITY): boolean {
    if (this.#until.size === 0) return false
    const isUntil = (name: string): boolean => {
      const cancel = this.#until.get(name)
      return cancel !== undefined && at <= cancel.until && readMs <= cancel.heardMs
    }
    const keys = key === null ? [undefined] : [undefined, key]
    const names = unique === null ? [undefined] : [undefined, unique.name]
    return isUntil(id) || keys.some((each) => names.some((name) => isUntil(nameOf(event, each, name))))
  }
}

const nameOf = (event: string, key?: string, unique = ''): string =>
  key === undefined ? `${event}\0\0${unique}` : `${event}\0${key.length} ${key}\0${unique}`
