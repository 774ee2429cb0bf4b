import { groupKey } from './stream-group.ts'

/** The hub takes so many events of one group, or about so many characters of payload: the rest stays in the stream. */
const FULL_AT = 1000
const FULL_AT_CHARS = 32 << 20
/** Of a group that handles few at a time so many wait at the hub: other processes may have places for the rest. */
const FULL_AT_WAITING = 64

interface GroupClaims {
  readonly stream: string
  readonly group: string
  /** Length of the payload by entry id. */
  readonly entries: Map<string, number>
  /** Ids of those that no thread has had. */
  readonly waiting: Set<string>
  chars: number
  isFull: boolean
}

/** The entries that are pending at the hub of this process: it finishes them or gives them back. */
export class ClaimedEntries {
  readonly #streamGroups = new Map<string, GroupClaims>()
  readonly #onFull: (stream: string, group: string, isFull: boolean) => void

  /** @param onFull told when the hub has as many entries of a group as it takes, and when half of them are done */
  constructor(onFull: (stream: string, group: string, isFull: boolean) => void) {
    this.#onFull = onFull
  }

  /** @param chars length of its payload @param isWaiting true when no thread has had it: see `begun` */
  add(stream: string, group: string, entryId: string, chars: number, isWaiting = false): void {
    const key = groupKey(stream, group)
    let claims = this.#streamGroups.get(key)
    if (claims === undefined) {
      claims = { stream, group, entries: new Map(), waiting: new Set(), chars: 0, isFull: false }
      this.#streamGroups.set(key, claims)
    }
    claims.chars += chars - (claims.entries.get(entryId) ?? 0)
    claims.entries.set(entryId, chars)
    if (isWaiting) claims.waiting.add(entryId)
    this.#updateFull(claims)
  }

  /** A thread has the entry. */
  begun(stream: string, group: string, entryId: string): void {
    const claims = this.#streamGroups.get(groupKey(stream, group))
    if (claims?.waiting.delete(entryId)) this.#updateFull(claims)
  }

  delete(stream: string, group: string, entryId: string): void {
    const key = groupKey(stream, group)
    const claims = this.#streamGroups.get(key)
    const chars = claims?.entries.get(entryId)
    if (claims === undefined || chars === undefined) return
    claims.entries.delete(entryId)
    claims.waiting.delete(entryId)
    claims.chars -= chars
    if (claims.entries.size === 0) this.#streamGroups.delete(key)
    this.#updateFull(claims)
  }

  #updateFull(claims: GroupClaims): void {
    const { stream, group, entries, waiting, chars, isFull } = claims
    const isMuch = isFull
      ? entries.size > FULL_AT / 2 || chars > FULL_AT_CHARS / 2 || waiting.size > FULL_AT_WAITING / 2
      : entries.size >= FULL_AT || chars >= FULL_AT_CHARS || waiting.size >= FULL_AT_WAITING
    if (isMuch === isFull) return
    claims.isFull = isMuch
    this.#onFull(stream, group, isMuch)
  }

  has(stream: string, group: string, entryId: string): boolean {
    return this.#streamGroups.get(groupKey(stream, group))?.entries.has(entryId) === true
  }

  /** True when the hub has as many entries of the group as it takes. */
  isFull(stream: string, group: string): boolean {
    return this.#streamGroups.get(groupKey(stream, group))?.isFull === true
  }

  all(): { stream: string; group: string; ids: string[] }[] {
    return [...this.#streamGroups.values()].map(({ stream, group, entries }) => ({
      stream,
      group,
      ids: [...entries.keys()],
    }))
  }
}
