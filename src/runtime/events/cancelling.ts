// Which events are taken back.
import type { CancelTarget } from '../../contracts/events.ts'
import { isOfTree, type Lineage } from '../../core/causality/ancestors.ts'

/** What another process has had of events that were taken back. */
export interface CancelAnswer {
  /** Number of the cancel. */
  n: number
  /** Rows in hand that are no longer waiting. */
  taken: number
  /** Deliveries whose handlers were told. */
  running: number
}

export interface Meant extends Lineage {
  readonly id: string
  readonly event: string
  readonly key: string | null
  readonly unique: { readonly name: string } | null
}

export function isMeant(what: CancelTarget, meant: Meant): boolean {
  if (typeof what === 'string') return meant.id === what
  if ('id' in what) return isOfTree(what.id, meant)
  const { event, key, unique } = meant
  return (
    event === what.event &&
    (what.key === undefined || key === what.key) &&
    (what.unique === undefined || unique?.name === what.unique)
  )
}

/** True if it takes back what will be published, too. */
export const isTree = (what: CancelTarget): what is { id: string; causedToo: true } =>
  typeof what === 'object' && 'id' in what

/** Why what was taken back has not been handled. */
export const CANCELLED = 'The event was cancelled'

/** Time for which a cancel is noted, milliseconds. So long nothing of a tree begins. */
export const CANCEL_KEPT_MS = 600_000

/** Cancels that are remembered. */
const NOTES_MAX = 10_000

interface Until {
  readonly until: number
  readonly heardMs: number
}

/** What was taken back, and how far: up to a row of the event store, or up to a time of the entries of streams. */
export class Cancels {
  /** By id, by event, or by event and key. Names have no NUL. */
  readonly #until = new Map<string, Until>()
  /** Of events with all that they have caused, by id. */
  readonly #trees = new Map<string, Until>()

  get isEmpty(): boolean {
    return this.#until.size === 0 && this.#trees.size === 0
  }

  /** @param heardMs when this process heard of it, by the steady clock; of a tree the end of its time. @returns false if it was known */
  add(what: CancelTarget, until: number, heardMs = Number.POSITIVE_INFINITY): boolean {
    if (isTree(what)) return addTo(this.#trees, what.id, { until, heardMs })
    return addTo(this.#until, typeof what === 'string' ? what : nameOf(what.event, what.key, what.unique), {
      until,
      heardMs,
    })
  }

  /** @param at row of the event, or time of its entry @param readMs when it was read, by the steady clock: what is there after a cancel is not meant */
  has(meant: Meant, at: number, readMs = Number.NEGATIVE_INFINITY): boolean {
    const isOver = (cancel: Until | undefined): boolean =>
      cancel === undefined || at > cancel.until || readMs > cancel.heardMs
    if (this.#trees.size > 0) {
      const { id, parentId, ancestors } = meant
      if ([id, parentId ?? '', ...ancestors.split(' ')].some((each) => !isOver(this.#trees.get(each)))) return true
    }
    if (this.#until.size === 0) return false
    const { id, event, key, unique } = meant
    const isUntil = (name: string): boolean => !isOver(this.#until.get(name))
    const keys = key === null ? [undefined] : [undefined, key]
    const names = unique === null ? [undefined] : [undefined, unique.name]
    return isUntil(id) || keys.some((each) => names.some((name) => isUntil(nameOf(event, each, name))))
  }
}

function addTo(cancels: Map<string, Until>, name: string, cancel: Until): boolean {
  const known = cancels.get(name)
  if (known !== undefined && known.until >= cancel.until && known.heardMs >= cancel.heardMs) return false
  // The newest is the last.
  cancels.delete(name)
  cancels.set(name, cancel)
  if (cancels.size > NOTES_MAX) for (const oldest of cancels.keys()) return cancels.delete(oldest)
  return true
}

const nameOf = (event: string, key?: string, unique = ''): string =>
  key === undefined ? `${event}\0\0${unique}` : `${event}\0${key.length} ${key}\0${unique}`
