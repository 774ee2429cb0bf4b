// Which events are taken back.
import type { CancelTarget } from '../../contracts/events.ts'
import { chainOf, isOfTree, type Lineage } from '../../core/causality/ancestors.ts'

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

/** A dead letter of the event is replayed. Releases that do not know it find no event of this name. */
export interface Revival {
  readonly event: ''
  readonly revived: Revived
}

/** An event, and those above it. */
export interface Revived extends Lineage {
  readonly id: string
}

export const revivalOf = ({ id, parentId, ancestors }: Revived): Revival => ({
  event: '',
  revived: { id, parentId, ancestors },
})

export const isRevival = (note: CancelTarget | Revival): note is Revival =>
  typeof note === 'object' && 'revived' in note

/** What a tree has published since its cancel is taken back: not what was replayed since. */
export const lateOf = (what: { id: string; causedToo: true }): CancelTarget => Object.assign({ isLate: true }, what)

const isLate = (what: object): boolean => 'isLate' in what

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
  /** Events replayed since, by id: they and what they cause are not of the trees that were taken back before. */
  readonly #revived = new Map<string, Revived>()

  get isEmpty(): boolean {
    return this.#until.size === 0 && this.#trees.size === 0
  }

  /** @param heardMs when this process heard of it, by the steady clock; of a tree the end of its time. @returns false if it was known */
  add(what: CancelTarget, until: number, heardMs = Number.POSITIVE_INFINITY): boolean {
    if (isTree(what)) {
      if (!isLate(what))
        for (const [id, revived] of this.#revived) if (isOfTree(what.id, revived)) this.#revived.delete(id)
      return addUntil(this.#trees, what.id, { until, heardMs })
    }
    return addUntil(this.#until, typeof what === 'string' ? what : nameOf(what.event, what.key, what.unique), {
      until,
      heardMs,
    })
  }

  /** A dead letter of the event is replayed, after the cancels so far. */
  revive({ id, parentId, ancestors }: Revived): void {
    addTo(this.#revived, id, { id, parentId, ancestors })
  }

  /** True for an event of a tree that was taken back, and was not replayed since. */
  hasTree(event: Revived): boolean {
    for (const id of chainOf(event)) {
      if (this.#revived.has(id)) return false
      if (this.#trees.has(id)) return true
    }
    return false
  }

  /** True for an event of the tree that was replayed since it was taken back, or caused by one. */
  isRevived(event: Revived, tree: string): boolean {
    if (this.#revived.size === 0) return false
    const chain = chainOf(event)
    const revived = chain.findIndex((id) => this.#revived.has(id))
    const above = chain.indexOf(tree)
    return revived >= 0 && (above < 0 || revived <= above)
  }

  /** @param at row of the event, or time of its entry @param readMs when it was read, by the steady clock: what is there after a cancel is not meant */
  has(meant: Meant, at: number, readMs = Number.NEGATIVE_INFINITY): boolean {
    const isOver = (cancel: Until | undefined): boolean =>
      cancel === undefined || at > cancel.until || readMs > cancel.heardMs
    if (this.#trees.size > 0)
      for (const each of chainOf(meant)) {
        if (this.#revived.has(each)) break
        if (!isOver(this.#trees.get(each))) return true
      }
    if (this.#until.size === 0) return false
    const { id, event, key, unique } = meant
    const isUntil = (name: string): boolean => !isOver(this.#until.get(name))
    const keys = key === null ? [undefined] : [undefined, key]
    const names = unique === null ? [undefined] : [undefined, unique.name]
    return isUntil(id) || keys.some((each) => names.some((name) => isUntil(nameOf(event, each, name))))
  }
}

function addUntil(cancels: Map<string, Until>, name: string, cancel: Until): boolean {
  const known = cancels.get(name)
  if (known !== undefined && known.until >= cancel.until && known.heardMs >= cancel.heardMs) return false
  addTo(cancels, name, cancel)
  return true
}

function addTo<T>(notes: Map<string, T>, name: string, note: T): void {
  // The newest is the last.
  notes.delete(name)
  notes.set(name, note)
  if (notes.size > NOTES_MAX) notes.delete(notes.keys().next().value!)
}

const nameOf = (event: string, key?: string, unique = ''): string =>
  key === undefined ? `${event}\0\0${unique}` : `${event}\0${key.length} ${key}\0${unique}`
