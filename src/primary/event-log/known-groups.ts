import { nextTurn } from '../../core/schedule/clock.ts'
import type { GroupWatcher } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { Settler } from './settler.ts'
import type { SqlLog, StoredRow } from './sql-log.ts'

/** How long events are kept for a group that no process has, milliseconds: seven days. */
export const GROUP_KEPT_MS = 604_800_000
/** How often it is written that the groups are here, milliseconds. */
const SEEN_EVERY_MS = 3_600_000
/** How often it is looked which groups are known: on a file, and where other processes have groups, too; milliseconds. */
const FILE_MS = 30_000
const SERVER_MS = 2000
/** The same until it is known what has waited for the groups of this process. */
const FIRST_LOOK_MS = 100
/** What waits for groups that are not here, at most, as a share of EVENT_BUS_MAX_STORED: publishers need the rest. */
const WAITING_SHARE = 0.5
/** How often it is counted what waits for groups that no process has, milliseconds. */
const COUNT_MS = 60_000
/** How often it is told that events wait for a group, milliseconds. */
const TOLD_EVERY_MS = 60_000
/** An event waits for so many groups that are not here, those that were here last: each takes a row for each event. */
export const ABSENT_MAX = 64

const NONE: readonly string[] = []

export interface KnownGroupsOptions {
  hub: Hub
  log: SqlLog
  settler: Settler
  /** EVENT_BUS_MAX_STORED. */
  maxStored: number
  /** A group is here for which events may wait. */
  onReturned: (event: string, group: string) => void
  /** Nothing waits for a group any more. */
  onForgotten: (event: string, group: string) => void
  report: (message: string) => void
}

/** An event's name and one of its groups; neither has such a character. */
const idOf = (event: string, group: string): string => `${event}\0${group}`
const placeOf = (id: string): [event: string, group: string] => id.split('\0') as [string, string]

/**
 * The groups that subscribe to events of the log, or have done so in the last days. A stored event waits for each of them, also while no plugin
 * of this process has it: because it did not boot, or its code is faulty at present.
 */
export class KnownGroups implements GroupWatcher {
  readonly #options: KnownGroupsOptions
  /** When a process last had each, milliseconds since the epoch. */
  readonly #seenMs = new Map<string, number>()
  /** Groups that are here, and have been since their plugins booted. */
  readonly #here = new Set<string>()
  /** Events of which was told that they have too many groups. */
  readonly #crowded = new Set<string>()
  /** Event → its known groups that are not here. Null: to be found again. */
  #absent: ReadonlyMap<string, readonly string[]> | null = null
  /** Events that wait for each group that is not here. */
  readonly #waiting = new Map<string, number>()
  /** Null until the log is open and all subscribers are there. */
  #writtenMs: number | null = null
  /** How far the clock was ahead of the steady one when the groups were read last. */
  #aheadMs: number | null = null
  #hasNew = false
  #hasFound = false
  #toldMs = Number.NEGATIVE_INFINITY
  #lookedMs = Number.NEGATIVE_INFINITY
  #countedMs = Number.NEGATIVE_INFINITY

  constructor(options: KnownGroupsOptions) {
    this.#options = options
  }

  /** True where another process may have them. */
  get isShared(): boolean {
    return this.#options.log.isShared
  }

  isKnown(event: string, group: string): boolean {
    const id = idOf(event, group)
    return this.#seenMs.has(id) || this.#here.has(id)
  }

  /** Known groups of an event that are not here. */
  absentOf(event: string): readonly string[] {
    this.#absent ??= this.#findAbsent()
    return this.#absent.size === 0 ? NONE : (this.#absent.get(event) ?? NONE)
  }

  /** The groups that one event waits for and that are not here. @param stored as it was read from the log; null: it was just stored */
  waitedFor(event: string, stored: StoredRow | null): readonly string[] {
    if (stored?.left == null) return this.absentOf(event)
    return stored.left.flatMap(({ group }) => (this.isHere(event, group) ? [] : [group]))
  }

  /** True when the group takes events here. */
  isHere(event: string, group: string): boolean {
    return this.#options.hub.hasConsumer(event, group)
  }

  #findAbsent(): ReadonlyMap<string, readonly string[]> {
    const all = new Map<string, string[]>()
    for (const id of this.#seenMs.keys()) {
      const [event, group] = placeOf(id)
      if (this.isHere(event, group)) continue
      const groups = all.get(event)
      if (groups === undefined) all.set(event, [group])
      else groups.push(group)
    }
    return new Map([...all].map(([event, groups]) => [event, this.#lastOf(event, groups)]))
  }

  #lastOf(event: string, groups: readonly string[]): readonly string[] {
    if (groups.length <= ABSENT_MAX) return groups
    if (!this.#crowded.has(event)) {
      this.#crowded.add(event)
      this.#options.report(
        `${groups.length} groups of ${event} are not here: its events wait for the ${ABSENT_MAX} that were here last, and for no others`,
      )
    }
    const seenMs = (group: string): number => this.#seenMs.get(idOf(event, group)) ?? 0
    return [...groups].sort((a, b) => seenMs(b) - seenMs(a)).slice(0, ABSENT_MAX)
  }

  // ── groups that come and go ───────────────────────────────────────────────

  joined(event: string, group: string): void {
    this.#absent = null
    const id = idOf(event, group)
    if (this.#here.has(id)) return
    this.#here.add(id)
    if (this.#writtenMs !== null) this.#write(id, this.#options.log.clock.nowMs())
    this.#waiting.delete(id)
    if (this.#seenMs.has(id)) this.#options.onReturned(event, group)
  }

  left(event: string, group: string, isForGood: boolean): void {
    this.#absent = null
    const id = idOf(event, group)
    this.#here.delete(id)
    // Before all are there, a plugin that fails takes back what it has begun.
    if (isForGood && this.#writtenMs !== null && this.#seenMs.delete(id))
      this.#options.settler.settle('groups', { event, group, seenMs: null })
  }

  /** An event waits in the log for a group that is not here. */
  waits(event: string, group: string): void {
    const id = idOf(event, group)
    if (!this.#seenMs.has(id)) this.#write(id, this.#options.log.clock.nowMs())
    // It has come back meanwhile.
    if (this.isHere(event, group)) return this.#options.onReturned(event, group)
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1)
    this.#hasNew = true
  }

  /** Events that wait, once for each group. */
  get waiting(): number {
    let waiting = 0
    for (const count of this.#waiting.values()) waiting += count
    return waiting
  }

  /** Those that are not here, with what waits for them. */
  get #absentGroups(): { event: string; group: string; waiting: number; seenMs: number }[] {
    const found: { event: string; group: string; waiting: number; seenMs: number }[] = []
    for (const [id, seenMs] of this.#seenMs) {
      const [event, group] = placeOf(id)
      if (!this.isHere(event, group)) found.push({ event, group, waiting: this.#waiting.get(id) ?? 0, seenMs })
    }
    return found
  }

  // ── as they are stored ────────────────────────────────────────────────────

  /** All subscribers are there: writes who they are. @returns whether one of them was not known */
  begin(nowMs: number): boolean {
    if (this.#writtenMs !== null) return false
    const hasUnknown = [...this.#here].some((id) => !this.#seenMs.has(id))
    // While no process was there, none could have them.
    const downMs = nowMs - Math.max(0, ...this.#seenMs.values())
    if (downMs > SEEN_EVERY_MS)
      for (const { event, group, seenMs } of this.#absentGroups) this.#write(idOf(event, group), seenMs + downMs)
    this.#writeAll(nowMs)
    return hasUnknown
  }

  #writeAll(nowMs: number): void {
    this.#writtenMs = nowMs
    for (const id of this.#here) this.#write(id, nowMs)
  }

  #write(id: string, seenMs: number): void {
    const [event, group] = placeOf(id)
    this.#seenMs.set(id, seenMs)
    this.#absent = null
    this.#options.settler.settle('groups', { event, group, seenMs })
  }

  /** Reads what is stored: other processes have groups, too. @returns those that are to be forgotten, with what waits for them */
  async learn(): Promise<{ event: string; group: string }[]> {
    const { log } = this.#options
    const rows = await log.groups()
    const nowMs = log.clock.nowMs()
    const stored = new Map(rows.map(({ event, group, seenMs }) => [idOf(event, group), seenMs ?? 0]))
    for (const id of this.#seenMs.keys()) {
      if (stored.has(id) || this.#here.has(id) || this.#waiting.has(id)) continue
      this.#seenMs.delete(id)
      this.#options.onForgotten(...placeOf(id))
    }
    for (const [id, seenMs] of stored) this.#seenMs.set(id, seenMs)
    this.#absent = null
    // A clock that is set forward has not let the time pass.
    const aheadMs = nowMs - log.clock.steadyMs()
    const jumpMs = aheadMs - (this.#aheadMs ?? aheadMs)
    this.#aheadMs = aheadMs
    if (jumpMs > SEEN_EVERY_MS)
      for (const { event, group, seenMs } of this.#absentGroups) this.#write(idOf(event, group), seenMs + jumpMs)
    if (this.#writtenMs !== null && nowMs - this.#writtenMs >= SEEN_EVERY_MS) this.#writeAll(nowMs)
    return this.#absentGroups.filter(({ seenMs }) => nowMs - seenMs > GROUP_KEPT_MS)
  }

  /** Keeps the known groups and what is stored of them the same, and forgets those that nobody has had for long. Looks once in a while. */
  async look(nowMs: number): Promise<void> {
    const { log, maxStored } = this.#options
    if (!log.memory.isOpen || nowMs - this.#lookedMs < this.#lookEveryMs) return
    this.#lookedMs = nowMs
    for (const { event, group } of await this.learn()) await this.#forget(event, group, 'has not been here for 7 days')
    await this.findReleased()
    const isFull = (): boolean => this.waiting > maxStored * WAITING_SHARE
    // Other processes take what is for their groups.
    if (this.isShared && (nowMs - this.#countedMs >= COUNT_MS || isFull())) {
      this.#countedMs = nowMs
      await this.#count()
    }
    if (!isFull()) return
    const nobodys = this.#absentGroups.filter(({ seenMs }) => !this.isShared || nowMs - seenMs > 2 * SEEN_EVERY_MS)
    const [most] = nobodys.sort((a, b) => b.waiting - a.waiting)
    if (most !== undefined) await this.#forget(most.event, most.group, 'is not here, and the event log is half full')
  }

  get #lookEveryMs(): number {
    if (!this.isShared) return FILE_MS
    return this.#hasFound ? SERVER_MS : FIRST_LOOK_MS
  }

  /** Other processes have released events that wait for groups of this one. */
  async findReleased(): Promise<void> {
    if (!this.isShared) return
    const names = new Set([...this.#here].map((id) => placeOf(id)[1]))
    for (const { event, group } of await this.#options.log.released([...names]))
      if (this.isHere(event, group)) this.#options.onReturned(event, group)
    this.#hasFound = true
  }

  /** True when it is known for which groups of this process released events wait: they are older than what belongs to no process. */
  get hasFound(): boolean {
    return this.#hasFound || !this.isShared
  }

  /** What waits for groups that are not here, where several processes have it. */
  async #count(): Promise<void> {
    const counts = this.#absentGroups.length === 0 ? [] : await this.#options.log.countReleased()
    this.#waiting.clear()
    for (const { event, group, count } of counts)
      if (!this.isHere(event, group)) this.#waiting.set(idOf(event, group), count)
    this.#hasNew = this.#waiting.size > 0
  }

  async #forget(event: string, group: string, reason: string): Promise<void> {
    const { log, settler, onForgotten, report } = this.#options
    await log.deleteGroup({ event, group })
    const id = idOf(event, group)
    this.#seenMs.delete(id)
    this.#waiting.delete(id)
    this.#absent = null
    onForgotten(event, group)
    await settler.written()
    let count = 0
    for (let forgotten = 1; forgotten > 0; count += forgotten) {
      forgotten = await log.deleteWaiting({ event, group })
      await nextTurn(log.clock)
    }
    report(`${group}, a subscriber of ${event}, ${reason}: ${count} stored events are forgotten for it`)
  }

  /** Says for whom events wait, when there are more than the last time. */
  tell(nowMs: number): void {
    if (!this.#hasNew || nowMs - this.#toldMs < TOLD_EVERY_MS) return
    this.#hasNew = false
    this.#toldMs = nowMs
    for (const [id, count] of this.#waiting) {
      const [event, group] = placeOf(id)
      const events = count === 1 ? '1 stored event waits' : `${count} stored events wait`
      this.#options.report(`${group} is not here: ${events} for it, ${event}`)
    }
  }
}
