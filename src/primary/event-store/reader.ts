// Reads the deliveries of each group in order, and gives the hub as many as it has room for.
import type { Awaitable } from '../../contracts/common.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, pause } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import { keyColumnOf } from '../../runtime/event-store/event-columns.ts'
import { HUB_MAX_PENDING_BYTES } from '../events/queue-budget.ts'
import { Cursor, type Group, type Key, type KeyState, type Parked, type RowInHand } from './cursor.ts'
import { isByTurns, ShareReader } from './share-reader.ts'
import { type DeliveryStore, isMalformed, type MalformedRow, type Page, type StoredDelivery } from './store.ts'
import type { Turns } from './turns.ts'

/** Rows of one page. The primary has requests to serve between two. */
const PAGE_ROWS = 128
/** Maximum payload bytes of one page, estimated from the previous page. */
const PAGE_BYTES = 4 << 20
/** Maximum number of short pages read in one turn of the loop. */
const TURN_PAGES = 8
/** Maximum number of deliveries of one group in the hub. The rest waits in the store. */
export const GROUP_MAX = 1024
/**
 * Share of its group's room that each key may have in the hub, and while less than half of the room is taken, the share of what is free of that half:
 * behind a slow or retried key others of the group continue, and one alone is read in long pages.
 */
const KEY_SHARE = 1 / 64
const FREE_SHARE = 1 / 4
/** Maximum number of deliveries of one key in the hub. */
export const KEY_MAX = (GROUP_MAX / 2) * FREE_SHARE
/** Number of uncommitted outcomes above which reading pauses: after a crash all of them are delivered again. */
const SETTLING_MAX = 16_384
/** Share of EVENT_BUS_MAX_QUEUE, and of the hub's bytes, for rows of the store. */
const SHARE = 0.5
const MAX_BYTES = HUB_MAX_PENDING_BYTES * SHARE
/** Pause after a failed read, milliseconds. */
const RETRY_MS = 250
/** Time after which an unfinished suspect no longer delays the others, milliseconds. */
const TRIED_MS = 10_000

export interface ReaderParts {
  store: DeliveryStore
  clock: Clock
  /** EVENT_BUS_MAX_QUEUE. */
  maxQueue: number
  /** Rows of one page, if each page is a round trip. Default PAGE_ROWS. */
  pageRows?: number
  /** True for a row in the hub, or with an uncommitted outcome. */
  isInHand: (seq: number) => boolean
  /** True while the group is paused: its rows stay in the store. */
  isPaused: (group: Group) => boolean
  /** True for a row processes may have died of: it runs alone. */
  isSuspect: (row: StoredDelivery) => boolean
  /** Writes one more death before the row runs alone. Resolves after the commit. */
  note: (row: StoredDelivery) => Promise<StoredDelivery>
  /** Takes that death back if the row was not handed out. */
  untried: (seq: number) => void
  /** True when it has ended, or has failed. */
  isTried: (seq: number) => boolean
  /** Gives the hub a row. @returns false if it has no subscriber now: it stays in the store */
  give: (cursor: Cursor, row: StoredDelivery) => boolean
  onMalformed: (row: MalformedRow) => void
  /** True for a group in which those whose events are take turns. */
  areTurnsTaken?: (group: Group) => boolean
  /** The rows of a group that are in hand. */
  inHandOf?: (group: number) => Iterable<RowInHand>
  /** How many rows of a share may be in the hub: 0 while its limit is used up. */
  roomOfShare?: (group: Group, share: string) => number
  /** Resolves when this process knows what has become of cancels that a page's rows seem to be meant by; undefined: none. */
  hearing?: (page: Page) => Promise<void> | undefined
  report: (level: 'WARNING' | 'INFO', message: string) => void
}

/** Rows in hand, of all groups. */
export interface Load {
  /** In the hub. */
  deliveries: number
  bytes: number
  /** Rows the hub is done with, before their commit. */
  settling: number
}

/** A row that runs alone, and the reading position of its key at that time. */
interface Trial {
  readonly cursor: Cursor
  readonly row: StoredDelivery
  readonly state: KeyState
  readonly last: number
  readonly readMs: number
}

function keyStateOf({ keys }: Cursor, { event }: StoredDelivery): { state: KeyState; last: number } {
  const { state, last } = (event.key === null ? undefined : keys.get(event.key)) ?? { state: 'open', last: 0 }
  return { state, last }
}

/**
 * Reads one page after another of the groups that are behind. A group gets at most the free part of the shared room: a slow one leaves
 * room for the others, whatever its backlog.
 * Source of this rule: A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998.
 */
export class Reader {
  readonly load: Load = { deliveries: 0, bytes: 0, settling: 0 }
  readonly parked: Parked = { keys: 0, rows: 0 }
  /** When the rows being given were read, by the steady clock. */
  readMs = 0
  readonly #parts: ReaderParts
  readonly #cursors = new Map<number, Cursor>()
  readonly #byEvent = new Map<string, Cursor[]>()
  /** Cursors with unread rows and room. */
  readonly #due = new Set<Cursor>()
  /** Events of which some have a priority: their rows take turns. */
  readonly #urgent = new Set<string>()
  /** Rows that left the hand during the read of a page: the page may still have them. */
  readonly #left = new Set<number>()
  /** closed ──► idle ◄─► reading; each ──► ended */
  #state: 'closed' | 'idle' | 'reading' | 'ended' = 'closed'
  #isFailing = false
  readonly #shares: ShareReader
  /** Suspects, run one after another. */
  readonly #trials: Trial[] = []

  constructor(parts: ReaderParts) {
    this.#parts = parts
    this.#shares = new ShareReader({
      ...parts,
      pageRows: parts.pageRows ?? PAGE_ROWS,
      roomOfShare: this.#roomOfShare,
      read: (page) => this.#readPage(page),
      isReading: (cursor) => this.#state === 'reading' && this.#isHere(cursor),
      isTaken: (row) => this.#isTaken(row),
      hasRoom: (cursor, row) => this.#roomOf(cursor) > 0 && this.#hasBytes(cursor, row),
      give: (cursor, row) => this.#give(cursor, row),
      ready: (cursor) => this.#ready(cursor),
      tryAlone: (cursor, row) => this.#try(cursor, row),
      given: () => this.load.deliveries,
    })
  }

  /** Starts reading. */
  open(): void {
    if (this.#state !== 'closed') return
    this.#state = 'idle'
    this.#schedule()
  }

  end(): void {
    this.#state = 'ended'
  }

  get isReading(): boolean {
    return this.#state === 'reading'
  }

  // ── groups ────────────────────────────────────────────────────────────────

  /** The group has a subscriber: its rows are read from the first one. */
  add(group: Group): Cursor {
    let cursor = this.#cursors.get(group.id)
    if (cursor !== undefined) return cursor
    cursor = new Cursor(group, this.parked)
    this.#cursors.set(group.id, cursor)
    const others = this.#byEvent.get(group.event)
    if (others === undefined) this.#byEvent.set(group.event, [cursor])
    else others.push(cursor)
    this.#news(cursor)
    return cursor
  }

  /** The group has no subscriber any more: its rows stay in the store. */
  remove(group: Group): void {
    const cursor = this.#cursors.get(group.id)
    if (cursor === undefined) return
    this.#cursors.delete(group.id)
    this.#due.delete(cursor)
    cursor.retire()
    const left = this.#byEvent.get(group.event)!.filter((each) => each !== cursor)
    if (left.length === 0) this.#byEvent.delete(group.event)
    else this.#byEvent.set(group.event, left)
  }

  get cursors(): Iterable<Cursor> {
    return this.#cursors.values()
  }

  /** This process has gained or lost slots of a group: all of it is read again from the first row not in hand. */
  reset(group: number): void {
    const cursor = this.#cursors.get(group)
    if (cursor === undefined) return
    cursor.after = 0
    cursor.version++
    cursor.turns?.forgetVain()
    this.#news(cursor)
  }

  cursor(group: number): Cursor | undefined {
    return this.#cursors.get(group)
  }

  // ── rows to read ──────────────────────────────────────────────────────────

  /** Rows of an event have been committed. */
  rang(event: string): void {
    for (const cursor of this.#byEvent.get(event) ?? []) this.#news(cursor)
  }

  /** Some events of these names have a priority. */
  areUrgent(events: readonly string[]): void {
    for (const event of events) {
      if (this.#urgent.has(event)) continue
      this.#urgent.add(event)
      this.rang(event)
    }
  }

  /** Rows of a group have been committed. */
  rangGroup(group: number): void {
    const cursor = this.#cursors.get(group)
    if (cursor !== undefined) this.#news(cursor)
  }

  /** Rows of a share may be read. */
  mayGoOn(group: number, share: string): void {
    const cursor = this.#cursors.get(group)
    if (cursor === undefined || !isByTurns(cursor)) return
    cursor.turns.mayGoOn(share)
    this.#ready(cursor)
  }

  /** The group is no longer paused. */
  resume(group: number): void {
    const cursor = this.#cursors.get(group)
    if (cursor === undefined) return
    if (cursor.state === 'full') cursor.state = 'behind'
    cursor.turns?.forgetVain()
    this.#news(cursor)
  }

  /** A thread is gone: its last commits are unknown. */
  rangAll(): void {
    this.looksAgain()
    for (const cursor of this.#cursors.values()) this.#news(cursor)
  }

  /** Rows were deleted, or have got other shares: others of their keys may be next. */
  looksAgain(): void {
    for (const { turns } of this.#cursors.values()) turns?.forgetVain()
  }

  #ready(cursor: Cursor): void {
    if (cursor.state === 'full' || cursor.state === 'trying' || !this.#isHere(cursor)) return
    cursor.state = 'behind'
    this.#due.add(cursor)
    this.#schedule()
  }

  /** Some of its rows may be new. */
  #news(cursor: Cursor): void {
    cursor.turns?.news()
    this.#ready(cursor)
  }

  /** A key is unblocked: it is read from its first row not handed out. */
  keyReady(cursor: Cursor): void {
    if (!this.#isHere(cursor) || cursor.state === 'trying') return
    this.#due.add(cursor)
    this.#schedule()
  }

  /** The outcome of a row is committed, or it stays in the store: a page being read may still have it. */
  gone(seq: number, cursor: Cursor, share: string, key: string | null): void {
    if (this.#state === 'reading') this.#left.add(seq)
    // The next row of its key may have a share although it has none.
    const now = share === '' && key === null ? undefined : this.#cursors.get(cursor.group.id)
    if (now !== undefined && now.turns !== null) {
      now.turns.gone(share, seq, key)
      if (now.state === 'read' && isByTurns(now)) this.#ready(now)
    }
    if (this.load.settling !== SETTLING_MAX) return
    // Reading paused above this number.
    for (const cursor of this.#cursors.values()) {
      if (cursor.state === 'full') cursor.state = 'behind'
      if (cursor.state === 'behind' || cursor.behind.size > 0) this.#due.add(cursor)
    }
    this.#schedule()
  }

  /** The hub is done with a row: there is room for another. */
  rowLeft(cursor: Cursor, bytes: number, key: string | null, share = ''): void {
    this.load.deliveries--
    this.load.bytes -= bytes
    cursor.inHand--
    cursor.bytes -= bytes
    if (share !== '') this.#shareLeft(cursor.group, share)
    if (key !== null) {
      const found = cursor.keys.get(key)
      if (found !== undefined) {
        found.inHand--
        cursor.forgetIfIdle(found)
      }
    }
    const isBehind = cursor.state === 'full' || cursor.behind.size > 0
    if (!isBehind || cursor.state === 'trying' || !this.#isHere(cursor)) return
    // At least half a page, unless the group is idle.
    const room = this.#roomOf(cursor)
    if (room < Math.min(PAGE_ROWS / 2, cursor.inHand + 1)) return
    if (cursor.state === 'full') cursor.state = 'behind'
    this.#due.add(cursor)
    this.#schedule()
  }

  /** Its share may have more rows that were left out. */
  #shareLeft({ id }: Group, share: string): void {
    const cursor = this.#cursors.get(id)
    if (cursor === undefined) return
    cursor.turns?.left(share)
    if (cursor.state === 'read' && isByTurns(cursor)) this.#ready(cursor)
  }

  readonly #roomOfShare = (group: Group, share: string): number => this.#parts.roomOfShare?.(group, share) ?? GROUP_MAX

  /** Returns the number of further rows it may have in hand: at least one. */
  #roomOf({ inHand, bytes }: Cursor): number {
    if (this.load.settling > SETTLING_MAX) return 0
    const freeBytes = MAX_BYTES - this.load.bytes
    if (inHand === 0) return freeBytes > 0 ? Math.max(1, this.#free) : 1
    return bytes >= freeBytes ? 0 : Math.max(0, Math.min(GROUP_MAX, this.#free) - inHand)
  }

  /** Returns the number of rows that one of its keys may have in hand. */
  #roomOfKey(cursor: Cursor): number {
    const room = this.#roomOf(cursor)
    const all = room + cursor.inHand
    return Math.max(1, Math.floor(Math.max(all * KEY_SHARE, (room - all / 2) * FREE_SHARE)))
  }

  get #free(): number {
    return Math.min(GROUP_MAX, Math.floor(this.#parts.maxQueue * SHARE) - this.load.deliveries)
  }

  // ── reading ───────────────────────────────────────────────────────────────

  #schedule(): void {
    if (this.#state !== 'idle' || this.#due.size === 0) return
    this.#state = 'reading'
    // Reads all news of this turn together.
    queueMicrotask(() => void this.#run())
  }

  async #run(): Promise<void> {
    const { clock, report } = this.#parts
    let pages = 0
    for (const cursor of this.#due) {
      if (this.#state !== 'reading') return
      this.#due.delete(cursor)
      try {
        const rows = await this.#serve(cursor)
        if (this.#isFailing) report('INFO', 'The event store can be read again')
        this.#isFailing = false
        pages = rows >= PAGE_ROWS / 2 ? TURN_PAGES : pages + 1
      } catch (error) {
        if (!this.#isFailing)
          report('WARNING', `The event store cannot be read, it is tried again: ${messageOf(error)}`)
        this.#isFailing = true
        if (cursor.state === 'read') cursor.state = 'behind'
        // Shares that were asked for by name are found by the next round.
        cursor.turns?.news()
        this.#due.add(cursor)
        await pause(clock, RETRY_MS)
      }
      if (pages < TURN_PAGES) continue
      pages = 0
      await nextTurn(clock)
    }
    if (this.#state !== 'reading') return
    this.#state = 'idle'
    this.#schedule()
  }

  /** Reads a page of a key that is behind, or of the group. @returns its rows */
  async #serve(cursor: Cursor): Promise<number> {
    if (cursor.state === 'trying' || !this.#isHere(cursor)) return 0
    const room = this.#roomOf(cursor)
    const ofKey = this.#roomOfKey(cursor)
    if (isByTurns(cursor)) this.#leaveKeys(cursor, cursor.turns)
    for (const key of cursor.behind) {
      if (room === 0 || key.inHand > ofKey / 2) continue
      const rows = await this.#readKey(cursor, key, Math.min(room, ofKey - key.inHand))
      if (cursor.state !== 'full' && cursor.state !== ('trying' as Cursor['state'])) this.#due.add(cursor)
      return rows
    }
    if (cursor.state !== 'behind') return 0
    if (room === 0) {
      cursor.state = 'full'
      return 0
    }
    let rows = 0
    await this.#takesTurns(cursor)
    const turns = isByTurns(cursor) ? cursor.turns : null
    if (turns !== null && !turns.isRead) {
      rows = await this.#shares.read(cursor, turns, room)
      if (cursor.state !== ('behind' as Cursor['state'])) return rows
      // Rows without a share are older.
      if (turns.isUnsharedRead) {
        if (this.#readsInOrder(cursor, turns)) return rows
        if (turns.isRead) cursor.state = 'read'
        else this.#due.add(cursor)
        return rows
      }
    }
    const left = this.#roomOf(cursor)
    if (left === 0) {
      cursor.state = 'full'
      return rows
    }
    const byBytes = Math.max(1, Math.floor(PAGE_BYTES / Math.max(1, cursor.rowBytes)))
    rows += await this.#readGroup(cursor, Math.min(left, this.#parts.pageRows ?? PAGE_ROWS, byBytes))
    if (turns !== null && cursor.state === ('read' as Cursor['state'])) {
      turns.isUnsharedRead = true
      if (!turns.isRead) this.#ready(cursor)
    }
    return rows
  }

  /** Of a key only the next row is read, when its share has room. */
  #leaveKeys(cursor: Cursor, turns: Turns): void {
    if (cursor.behind.size > 0 && cursor.state === 'read') cursor.state = 'behind'
    for (const key of cursor.behind) {
      turns.keyMayGoOn(key.key)
      cursor.caughtUp(key)
    }
  }

  /** The shares of some groups take turns. */
  async #takesTurns(cursor: Cursor): Promise<void> {
    const { group, turns } = cursor
    const mayTakeTurns = turns === null && group.kind === 'group'
    if (mayTakeTurns && (this.#urgent.has(group.event) || this.#parts.areTurnsTaken?.(group) === true)) {
      await this.#parts.store.takeTurns(group.id)
      cursor.takeTurns(this.#parts.inHandOf?.(group.id) ?? [])
    }
  }

  /** All rows up to the reading position are in hand, or behind others of their keys. @returns false if more are left out */
  #readsInOrder(cursor: Cursor, turns: Turns): boolean {
    const keyed = turns.end()
    if (keyed === null) return false
    for (const name of keyed) {
      const key = cursor.keyOf(name)
      if (key.state === 'open') cursor.fallBehind(key)
    }
    this.#ready(cursor)
    return true
  }

  /** Reads a page whose rows are then given. */
  async #readPage(read: () => Awaitable<Page>): Promise<Page> {
    const readMs = this.#startPage()
    const page = await read()
    const hearing = this.#parts.hearing?.(page)
    if (hearing !== undefined) await hearing
    this.readMs = readMs
    return page
  }

  /** Rows that have left the hand before are in the page only if they came back. @returns the time, by the steady clock */
  #startPage(): number {
    this.#left.clear()
    return this.#parts.clock.steadyMs()
  }

  async #readGroup(cursor: Cursor, limit: number): Promise<number> {
    cursor.state = 'read'
    const { after, version } = cursor
    cursor.reading = after
    const readMs = this.#startPage()
    const areTurnsTaken = isByTurns(cursor)
    const { rows: page, readTo } = await this.#parts.store.readGroup(cursor.group.id, after, limit, areTurnsTaken)
    const hearing = this.#parts.hearing?.(page)
    if (hearing !== undefined) await hearing
    // A row has returned meanwhile, or this process has got slots: the page may have rows that follow what it lacks.
    const isStale = cursor.version !== version
    this.readMs = readMs
    const { taken, suspect } = isStale ? { taken: 0, suspect: null } : this.#take(cursor, page)
    cursor.reading = 0
    const last = suspect ?? page[taken - 1]
    const isAll = suspect === null && taken === page.length && page.length < limit
    // A page may begin with late rows: if one is not taken, reading starts from it.
    const next = isAll ? undefined : (last?.place ?? Math.min(after, (page[0]?.place ?? after + 1) - 1))
    const readUpTo = next ?? Math.max(after, last?.place ?? 0, readTo)
    // A row may also have returned while the page was taken: reading starts from it.
    cursor.after = cursor.version === version ? readUpTo : Math.min(cursor.after, readUpTo)
    if (page.length > 0) cursor.rowBytes = bytesOf(page) / page.length
    if (suspect !== null) this.#try(cursor, suspect)
    else if (isStale || (isByTurns(cursor) && !areTurnsTaken)) this.#ready(cursor)
    else if (taken < page.length) cursor.state = 'full'
    else if (page.length === limit) this.#ready(cursor)
    return page.length
  }

  async #readKey(cursor: Cursor, key: Key, limit: number): Promise<number> {
    const { last } = key
    const readMs = this.#startPage()
    const page = await this.#parts.store.readKey(cursor.group.id, keyColumnOf(key.key)!, last, limit)
    const hearing = this.#parts.hearing?.(page)
    if (hearing !== undefined) await hearing
    // A row has returned meanwhile, or is replayed: the page may lack it.
    if (key.last !== last) return page.length
    this.readMs = readMs
    const { taken, suspect } = this.#take(cursor, page, key)
    if (suspect !== null) this.#try(cursor, suspect)
    // One of its deliveries may have become a dead letter meanwhile.
    if (key.state !== 'behind' || suspect !== null) return page.length
    if (taken > 0) key.last = Math.max(key.last, page[taken - 1]!.place)
    const next = page[taken]
    const isWaiting = next !== undefined && !isMalformed(next) && next.waits === true
    if (isWaiting) cursor.caughtUp(key)
    else if (next === undefined && page.length < limit) cursor.caughtUp(key)
    else if (cursor.turns !== null) {
      cursor.turns.begin()
      cursor.state = 'behind'
    } else if (next !== undefined) cursor.state = 'full'
    return page.length
  }

  /**
   * @param of the key being read; without it rows of blocked keys are skipped
   * @returns the number of rows from the first that need not be read again, and the next row if it runs alone
   */
  #take(cursor: Cursor, page: Page, of?: Key): { taken: number; suspect: StoredDelivery | null } {
    const isInOrder = !isByTurns(cursor)
    for (const [n, row] of page.entries()) {
      const isOver = this.#state !== 'reading' || !this.#isHere(cursor)
      if (isOver || (of !== undefined && of.state !== 'behind')) return { taken: n, suspect: null }
      if (this.#isTaken(row)) continue
      if (isMalformed(row)) this.#parts.onMalformed(row)
      // It is read again, behind the row it waits for.
      else if (row.waits === true) {
        if (of !== undefined) return { taken: n, suspect: null }
      } else if (of === undefined && !this.#mayPass(cursor, row)) {
        if (isInOrder && isByTurns(cursor)) return { taken: n, suspect: null }
      } else {
        if (this.#parts.isSuspect(row)) return { taken: n, suspect: row }
        if (!this.#hasBytes(cursor, row)) return { taken: n, suspect: null }
        if (!this.#hasRoomOf(cursor, row)) {
          cursor.turns!.begin()
          return { taken: n, suspect: null }
        }
        this.#give(cursor, row)
        // It has returned at once: its limit is used up.
        if (of !== undefined && of.last < row.place && cursor.turns !== null) {
          cursor.turns.begin()
          return { taken: n, suspect: null }
        }
      }
    }
    return { taken: page.length, suspect: null }
  }

  /** At least one row: rows in hand make room when they end. */
  #hasBytes({ inHand }: Cursor, { event: { payload } }: StoredDelivery): boolean {
    return inHand === 0 || this.load.bytes + payload.length <= MAX_BYTES
  }

  /** False for a row of a share that has to take turns. */
  #hasRoomOf(cursor: Cursor, { event: { shares: share } }: StoredDelivery): boolean {
    const { turns, group } = cursor
    if (turns === null || share === '' || !turns.isInOrder) return true
    return turns.hasRoom(share, this.#roomOf(cursor), this.#roomOfShare(group, share))
  }

  /** It is in hand, or has been since the page was asked for. */
  #isTaken({ seq }: Page[number]): boolean {
    return this.#left.has(seq) || this.#parts.isInHand(seq)
  }

  #isHere(cursor: Cursor): boolean {
    return this.#cursors.get(cursor.group.id) === cursor && !this.#parts.isPaused(cursor.group)
  }

  // ── rows that may have crashed processes ──────────────────────────────────

  #try(cursor: Cursor, row: StoredDelivery): void {
    cursor.state = 'trying'
    this.#due.delete(cursor)
    if (this.#trials.push({ cursor, row, readMs: this.readMs, ...keyStateOf(cursor, row) }) === 1)
      void this.#runTrials()
  }

  /** Runs them one after another, of all groups: a crash then has one possible cause. */
  async #runTrials(): Promise<void> {
    const { clock, report } = this.#parts
    for (let trial = this.#trials[0]; trial !== undefined && this.#state !== 'ended'; trial = this.#trials[0]) {
      let isGiven = false
      try {
        isGiven = await this.#runTrial(trial)
      } catch (error) {
        report('WARNING', `A stored event could not be tried: ${messageOf(error)}`)
        await pause(clock, RETRY_MS)
      }
      this.#trials.shift()
      const { cursor, row } = trial
      this.#parts.untried(row.seq)
      cursor.state = 'behind'
      if (!isGiven) this.back(cursor.group.id, row.place, row.event.key, row.event.shares)
      this.#news(cursor)
    }
  }

  /** @returns false if it was not handed out */
  async #runTrial({ cursor, row, state, last, readMs }: Trial): Promise<boolean> {
    const { clock, isInHand } = this.#parts
    const noted = await this.#parts.note(row)
    if (!this.#isHere(cursor) || isInHand(row.seq) || this.#state === 'ended') return false
    // A dead letter may block its key by now, or an earlier row of the key may be next.
    const key = keyStateOf(cursor, row)
    if (key.state !== state || key.last < last) return false
    this.readMs = readMs
    this.#give(cursor, noted)
    const isOver = (): boolean => this.#state === 'ended' || this.#parts.isTried(row.seq)
    await until(isOver, clock.steadyMs() + TRIED_MS, { clock })
    return true
  }

  /** False for a row of a blocked key: it is read with its key. */
  #mayPass(cursor: Cursor, { place, event }: StoredDelivery): boolean {
    if (event.key === null) return true
    const key = cursor.keys.get(event.key)
    if (key === undefined) return true
    if (key.state === 'parked') cursor.leftOut(key, place)
    if (key.state === 'open' && key.inHand < this.#roomOfKey(cursor)) return true
    // A late row is below the last one.
    key.last = Math.min(key.last, place - 1)
    if (key.state !== 'open') return false
    // With many rows of one key, those of others would wait behind them.
    if (cursor.turns !== null) cursor.turns.begin()
    else cursor.fallBehind(key)
    return false
  }

  #give(cursor: Cursor, row: StoredDelivery): void {
    const { key: name, payload } = row.event
    const key = name === null ? null : cursor.keyOf(name)
    this.load.deliveries++
    this.load.bytes += payload.length
    cursor.inHand++
    cursor.bytes += payload.length
    const { shares: share } = row.event
    cursor.turns?.given(share, row.seq, name)
    if (key !== null) {
      if (row.slot !== undefined) key.slot = row.slot.slot
      key.inHand++
      key.last = Math.max(key.last, row.place)
    }
    if (this.#parts.give(cursor, row)) return
    this.rowLeft(cursor, payload.length, name)
    cursor.turns?.refused(share, row.seq)
  }

  /** Blocks the key of a new dead letter: its rows are skipped. @param place of the dead letter */
  park(cursor: Cursor, name: string, deadLetter: string, place: number): void {
    cursor.park(cursor.keyOf(name), deadLetter, place)
  }

  /** A dead letter is replayed or deleted: its key is read again from there, unless another one blocks it. */
  unpark(group: number, deadLetter: string): void {
    const cursor = this.#cursors.get(group)
    if (cursor?.unpark(deadLetter)) this.keyReady(cursor)
  }

  /** A row handed out stays in the store, or is there again at its old place. */
  back(group: number, place: number, name: string | null, share = ''): void {
    const cursor = this.#cursors.get(group)
    if (cursor === undefined) return
    // Its turn comes again.
    if (isByTurns(cursor)) {
      cursor.lower(name, place)
      cursor.turns.leftOut()
      cursor.turns.forgetVain()
      if (share !== '') return this.mayGoOn(group, share)
      if (name !== null) {
        cursor.turns.keyMayGoOn(name)
        return this.#ready(cursor)
      }
      cursor.turns.isUnsharedRead = false
    }
    if (name === null) {
      cursor.after = Math.min(cursor.after, place - 1)
      cursor.version++
      return this.#ready(cursor)
    }
    // Later rows of the key may be in a page being read: they wait for this one.
    const key = cursor.keyOf(name)
    key.last = Math.min(key.last, place - 1)
    if (key.state === 'parked') return
    cursor.fallBehind(key)
    this.keyReady(cursor)
  }

  /** False while rows of the key are skipped: one that was skipped is not late. */
  isOpen(group: number, name: string | null): boolean {
    const key = name === null ? undefined : this.#cursors.get(group)?.keys.get(name)
    return key === undefined || key.state === 'open'
  }

  /** A row has become visible behind the reading position: all later rows of its key are read again. */
  late(group: number, place: number, name: string | null): void {
    const cursor = this.#cursors.get(group)
    if (cursor === undefined || place > Math.max(cursor.after, cursor.reading)) return
    if (isByTurns(cursor)) {
      // It may have a share, which is not known. Its key is read from its first row.
      cursor.lower(name, place)
      cursor.after = Math.min(cursor.after, place - 1)
      cursor.version++
      cursor.turns.forgetVain()
      return this.#news(cursor)
    }
    const key = name === null ? undefined : cursor.keys.get(name)
    // They are read when the key is unblocked.
    if (key !== undefined && key.state !== 'open' && place > key.last) return
    if (name !== null && key === undefined) cursor.keyOf(name).last = place - 1
    this.back(group, place, name)
  }

  /** Dead letters that block keys. */
  *blocking(): Iterable<{ cursor: Cursor; deadLetter: string }> {
    for (const cursor of this.#cursors.values())
      for (const { deadLetters } of cursor.parked) for (const deadLetter of deadLetters) yield { cursor, deadLetter }
  }
}

function bytesOf(page: Page): number {
  let bytes = 0
  for (const row of page) if (!isMalformed(row)) bytes += row.event.payload.length
  return bytes
}
