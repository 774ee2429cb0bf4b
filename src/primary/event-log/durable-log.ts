// The durable log of a process.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import { frameOf } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { prepareTables } from '../../runtime/event-log/tables.ts'
import { asBytes, type EventFrame, OF_NO_PROCESS } from '../../transport/frames/event-frame.ts'
import { hubEventOf, type SubscriberThread } from '../events/consumer.ts'
import { Backlog } from './backlog.ts'
import { ChangeWriter } from './change-writer.ts'
import { DueEvents } from './due-events.ts'
import type { DurableLogOptions } from './durable-log-options.ts'
import { KnownGroups } from './known-groups.ts'
import { noteEnd, noteStart, positions, type StoredRow } from './log-reader.ts'
import { Reconciler } from './reconciler.ts'
import { Relay } from './relay.ts'
import { HeldEvents, SetAside } from './set-aside.ts'
import { SharedLog } from './shared-log.ts'
import { NO_SLOT, type StoredEvent, UNKNOWN_SLOT } from './stored-event.ts'
import { StoredEvents } from './stored-events.ts'
import { StoreTrial, Trials } from './trials.ts'

/** How long a file may still be another process's, milliseconds: one that ends at this moment has it for a little longer. */
const WAIT_MS = 1000

/**
 * Has the log of a database file for this process alone: two would give the same positions to different events, and deliver each other's.
 * @throws DATABASE_TAKEN while another process has it
 */
async function claimFile(database: LogDatabase): Promise<void> {
  const isFree = (): boolean => database.claim?.() !== false
  await until(isFree, steadyMs() + WAIT_MS)
  if (isFree()) return
  throw new HeddleError(
    'DATABASE_TAKEN',
    'Another process has the event log of this database file: SQLite serves one process. Stop that one, or use PostgreSQL, which serves any number',
  )
}

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'DATABASE_TAKEN'

/** Stored deliveries that the hub holds at most, as a share of EVENT_BUS_MAX_QUEUE: the rest waits in the log. */
const HELD_SHARE = 0.5
/** How often it is asked whether there is room for more of the log, milliseconds. */
const REFILL_MS = 20
/** How long events are still given to a broker at the end, milliseconds. */
const RELAY_END_MS = 1000
/** How long a start waits until its subscribers are stored, milliseconds. */
const GROUPS_STORED_MS = 5000
/** Pause before the log is opened again, milliseconds. */
const REOPEN_MS = 1000

/**
 * The durable log of this process, in its primary. Events come here after their commit, on their way to the hub, which delivers from memory.
 * The log itself is read only at the start, and for events that the hub had no room for.
 */
export class DurableLog {
  readonly #options: DurableLogOptions
  readonly #writer: ChangeWriter
  readonly #events: StoredEvents
  readonly #held: HeldEvents
  /** Null where this process alone has the log: on a file. */
  #shared: SharedLog | null = null
  readonly #due = new DueEvents(() => void this.#read())
  readonly #groups: KnownGroups
  readonly #backlog: Backlog
  readonly #trials: Trials
  #reconciler: Reconciler | null = null
  #hasAdopted = false
  /** Positions of events that this process has stored and not recorded: they are when they are read. */
  readonly #unrecorded = new Set<number>()
  readonly #relay: Relay | null
  readonly #storeTrial: StoreTrial
  readonly #setAside: SetAside
  #isReading = false
  #timer: NodeJS.Timeout | undefined
  #isEnding = false
  #fault: string | null = null
  #isTaken = false

  constructor(options: DurableLogOptions) {
    this.#options = options
    const { hub, log, write, report } = options
    this.#writer = new ChangeWriter({ write, log: report })
    this.#storeTrial = new StoreTrial(log, report)
    this.#setAside = new SetAside(report)
    this.#groups = new KnownGroups({
      hub,
      log,
      writer: this.#writer,
      maxStored: options.maxStored,
      onReturned: (event, group) => this.#groupReturned(event, group),
      onForgotten: (event, group) => this.#events.forgetGroup(event, group),
      report: (message) => report('WARNING', message),
    })
    const [groups, writer] = [this.#groups, this.#writer]
    this.#events = new StoredEvents(writer, log.memory, hub.parked, groups, this.#due)
    this.#relay = options.relay === null ? null : new Relay({ send: options.relay, report })
    // A broker knows its groups itself.
    if (this.#relay === null) hub.groups = groups
    this.#held = new HeldEvents({ hub, log, events: this.#events, setAside: this.#setAside })
    this.#backlog = new Backlog({
      log,
      shared: () => this.#shared,
      written: () => writer.written(),
      awaiting: (event, group) => this.#events.awaiting(event, group),
      isUncertain: () => this.#reconciler?.isUncertain === true,
      hasUnwritten: () => this.#due.hasRetries,
      collectLeavers: (leavers) => this.#events.collectLeavers(leavers),
    })
    this.#trials = new Trials({
      areDeathsKnown: options.deathsOf !== null,
      isUnderSuspicion: (stored) => this.#isUnderSuspicion(stored),
      groupsOf: (event) => ({ here: hub.groupsOf(event), absent: groups.absentOf(event) }),
      note: (delivery) => writer.waiting(delivery),
      written: () => writer.written(),
      deliver: (rows) => this.#deliverRows(rows),
      isTried: (seq) => this.#events.live(seq)?.open.every(({ isTried }) => isTried) ?? true,
      isEnding: () => this.#isEnding,
    })
    hub.parked.onPositions = (positions) => this.#freed(positions)
  }

  get isOpen(): boolean {
    return this.#options.log.memory.isOpen
  }

  /** Makes the tables, and no more. @throws as `open` does */
  prepare(): Promise<void> {
    return prepareTables(this.#options.log.database, this.#options.mayMakeTables)
  }

  /** Why nothing can be stored; null when it can. */
  get fault(): string | null {
    return this.#fault ?? this.#storeTrial.fault ?? this.#shared?.members.fault ?? null
  }

  /** Another process has it: until that one is gone, no transaction of this one publishes. */
  get isTaken(): boolean {
    return this.#isTaken
  }

  /** It has been open, and still takes what this process stores, unless the database is away. */
  get isUsable(): boolean {
    return this.isOpen && !this.#storeTrial.isRefused
  }

  /**
   * Makes the tables, and lets all threads write: now, or as soon as the database lets it.
   * @throws DATABASE_TAKEN when all events go through the log, and another process has it
   */
  async open(): Promise<void> {
    try {
      await this.#open()
      if (this.#fault !== null) this.#options.report('INFO', 'The event log is open')
      this.#fault = null
      this.#isTaken = false
    } catch (error) {
      this.#isTaken = isTaken(error)
      if (this.#options.isRequired && this.#isTaken) throw error
      const fault = `the event log is not open: ${messageOf(error)}`
      if (fault !== this.#fault) this.#options.report('WARNING', fault)
      this.#fault = fault
      if (!this.#isEnding) setTimeout(() => void this.open(), REOPEN_MS).unref()
    }
  }

  async #open(): Promise<void> {
    const { log } = this.#options
    await this.prepare()
    this.#due.begin(Date.now())
    if (log.isOnServer) return this.#join()
    await claimFile(log.database)
    const { first, last } = await positions(log.database)
    this.#trials.uncleanEnds = await noteStart(log.database, first, last)
    this.#reconciler = new Reconciler(last + 1)
    await this.#held.learn()
    if (this.#relay === null) await this.#groups.learn()
    this.#backlog.leave(first - 1, last)
    this.#countWaiting()
    log.memory.open(last + 1)
    if (this.#hasAdopted) this.#groups.begin(Date.now())
  }

  async #join(): Promise<void> {
    const parts = {
      events: this.#events,
      held: this.#held,
      writer: this.#writer,
      passed: this.#backlog.passed,
      setAside: this.#setAside,
    }
    this.#shared ??= new SharedLog(this.#options, { ...parts, onFree: () => void this.#read() })
    await this.#held.learn()
    if (this.#relay === null) await this.#groups.learn()
    await this.#shared.join()
    const { memory } = this.#options.log
    this.#reconciler ??= new Reconciler(memory.next, memory.epoch)
    if (this.#hasAdopted) await this.#takePart()
  }

  /** What others have left, or cannot deliver, comes before what is published from now on, as far as it is known. */
  async #takePart(): Promise<void> {
    if (this.#relay === null && this.#groups.begin(Date.now())) await this.#groupsStored()
    this.#shared?.adopt()
    if (this.#relay === null) await this.#groups.findReleased()
  }

  /** Where this process ends at once, the next one knows for whom its events wait. A database that takes no changes does not hold up the start. */
  async #groupsStored(): Promise<void> {
    await withTimeout(this.#writer.written(), GROUPS_STORED_MS, undefined)
  }

  /** All subscribers are known: delivers what an earlier process has left. */
  async adopt(): Promise<void> {
    const { size } = this.#backlog
    if (size > 0) this.#options.report('INFO', `Up to ${size} events are in the log and are delivered now`)
    this.#hasAdopted = true
    const failed = (error: unknown): void =>
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    if (this.isOpen) await this.#takePart().catch(failed)
    this.#timer = setInterval(() => {
      this.#storeTrial.look(steadyMs())
      void this.#read()
    }, REFILL_MS).unref()
    void this.#read()
  }

  // ── events that have just been committed ──────────────────────────────────

  /** @param event its payload is a string of bytes, as the hub keeps it */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (event.attempt === OF_NO_PROCESS) {
      if (this.#relay === null) this.#options.hub.record(event, origin)
      this.#shared?.came()
      return this.#countWaiting()
    }
    if (this.#knows(event.seq) || (this.#isEnding && this.#relay === null)) return
    const { timestampMs, delayMs, ttlMs } = event
    // Not all subscribers are known before.
    if (!this.#hasAdopted) this.#unrecorded.add(event.seq)
    else if (this.#relay === null) this.#options.hub.record(event, origin)
    const isKept = delayMs > 0 && this.#keepsUntilDue(event, Math.ceil(timestampMs + delayMs))
    if (isKept) return this.#countWaiting()
    if (this.#mustWait(event)) this.#backlog.pass(event.seq)
    else return this.#deliver(event, ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs, origin, null)
    this.#countWaiting()
  }

  /** A broker keeps them itself; where nobody wants it, nothing waits. @returns false when it is due now */
  #keepsUntilDue({ event, seq }: EventFrame, dueMs: number): boolean {
    const isWanted = this.#options.hub.hasSubscribers(event) || this.#groups.absentOf(event).length > 0
    if (this.#relay !== null || !isWanted) return false
    return this.#due.keep(dueMs, seq)
  }

  /** Behind events of its key that wait already, and where the hub has enough. */
  #mustWait({ key }: EventFrame): boolean {
    // Not all subscribers are known before.
    if (!this.#hasAdopted || !this.#hasRoom) return true
    // A broker gets them all in their order.
    if (key === null && this.#relay === null) return false
    return !this.#backlog.isEmpty
  }

  get #hasRoom(): boolean {
    if (this.#relay !== null && !this.#relay.hasRoom) return false
    return this.#options.hub.pending < this.#options.maxQueue * HELD_SHARE
  }

  #deliver(event: EventFrame, expiresMs: number, origin: SubscriberThread | null, stored: StoredRow | null): void {
    const left = stored?.left ?? null
    const { seq } = event
    const absent = this.#relay === null ? this.#groups.waitedFor(event.event, stored) : []
    const entry = this.#events.begin({ seq, event: event.event, left, absent })
    entry.isTaken = stored?.isTaken === true
    entry.slot = stored?.slot ?? (event.key === null ? NO_SLOT : UNKNOWN_SLOT)
    // Where some of its subscribers are done, the others are here.
    if (this.#relay !== null && left === null) {
      const [sent, refused] = [() => this.#events.forget(entry), () => this.#events.leave(entry)]
      return this.#relay.take({ event, expiresMs, origin, sent, refused })
    }
    // Not of a replay, which has a position of this process.
    if (seq <= this.#backlog.leftUpTo) entry.deaths = this.#options.deathsOf?.(event.id) ?? 0
    if (left === null) this.#shared?.deliver(event.event, entry)
    this.#options.hub.take(hubEventOf(event, expiresMs, this.#events), left)
    if (absent.length > 0) {
      this.#events.waitForAbsent(entry, left)
      this.#countWaiting()
    } else if (entry.deliveries === 0) this.#events.forget(entry)
  }

  // ── events that wait in the log ───────────────────────────────────────────

  /** Reads as many as the hub has room for: first what an earlier process has left, then what has been passed over. */
  async #read(): Promise<void> {
    if (this.#isReading || !this.#hasAdopted || !this.isOpen) return
    this.#isReading = true
    try {
      await this.#letGo()
      while (this.#hasRoom && !this.#isEnding && this.#backlog.hasMore) {
        await this.#backlog.read((rows) => this.#deliverPage(rows))
        this.#countWaiting()
        // A page at a time: the primary has requests to serve.
        await new Promise(setImmediate)
      }
      if (!this.#isEnding) await this.#shared?.step()
      this.#countWaiting()
      this.#groups.tell(steadyMs())
      if (this.#relay === null) await this.#groups.look(steadyMs())
      if (this.#shared !== null) await this.#held.look(steadyMs())
      if (this.#reconciler?.isDue(steadyMs())) await this.#reconcile(this.#reconciler)
    } catch (error) {
      this.#shared?.doubt()
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isReading = false
    }
  }

  async #deliverPage(rows: readonly StoredRow[]): Promise<void> {
    const { database, memory } = this.#options.log
    await this.#trials.run(await this.#setAside.from(rows, database, memory.epoch))
  }

  /** What is due waits for room, behind what has waited for that before. */
  async #letGo(): Promise<void> {
    const { database, memory } = this.#options.log
    await this.#due.look(database, Date.now(), memory.epoch)
    for (const seq of this.#due.due(Date.now())) this.#backlog.pass(seq)
    this.#countWaiting()
  }

  #deliverRows(rows: readonly StoredRow[]): void {
    for (const stored of rows) {
      const { row } = stored
      const event = asBytes(frameOf(row))
      const live = this.#events.live(event.seq)
      if (live !== undefined && this.#deliverBack(live, event, stored)) continue
      if (this.#events.knows(event.seq)) continue
      const isUnrecorded = this.#unrecorded.delete(event.seq) || stored.isNew === true
      if (isUnrecorded && this.#relay === null) this.#options.hub.record(event, null)
      const dueMs = Number(row.due_ms)
      if (dueMs > 0 && this.#keepsUntilDue(event, dueMs)) continue
      event.delayMs = Math.max(0, dueMs - Date.now())
      this.#held.learnReplay(event.seq)
      if (this.#relay === null && this.#due.keepRead(event, stored.left)) this.#countWaiting()
      else this.#deliver(event, Number(row.expires_ms), null, stored)
    }
  }

  /** @returns false when nobody of those that are not at work on it has waited for it */
  #deliverBack(live: StoredEvent, event: EventFrame, { row, left }: StoredRow): boolean {
    const { hub } = this.#options
    const isHere = (group: string): boolean => hub.hasConsumer(event.event, group)
    const shares = live.sharesBack(left, isHere)
    if (shares === null) return false
    this.#due.retried(event.seq)
    hub.take(hubEventOf(event, Number(row.expires_ms), this.#events), shares)
    this.#events.awaitAway(live, left)
    return true
  }

  /** False for what has waited behind a letter, or for its time, when processes died. */
  #isUnderSuspicion({ row, left }: StoredRow): boolean {
    if (this.#relay !== null || Number(row.due_ms) > Date.now()) return false
    return this.#events.live(Number(row.seq)) === undefined && !this.#held.isHeld(frameOf(row), left)
  }

  /** A group is here again: what has waited for it comes before what is new. */
  #groupReturned(event: string, group: string): void {
    if (this.#hasAdopted) this.#backlog.groupReturned(event, group)
  }

  /** Finds events that nobody has handed on. */
  async #reconcile(reconciler: Reconciler): Promise<void> {
    const { database, memory } = this.#options.log
    const dueMs = this.#relay === null ? this.#due.movedMs : Number.MAX_SAFE_INTEGER
    const lost = await reconciler.look(database, steadyMs(), { next: memory.next, dueMs }, (seq) => this.#knows(seq))
    for (const seq of lost) this.#unrecorded.add(seq)
    this.#backlog.free(lost)
    this.#countWaiting()
    reconciler.found()
    if (lost.length === 0) return
    const found = lost.length === 1 ? '1 stored event had' : `${lost.length} stored events had`
    const message = `${found} not been handed on: ${lost.length === 1 ? 'it is' : 'they are'} delivered now`
    this.#options.report('WARNING', message)
  }

  #knows(seq: number): boolean {
    return this.#events.holds(seq) || this.#backlog.has(seq)
  }

  /** A lane is gone: perhaps it has stored events that it could not hand on. */
  laneGone(): void {
    this.#reconciler?.laneGone(steadyMs())
    this.#due.laneGone(Date.now())
  }

  /** Their key goes on: what waits in the log is delivered, in its order. */
  #freed(positions: Iterable<number>): void {
    this.#backlog.free(positions)
    this.#countWaiting()
    void this.#read()
  }

  /** A letter has been stored as an event again. */
  replaying(position: number): void {
    this.#events.replaying(position)
    this.#unrecorded.add(position)
    this.#backlog.free([position])
    this.#countWaiting()
    void this.#read()
  }

  #countWaiting(): void {
    this.#events.waiting = this.#backlog.size + this.#groups.waiting + this.#due.count
    this.#options.log.memory.free = this.#shared?.freeCount ?? 0
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** This process ends: nothing more is read, and what the hub gives up stays in the log. */
  end(): void {
    this.#isEnding = true
    this.#events.end()
    clearInterval(this.#timer)
    this.#due.close()
  }

  /** Writes what is still to be written. Everything that is left in the log is delivered by the next process. */
  async close(deadlineMs: number): Promise<void> {
    this.end()
    await until(() => this.#relay?.isIdle !== false, Math.min(deadlineMs, steadyMs() + RELAY_END_MS))
    this.#relay?.close()
    await until(() => this.#writer.isIdle, deadlineMs)
    const isIdle = this.#writer.isIdle
    this.#writer.close()
    if (this.#shared === null && this.isOpen && isIdle) await noteEnd(this.#options.log.database).catch(() => {})
  }

  /** The lanes have ended: nothing more is stored. */
  async leave(): Promise<void> {
    await this.#shared?.leave()
  }
}
