// Keeps the table of groups in step with the subscribers of the hub.
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { GroupKind } from '../../transport/store-changes.ts'
import type { GroupWatcher } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Group } from './cursor.ts'
import type { Reader } from './reader.ts'
import type { NewGroup } from './server-store.ts'
import type { Settler } from './settler.ts'
import type { SqlStore } from './sql-store.ts'

/** Time for which rows are kept for a group without a process, milliseconds: seven days. */
export const GROUP_KEPT_MS = 604_800_000
/** Interval at which `seen_ms` of present groups is written, milliseconds. */
const SEEN_EVERY_MS = 3_600_000
/** Interval of the checks of absent groups, milliseconds. */
const LOOK_MS = 30_000
/** Shortest time between two warnings about absent groups, milliseconds. */
const TOLD_EVERY_MS = 60_000
/** Share of EVENT_BUS_MAX_STORED for rows of absent groups: publishers need the rest. */
const ABSENT_SHARE = 0.5
/** Name of the group shared by all temporary subscribers of an event. */
const TEMPORARY = ''

/**
 * ```
 *   joining ──► here ──► absent        its last subscriber is gone: rows wait for it, seven days at most
 *      ▲         ▲          │ ▲
 *      │         └──────────┤ ▼
 *      └────────────────────┴ elsewhere
 * ```
 * An `absent` or `elsewhere` one is gone with its row: after too long, or deleted by another process. One that is `here` is gone when it unsubscribes; a
 * broadcast or temporary one when its last subscriber has left. Stored ones begin `absent` or `elsewhere`. On SQLite a new one is `here`, and an absent
 * one is `here` again; on a server both are `joining` until they are stored, and an `absent` one is `elsewhere` from the next look on while another
 * process has it.
 */
interface Entry extends Omit<Group, 'id'> {
  id: number
  readonly kind: GroupKind
  state: 'joining' | 'here' | 'absent' | 'elsewhere'
  /** Time a process last had it, milliseconds since the epoch. */
  seenMs: number
}

export interface GroupsParts {
  hub: Hub
  store: SqlStore
  reader: Reader
  settler: Settler
  clock: { nowMs(): number; steadyMs(): number }
  memory: Pick<StoreMemory, 'mostGroups'>
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  /** Called when the rows of a group are to be read. */
  /** Tells other processes that a subscriber is to get nothing for some time. */
  heldBack: (event: string, group: string, ms: number) => void
  onHere: (group: Group) => void
  /** Called for groups not stored yet. */
  onNew: () => void
  /** On a server: stores groups of this process. Resolves with their numbers, with no time limit; null: this process ends. */
  join?: (groups: readonly NewGroup[]) => Promise<number[] | null>
  /** Called when a group has no subscriber here any more. */
  onGone?: (group: Group) => void
  report: (message: string) => void
}

const isOwn = ({ state }: Entry): boolean => state === 'here' || state === 'joining'

const idOf = (event: string, name: string, kind: Group['kind']): string => `${event}\0${kind}\0${name}`

/** Writes the subscribed groups to `heddle_group`, and tells the reader which groups to read. */
export class Groups implements GroupWatcher {
  readonly #parts: GroupsParts
  readonly #entries = new Map<string, Entry>()
  readonly #byEvent = new Map<string, Entry[]>()
  /** On a server, by event: number of groups of other processes alone. */
  #ofOthers: ReadonlyMap<string, number> = new Map()
  #nextId = 1
  /** Until all subscribers of the boot are known, nothing is written. */
  #state: 'booting' | 'begun' = 'booting'
  #writtenMs = 0
  #lookedMs = 0
  #toldMs = Number.NEGATIVE_INFINITY
  /** Rows of absent groups at the last look. */
  #absentRows = 0
  #joining: Entry[] = []
  #joined: Promise<void> = Promise.resolve()

  constructor(parts: GroupsParts) {
    this.#parts = parts
  }

  /** Loads the groups of earlier processes, and again after a failed start. Their broadcasts and temporary subscribers ended with them. */
  async load(): Promise<void> {
    const stored = await this.#parts.store.groups()
    this.#ofOthers = await this.#parts.store.groupsOfOthers()
    for (const event of this.#ofOthers.keys()) this.#tell(event)
    const ids = new Set(stored.map(({ event, group, kind }) => idOf(event, group, kind)))
    for (const { id, event, group, kind, seenMs, isElsewhere } of stored) {
      this.#nextId = Math.max(this.#nextId, id + 1)
      const state = isElsewhere ? 'elsewhere' : 'absent'
      const known = this.#entries.get(idOf(event, group, kind))
      if (kind !== 'group') this.#parts.settler.group({ id, event, group, kind, seenMs: null })
      else if (known === undefined) this.#add({ id, event, name: group, kind, state, seenMs })
      else if (!isOwn(known)) Object.assign(known, { id, state, seenMs })
    }
    // Another process has forgotten them.
    for (const [id, entry] of this.#entries) if (!isOwn(entry) && !ids.has(id)) this.#forgetEntry(entry)
  }

  #add(entry: Entry): Entry {
    this.#entries.set(idOf(entry.event, entry.name, entry.kind), entry)
    const others = this.#byEvent.get(entry.event)
    if (others === undefined) this.#byEvent.set(entry.event, [entry])
    else others.push(entry)
    this.#tell(entry.event)
    return entry
  }

  /** Publishers count the groups of an event that could be too large for so many. */
  #tell(event: string): void {
    const { memory } = this.#parts
    memory.mostGroups = Math.max(memory.mostGroups, this.countOf(event))
  }

  #delete(entry: Entry): void {
    const { id, event, name, kind } = entry
    this.#forgetEntry(entry)
    this.#parts.settler.group({ id, event, group: name, kind, seenMs: null })
  }

  #forgetEntry(entry: Entry): void {
    const { event, name, kind } = entry
    this.#entries.delete(idOf(event, name, kind))
    const others = this.#byEvent.get(event)!.filter((each) => each !== entry)
    if (others.length === 0) this.#byEvent.delete(event)
    else this.#byEvent.set(event, others)
  }

  /** Returns the number of rows an event makes, including rows of absent groups and of other processes' broadcasts. */
  countOf(event: string): number {
    return (this.#byEvent.get(event)?.length ?? 0) + (this.#ofOthers.get(event) ?? 0)
  }

  /** Returns the id of a group or broadcast; undefined if there is none. */
  idOf(event: string, name: string): number | undefined {
    const entry = this.#entries.get(idOf(event, name, 'group')) ?? this.#entries.get(idOf(event, name, 'broadcast'))
    // Without an id it is not stored yet: a row for it would be nobody's.
    return entry?.id || undefined
  }

  /** False when its last subscriber has gone. */
  isHere({ event, name, kind }: Group): boolean {
    return this.#entries.get(idOf(event, name, kind))?.state === 'here'
  }

  isKnown(event: string, name: string): boolean {
    return this.#entries.has(idOf(event, name, 'group'))
  }

  // ── subscribers that come and go ──────────────────────────────────────────

  freed(event: string, group: string, share: string): void {
    const entry = this.#entries.get(idOf(event, group, 'group'))
    if (entry !== undefined) this.#parts.reader.mayGoOn(entry.id, share)
  }

  heldBack(event: string, group: string, ms: number): void {
    this.#parts.heldBack(event, group, ms)
  }

  /** @param isForGood it has unsubscribed: no rows are kept for it */
  left(event: string, name: string, isForGood: boolean): void {
    const entry = this.#entries.get(idOf(event, name, 'group'))
    if (!isForGood || this.#state === 'booting' || entry === undefined) return
    if (isOwn(entry)) this.#removeHere(entry)
    this.#delete(entry)
  }

  #removeHere(entry: Entry): void {
    this.#parts.reader.remove(entry)
    if (entry.state === 'here') this.#parts.onGone?.(entry)
  }

  changed(event: string): void {
    if (this.#state === 'begun') this.#sync(event)
  }

  /** Called when all subscribers of the boot are known. */
  begin(): void {
    this.#state = 'begun'
    const nowMs = this.#parts.clock.nowMs()
    this.#writtenMs = nowMs
    // Days without a process do not count.
    const downMs = nowMs - Math.max(0, ...[...this.#entries.values()].map(({ seenMs }) => seenMs))
    if (downMs > SEEN_EVERY_MS) for (const entry of this.#entries.values()) this.#seen(entry, entry.seenMs + downMs)
    for (const event of new Set([...this.#parts.hub.workloads()].map((consumer) => consumer.event))) this.#sync(event)
  }

  /** Compares the subscribers of an event with its groups. */
  #sync(event: string): void {
    const { hub, clock } = this.#parts
    const wanted = new Map<string, { name: string; kind: GroupKind }>()
    for (const { group, broadcast, isTemporary } of hub.consumersOf(event)) {
      const kind = isTemporary ? 'temporary' : broadcast ? 'broadcast' : 'group'
      const name = isTemporary ? TEMPORARY : group
      wanted.set(idOf(event, name, kind), { name, kind })
    }
    let isNew = false
    for (const [id, { name, kind }] of wanted) {
      let entry = this.#entries.get(id)
      if (entry !== undefined && isOwn(entry)) continue
      if (this.#parts.join !== undefined) {
        isNew = true
        this.#join(entry ?? this.#add({ id: 0, event, name, kind, state: 'joining', seenMs: 0 }))
        continue
      }
      if (entry === undefined) {
        isNew = true
        entry = { id: this.#nextId++, event, name, kind, state: 'here', seenMs: 0 }
        this.#add(entry)
      }
      entry.state = 'here'
      this.#seen(entry, clock.nowMs())
      this.#parts.onHere(entry)
    }
    if (isNew) this.#parts.onNew()
    for (const entry of [...(this.#byEvent.get(event) ?? [])]) {
      if (entry.state !== 'here' || wanted.has(idOf(event, entry.name, entry.kind))) continue
      this.#removeHere(entry)
      if (entry.kind === 'group') entry.state = 'absent'
      else this.#delete(entry)
    }
  }

  /** On a server: resolves when the present groups are stored. */
  get areJoined(): Promise<unknown> {
    return this.#joined
  }

  /** Stores all groups of one turn of the loop together. */
  #join(entry: Entry): void {
    entry.state = 'joining'
    entry.seenMs = this.#parts.clock.nowMs()
    if (this.#joining.push(entry) === 1) this.#joined = this.#joined.then(() => this.#storeJoining())
  }

  async #storeJoining(): Promise<void> {
    const entries = this.#joining
    this.#joining = []
    const ids = await this.#parts.join!(entries)
    if (ids === null) return
    for (const [n, entry] of entries.entries()) {
      entry.id = ids[n]!
      entry.state = 'here'
      const isWanted = this.#entries.get(idOf(entry.event, entry.name, entry.kind)) === entry
      if (isWanted) this.#parts.onHere(entry)
      else this.#parts.settler.group({ ...entry, group: entry.name, seenMs: null })
    }
    // Some may have left meanwhile.
    for (const event of new Set(entries.map((entry) => entry.event))) this.#sync(event)
  }

  #seen(entry: Entry, seenMs: number): void {
    const { id, event, name, kind } = entry
    entry.seenMs = seenMs
    this.#parts.settler.group({ id, event, group: name, kind, seenMs })
  }

  // ── absent groups ─────────────────────────────────────────────────────────

  /** Drops groups absent for too long, and warns about rows of absent groups. */
  async look(): Promise<void> {
    const { clock, maxStored, store, report } = this.#parts
    const nowMs = clock.nowMs()
    if (this.#state === 'booting' || clock.steadyMs() - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = clock.steadyMs()
    if (this.#parts.join !== undefined) await this.load()
    if (nowMs - this.#writtenMs >= SEEN_EVERY_MS) {
      this.#writtenMs = nowMs
      for (const entry of this.#entries.values()) if (entry.state === 'here') this.#seen(entry, nowMs)
    }
    const absent = [...this.#entries.values()].filter(({ state }) => state === 'absent')
    if (absent.length === 0) return
    const counts = await store.countOf(absent.map(({ id }) => id))
    const countOf = ({ id }: Entry): number => counts.get(id) ?? 0
    for (const entry of absent)
      if (nowMs - entry.seenMs > GROUP_KEPT_MS) this.#forget(entry, 'has not been here for 7 days', countOf(entry))
    const left = absent.filter(({ event, name, kind }) => this.#entries.has(idOf(event, name, kind)))
    const waiting = [...counts.values()].reduce((sum, count) => sum + count, 0)
    if (waiting > maxStored * ABSENT_SHARE) {
      const most = left.toSorted((a, b) => countOf(b) - countOf(a))[0]!
      this.#forget(most, 'is not here, and the event store is half full', countOf(most))
    }
    if (waiting <= this.#absentRows || clock.steadyMs() - this.#toldMs < TOLD_EVERY_MS) return
    this.#absentRows = waiting
    this.#toldMs = clock.steadyMs()
    for (const entry of left) {
      const count = countOf(entry)
      const events = count === 1 ? '1 stored event waits' : `${count} stored events wait`
      if (count > 0) report(`${entry.name} is not here: ${events} for it, ${entry.event}`)
    }
  }

  #forget(entry: Entry, reason: string, count: number): void {
    this.#delete(entry)
    this.#parts.report(
      `${entry.name}, a subscriber of ${entry.event}, ${reason}: ${count} stored events are forgotten for it`,
    )
  }
}
