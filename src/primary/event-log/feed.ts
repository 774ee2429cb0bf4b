// What the log has for this process, in the order in which it comes to the hub.
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, type Timer } from '../../core/schedule/clock.ts'
import { dueMsOf, frameOf } from '../../runtime/event-store/event-columns.ts'
import { asBytes, type EventFrame, OF_NO_PROCESS } from '../../transport/frames/event-frame.ts'
import type { Relay } from '../event-store/relay.ts'
import type { DurableLogOptions } from '../event-store/store-options.ts'
import { hubEventOf, type SubscriberThread } from '../events/consumer.ts'
import type { DueEvents } from './due-events.ts'
import type { KnownGroups } from './known-groups.ts'
import type { OpenLetters } from './open-letters.ts'
import { PositionQueue, Reconciler } from './positions.ts'
import type { SetAside } from './set-aside.ts'
import type { Settler } from './settler.ts'
import type { SharedLog } from './shared-log.ts'
import { PAGE_ROWS, type SqlLog, type StoredRow } from './sql-log.ts'
import { NO_SLOT, type StoredEvent, type StoredEvents, UNKNOWN_SLOT } from './stored-events.ts'
import { Trials } from './trials.ts'

/** Stored deliveries that the hub holds at most, as a share of EVENT_BUS_MAX_QUEUE: the rest waits in the log. */
const HELD_SHARE = 0.5
/** Events that are remembered as read before their lanes handed them on, at most. */
const EARLY_MAX = 10_000
/** How often it is asked whether there is room for more of the log, milliseconds. */
const REFILL_MS = 20

export interface FeedParts {
  options: DurableLogOptions
  log: SqlLog
  events: StoredEvents
  settler: Settler
  groups: KnownGroups
  due: DueEvents
  letters: OpenLetters
  setAside: SetAside
  /** Null where the hub gets the events. */
  relay: Relay | null
  /** Called now and then. */
  onTurn: () => void
}

/** A group that is here again, and from where on what has waited for it is still to be read. */
interface Returned {
  event: string
  group: string
  after: number
}

/**
 * Brings the hub its stored events: from memory, just after their commit, or from the log, as it has room. What has a key must not pass what is to
 * be read: of each key that may be the older. The log is read in this order:
 *
 * 1. What has waited for a group that has come back.
 * 2. What has waited for a key that goes on, and the rest of a page before which something came.
 * 3. What an earlier process has left.
 * 4. What had no room in the hub, or stood behind something of this list, or has become due, or that nobody had handed on.
 * 5. What belongs to no process, and has a key that this one delivers.
 */
export class Feed {
  /** Null where this process has the log alone. */
  shared: SharedLog | null = null
  /** Null until the log is open. */
  reconciler: Reconciler | null = null
  /** Positions of what had no room. */
  readonly passed = new PositionQueue()
  readonly trials: Trials
  readonly #parts: FeedParts
  readonly #clock: Clock
  readonly #returned: Returned[] = []
  /** Positions of what goes on before what came later. */
  readonly freed = new PositionQueue()
  #isFreedInOrder = true
  /** What an earlier process has left on a file: events after `from`, up to `last`. */
  #left = { from: 0, last: 0 }
  /** What this process has taken of no process's while something older came up. */
  #taken: StoredRow[] = []
  /** Counts what comes to stand before everything that is being read. */
  #turns = 0
  /** Positions of events that this process has stored and not recorded: they are when they are read. */
  readonly #unrecorded = new Set<number>()
  /** Positions of events that were read before their lanes had handed them on: those may still do so. */
  readonly #early = new Set<number>()
  /** Events with keys that have been handed on in this turn of the loop. */
  #arrived: { event: EventFrame; origin: SubscriberThread | null }[] = []
  #hasAdopted = false
  #isEnding = false
  #isRunning = false
  /** What was read is on its way. */
  #isReading = false
  #timer: Timer | undefined

  constructor(parts: FeedParts) {
    this.#parts = parts
    this.#clock = parts.log.clock
    this.trials = new Trials({
      ...parts,
      hub: parts.options.hub,
      clock: parts.log.clock,
      areDeathsKnown: parts.options.deathsOf !== null,
      isUnderSuspicion: (stored) => this.#isUnderSuspicion(stored),
      deliver: (rows) => this.#deliverRows(rows),
      isEnding: () => this.#isEnding,
    })
    parts.options.hub.parked.onPositions = (freed) => this.#free(freed)
  }

  /** All subscribers are known. */
  get hasAdopted(): boolean {
    return this.#hasAdopted
  }

  /** Finds on a file what an earlier process has left. @returns the first and the last position that are taken */
  async findLeft(): Promise<{ first: number; last: number }> {
    const { log } = this.#parts
    const found = await log.positions()
    this.#left = { from: found.first - 1, last: found.last }
    this.reconciler = new Reconciler(log, found.last + 1)
    this.count()
    return found
  }

  /** All subscribers are known: delivers what there is. */
  adopt(): void {
    this.#hasAdopted = true
  }

  /** From now on what there is room for is read. */
  begin(): void {
    this.#timer = this.#clock
      .every(REFILL_MS, () => {
        this.#parts.onTurn()
        void this.read()
      })
      .unref()
    void this.read()
  }

  /** Nothing more is read. */
  end(): void {
    this.#isEnding = true
    this.#clock.cancel(this.#timer)
  }

  /** Events that wait in the log to be read, as far as that is known. */
  get size(): number {
    return this.#left.last - this.#left.from + this.passed.size + this.freed.size + this.#taken.length
  }

  /** Tells publishers how much is stored. */
  count(): void {
    const { events, groups, due, log } = this.#parts
    events.waiting = this.size + groups.waiting + due.count
    log.memory.free = this.shared?.freeCount ?? 0
  }

  // ── events that have just been committed ──────────────────────────────────

  /**
   * Takes one without a key at once. Of a key the older one comes first, also where its lane has handed it on and has not been heard yet: those
   * with keys are taken together, in the order of their positions, once this turn of the loop has read what all lanes have written by then.
   * @param event its payload is a string of bytes, as the hub keeps it
   */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (event.key === null) return this.#take(event, origin)
    if (this.#arrived.push({ event, origin }) === 1) queueMicrotask(this.#takeArrived)
  }

  readonly #takeArrived = (): void => {
    const { catchUp, report } = this.#parts.options
    catchUp()
    const arrived = this.#arrived
    this.#arrived = []
    if (arrived.length > 1) arrived.sort((a, b) => a.event.seq - b.event.seq)
    for (const { event, origin } of arrived) {
      try {
        this.#take(event, origin)
      } catch (error) {
        // It is stored: what nobody has is looked for.
        report('ERROR', `${event.event} was not taken from a lane: ${messageOf(error)}`)
      }
    }
  }

  #take(event: EventFrame, origin: SubscriberThread | null): void {
    const { options, relay } = this.#parts
    if (event.attempt === OF_NO_PROCESS) {
      if (relay === null) options.hub.record(event, origin)
      this.shared?.came()
      return this.count()
    }
    if (this.knows(event.seq) || this.#early.delete(event.seq) || (this.#isEnding && relay === null)) return
    const { timestampMs, delayMs, ttlMs } = event
    // Not all subscribers are known before.
    if (!this.#hasAdopted) this.#unrecorded.add(event.seq)
    else if (relay === null) options.hub.record(event, origin)
    const isKept = delayMs > 0 && this.#keepsUntilDue(event, dueMsOf(event))
    if (isKept) return this.count()
    if (!this.#mustWait(event))
      return this.#deliver(event, ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs, origin, null)
    this.passed.push(event.seq)
    this.count()
  }

  /** True for an event that is in the hub, waits here, or is about to be read. */
  knows(seq: number): boolean {
    if (this.#parts.events.holds(seq) || this.passed.has(seq) || this.freed.has(seq)) return true
    return this.#taken.some(({ row }) => Number(row.seq) === seq)
  }

  /** A broker keeps them itself; where nobody wants it, nothing waits. @returns false when it is due now */
  #keepsUntilDue({ event, seq }: EventFrame, dueMs: number): boolean {
    const { options, groups, relay, due } = this.#parts
    const isWanted = options.hub.hasSubscribers(event) || groups.absentOf(event).length > 0
    return relay === null && isWanted && due.keep(dueMs, seq)
  }

  /** Behind events of its key that wait already, and where the hub has enough. */
  #mustWait({ key }: EventFrame): boolean {
    if (!this.#hasAdopted || !this.#hasRoom) return true
    // A broker gets them all in their order.
    if (key === null && this.#parts.relay === null) return false
    return this.#isReading || this.#mayBeBehind || this.size + this.#returned.length > 0 || this.#hasLeft
  }

  get #hasRoom(): boolean {
    const { options, relay } = this.#parts
    if (relay !== null && !relay.hasRoom) return false
    return options.hub.pending < options.maxQueue * HELD_SHARE
  }

  // ── events that come up in the log ────────────────────────────────────────

  /** A group is here again: what has waited for it comes before what is new. */
  groupReturned(event: string, group: string): void {
    if (!this.#hasAdopted) return
    const at = this.#returned.findIndex((each) => each.event === event && each.group === group)
    // From the start: it may have gone and come once more.
    this.#returned[at < 0 ? this.#returned.length : at] = { event, group, after: 0 }
    this.#turns++
  }

  /** A letter has been stored as an event again. */
  replaying(position: number): void {
    this.#parts.events.replaying(position, this.#clock.nowMs())
    this.#unrecorded.add(position)
    this.#free([position])
  }

  /** They go on, in their order, before everything that came later. */
  #free(freed: Iterable<number>): void {
    this.#addFreed(freed)
    this.#turns++
    this.count()
    void this.read()
  }

  #addFreed(freed: Iterable<number>): void {
    this.freed.merge(freed)
    this.#isFreedInOrder = this.#parts.log.memory.epoch === 0
  }

  /** A lane is gone: perhaps it has stored events that it could not hand on. */
  laneGone(): void {
    this.reconciler?.laneGone(this.#clock.steadyMs())
    this.#parts.due.laneGone(this.#clock.nowMs())
  }

  /** Finds events that nobody has handed on. */
  async #reconcile(reconciler: Reconciler): Promise<void> {
    const { options, relay, due } = this.#parts
    const dueMs = relay === null ? due.movedMs : Number.MAX_SAFE_INTEGER
    const lost = await reconciler.look(this.#clock.steadyMs(), dueMs, (seq) => this.knows(seq))
    for (const seq of lost) {
      this.#unrecorded.add(seq)
      this.#early.add(seq)
    }
    for (const seq of this.#early) {
      if (this.#early.size <= EARLY_MAX) break
      this.#early.delete(seq)
    }
    // What waits of the same key may be older, and may be younger.
    this.passed.insert(lost)
    reconciler.found()
    if (lost.length === 0) return
    this.count()
    const found = lost.length === 1 ? '1 stored event had' : `${lost.length} stored events had`
    const message = `${found} not been handed on: ${lost.length === 1 ? 'it is' : 'they are'} delivered now`
    options.report('WARNING', message)
  }

  // ── reading ───────────────────────────────────────────────────────────────

  /** Reads as many as the hub has room for. */
  async read(): Promise<void> {
    const { options, log, groups, letters, relay } = this.#parts
    if (this.#isRunning || !this.#hasAdopted || !log.memory.isOpen) return
    this.#isRunning = true
    try {
      await this.#letGo()
      while (this.#hasRoom && !this.#isEnding && this.#hasMore) {
        await this.#readPage()
        this.count()
        // A page at a time: the primary has requests to serve.
        await nextTurn(this.#clock)
      }
      if (!this.#isEnding) await this.shared?.step()
      this.count()
      groups.tell(this.#clock.steadyMs())
      if (relay === null) await groups.look(this.#clock.steadyMs())
      if (this.shared !== null) await letters.look(this.#clock.steadyMs())
      if (this.reconciler?.isDue(this.#clock.steadyMs())) await this.#reconcile(this.reconciler)
    } catch (error) {
      this.shared?.doubt()
      options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isRunning = false
    }
  }

  /** What is due waits for room, behind what has waited for that before. */
  async #letGo(): Promise<void> {
    const { due } = this.#parts
    await due.look()
    for (const seq of due.due()) {
      // Where the log is shared, who takes over from a process says what is new.
      if (due.wasUntold(seq) && this.shared === null) this.#unrecorded.add(seq)
      this.passed.push(seq)
    }
    this.count()
  }

  /** Older events of their keys may come up: what was stored last is not read before. */
  get #mayBeBehind(): boolean {
    return this.shared?.isSettling === true || this.reconciler?.isUncertain === true || !this.#areReturnedKnown
  }

  get #hasLeft(): boolean {
    return this.#left.last > this.#left.from || this.shared?.members.hasOrphans === true
  }

  get #hasPassed(): boolean {
    return this.passed.size > 0 && !this.#mayBeBehind
  }

  get #hasMore(): boolean {
    if (this.#returned.length + this.freed.size + this.#taken.length > 0) return true
    return this.#hasLeft || this.#hasPassed || this.#hasFree
  }

  get #hasFree(): boolean {
    return this.shared?.hasFree === true && this.#areReturnedKnown
  }

  get #areReturnedKnown(): boolean {
    return this.#parts.relay !== null || this.#parts.groups.hasFound
  }

  /** Reads the next page, and delivers it before anything else can come. */
  async #readPage(): Promise<void> {
    this.#isReading = true
    try {
      if (this.#returned.length > 0 && this.shared === null) await this.#readReturned(this.#returned[0]!)
      else if (this.freed.size > 0) await this.#readListed(this.freed)
      else if (this.#hasLeft) await this.#readLeft()
      else if (this.#returned.length > 0) await this.#takeReturned(this.shared!)
      else if (this.#taken.length > 0) await this.#deliverPage(this.#taken.splice(0))
      else if (this.#hasPassed) await this.#readListed(this.passed)
      else await this.#readFree()
    } finally {
      this.#isReading = false
    }
  }

  async #readReturned(returned: Returned): Promise<void> {
    const { log } = this.#parts
    // What has not been read of an earlier process is read for all its groups together.
    const last = this.#left.last > this.#left.from ? this.#left.from : Number.MAX_SAFE_INTEGER
    const { rows, isStale } = await this.#readRows(true, () => log.readReturned(returned, returned.after, last))
    if (this.#returned[0] !== returned || isStale) return
    if (rows.length > 0) returned.after = Number(rows.at(-1)!.row.seq)
    await this.#deliverPage(rows)
    if (rows.length < PAGE_ROWS && this.#returned[0] === returned) this.#returned.shift()
  }

  /** Takes what waits for all groups that have come back, together with what is at hand and what its keys have in the log: it goes on in one order. */
  async #takeReturned(shared: SharedLog): Promise<void> {
    const { log, events, settler } = this.#parts
    const returned = [...this.#returned]
    const taken: number[] = []
    // It may have taken some before without an answer.
    await shared.clearDoubts()
    await settler.written()
    for (const { event, group } of returned) {
      taken.push(...events.awaiting(event, group))
      for (let page: number[], after = 0; ; after = page.at(-1)!) {
        page = await log.takeReturned({ event, group }, after)
        taken.push(...page)
        if (page.length < PAGE_ROWS) break
      }
    }
    taken.push(...(await shared.takeOlder()))
    for (const seq of taken) if (!shared.members.isOwn(seq)) this.#unrecorded.add(seq)
    this.#returned.splice(0, this.#returned.length, ...this.#returned.filter((each) => !returned.includes(each)))
    this.#addFreed(taken)
    this.#turns++
  }

  async #readListed(queue: PositionQueue): Promise<void> {
    const { log, due, groups } = this.#parts
    if (queue === this.freed) await this.#arrangeFreed()
    const listed = queue.take(PAGE_ROWS)
    const turns = this.#turns
    let page = { rows: [] as StoredRow[], isStale: true }
    try {
      // What waits for a group that is not here may come up again: what the others have done of it must be written.
      const mustFlush = queue === this.freed || due.hasRetries || groups.waiting > 0
      page = await this.#readRows(mustFlush, () => log.readListed(listed))
    } catch (error) {
      this.#restore(queue, listed)
      throw error
    }
    if (turns === this.#turns && !page.isStale) await this.#deliverPage(page.rows)
    else this.#restore(queue, listed)
  }

  #restore(queue: PositionQueue, listed: readonly number[]): void {
    if (queue === this.freed) this.#addFreed(listed)
    else queue.putBack(listed)
  }

  /** Where several processes share the log, each has positions of its own, which say nothing about the order over all. */
  async #arrangeFreed(): Promise<void> {
    while (!this.#isFreedInOrder) {
      // Others may come meanwhile.
      this.#isFreedInOrder = true
      try {
        const inOrder = await this.#parts.log.inOrderOfCommits(this.freed.list())
        if (this.#isFreedInOrder) this.freed.arrange(inOrder)
      } catch (error) {
        this.#isFreedInOrder = false
        throw error
      }
    }
  }

  async #readLeft(): Promise<void> {
    if (this.shared !== null) return this.#deliverPage(asNew(await this.shared.nextLeft()))
    const { from, last } = this.#left
    const turns = this.#turns
    const rows = await this.#parts.log.readAfter(from, last)
    if (turns !== this.#turns) return
    this.#left.from = rows.length < PAGE_ROWS ? last : Number(rows.at(-1)!.row.seq)
    await this.#deliverPage(asNew(rows))
  }

  /** Takes events of no process. What has come up meanwhile is older, and goes first. */
  async #readFree(): Promise<void> {
    const turns = this.#turns
    const rows = (await this.shared?.nextFree()) ?? []
    if (turns === this.#turns) await this.#deliverPage(rows)
    else this.#taken = rows
  }

  /**
   * @param mustFlush changes of what is read may be under way
   * @returns stale rows when an event of them has left the hub meanwhile: who was done with it at that moment would do it again
   */
  async #readRows(
    mustFlush: boolean,
    read: () => Promise<StoredRow[]>,
  ): Promise<{ rows: StoredRow[]; isStale: boolean }> {
    const { events, settler } = this.#parts
    const gone = new Set<number>()
    // What ends while earlier changes are written is not among those.
    events.collectLeavers(gone)
    try {
      if (mustFlush) await settler.written()
      const rows = await read()
      return { rows, isStale: gone.size > 0 && rows.some(({ row }) => gone.has(Number(row.seq))) }
    } finally {
      events.collectLeavers(null)
    }
  }

  // ── to the hub ────────────────────────────────────────────────────────────

  /** A page may wait for its turn: what of it is not as it was read by then, or has others before it, is read again. */
  async #deliverPage(rows: readonly StoredRow[]): Promise<void> {
    const { events, setAside } = this.#parts
    const turns = this.#turns
    const gone = new Set<number>()
    events.collectLeavers(gone)
    const isStale = (left: readonly StoredRow[]): boolean =>
      turns !== this.#turns || left.some(({ row }) => gone.has(Number(row.seq)))
    try {
      const left = await this.trials.run(await setAside.from(rows), isStale)
      for (const { row, isNew } of left) if (isNew) this.#unrecorded.add(Number(row.seq))
      if (left.length > 0) this.#addFreed(left.map(({ row }) => Number(row.seq)))
    } finally {
      events.collectLeavers(null)
    }
  }

  /** False for what has waited behind a letter, or for its time, when processes died. */
  #isUnderSuspicion({ row, left }: StoredRow): boolean {
    const { events, letters, relay } = this.#parts
    if (relay !== null || Number(row.due_ms) > this.#clock.nowMs()) return false
    return events.live(Number(row.seq)) === undefined && !letters.isHeld(frameOf(row), left)
  }

  #deliverRows(rows: readonly StoredRow[]): void {
    const { options, events, letters, relay, due } = this.#parts
    for (const stored of rows) {
      const { row } = stored
      const event = asBytes(frameOf(row))
      const live = events.live(event.seq)
      if (live !== undefined && this.#deliverBack(live, event, stored)) continue
      if (events.knows(event.seq)) continue
      const isUnrecorded = this.#unrecorded.delete(event.seq) || stored.isNew === true
      if (isUnrecorded && relay === null) options.hub.record(event, null)
      const dueMs = Number(row.due_ms)
      if (dueMs > 0 && this.#keepsUntilDue(event, dueMs)) continue
      event.delayMs = Math.max(0, dueMs - this.#clock.nowMs())
      letters.learnReplay(event.seq)
      if (relay === null && due.keepRead(event, stored.left)) continue
      // It may have become due meanwhile: then it has been let go, too.
      this.passed.drop(event.seq)
      this.#deliver(event, Number(row.expires_ms), null, stored)
    }
  }

  /** @returns false when nobody of those that are not at work on it has waited for it */
  #deliverBack(live: StoredEvent, event: EventFrame, { row, left }: StoredRow): boolean {
    const { events, due, options } = this.#parts
    const { hub } = options
    const shares = live.sharesBack(left, (group) => hub.hasConsumer(event.event, group))
    if (shares === null) return false
    due.retried(event.seq)
    hub.take(hubEventOf(event, Number(row.expires_ms), events), shares)
    events.awaitAway(live, left)
    return true
  }

  #deliver(event: EventFrame, expiresMs: number, origin: SubscriberThread | null, stored: StoredRow | null): void {
    const { options, events, groups, relay } = this.#parts
    const left = stored?.left ?? null
    const { seq } = event
    const absent = relay === null ? groups.waitedFor(event.event, stored) : []
    const slot = stored?.slot ?? (event.key === null ? NO_SLOT : UNKNOWN_SLOT)
    const isTaken = stored?.isTaken === true
    const entry = events.begin({ seq, event: event.event, left, absent, slot, isTaken, trial: stored?.trial })
    // Where some of its subscribers are done, the others are here.
    if (relay !== null && left === null) {
      const [sent, refused] = [() => events.forget(entry), () => events.leave(entry)]
      return relay.take({ event, expiresMs, origin, sent, refused })
    }
    const { deathsOf } = options
    if (deathsOf !== null && seq <= this.#left.last) {
      const sinceMs = events.replayedMs(seq)
      entry.deathsOf = ({ consumer: { instances } }) =>
        Math.max(0, ...instances.map(({ plugin }) => deathsOf(event.id, plugin, sinceMs)))
    }
    if (left === null) this.shared?.deliver(event.event, entry)
    options.hub.take(hubEventOf(event, expiresMs, events), left)
    if (absent.length > 0) {
      events.waitForAbsent(entry, left)
      this.count()
    } else if (entry.deliveries === 0) events.forget(entry)
  }
}

const asNew = (rows: readonly StoredRow[]): StoredRow[] => rows.map((row) => ({ ...row, isNew: true }))
