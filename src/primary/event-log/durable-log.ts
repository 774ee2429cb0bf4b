import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/until.ts'
import { frameOf } from '../../runtime/event-log/event-rows.ts'
import { prepareTables } from '../../runtime/event-log/tables.ts'
import { type EventFrame, OF_NO_PROCESS } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import { asBytes } from '../events/event-driver.ts'
import { ChangeWriter } from './change-writer.ts'
import { claimFile, isTaken } from './claimed-file.ts'
import { DueEvents } from './due-events.ts'
import type { DurableLogOptions } from './durable-log-options.ts'
import { HeldEvents } from './held-events.ts'
import { noteEnd, noteStart, PAGE_ROWS, positions, readAfter, readInOrder, type StoredRow } from './log-reader.ts'
import { PositionQueue } from './position-queue.ts'
import { Reconciler } from './reconciler.ts'
import { Relay } from './relay.ts'
import { SharedLog } from './shared-log.ts'
import { NO_SLOT, StoredEvents, UNKNOWN_SLOT } from './stored-events.ts'
import { readTried } from './suspect-trial.ts'
import { Suspects } from './suspects.ts'
import { UnclaimedEvents } from './unclaimed-events.ts'

/** Stored deliveries that the hub holds at most, as a share of EVENT_BUS_MAX_QUEUE: the rest waits in the log. */
const HELD_SHARE = 0.5
/** How often it is asked whether there is room for more of the log, milliseconds. */
const REFILL_MS = 20
/** How long events are still given to a broker at the end, milliseconds. */
const RELAY_END_MS = 1000
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
  /** Positions of events that had no room, in the order in which they came. */
  readonly #passed = new PositionQueue()
  readonly #due = new DueEvents(() => void this.#read())
  /** What an earlier process has left: events after `from`, up to `last`. */
  #left = { from: 0, last: 0 }
  readonly #suspects = new Suspects()
  #reconciler: Reconciler | null = null
  #hasAdopted = false
  readonly #relay: Relay | null
  /** Events that had no room are on their way from the log. */
  #isReadingPassed = false
  #isReading = false
  /** Events of an earlier process that nobody here subscribes to, by name: they stay in the log. */
  readonly #unclaimed: UnclaimedEvents
  #timer: NodeJS.Timeout | undefined
  #isEnding = false
  #fault: string | null = null

  constructor(options: DurableLogOptions) {
    this.#options = options
    const { hub, log, write, report } = options
    this.#writer = new ChangeWriter({ write, log: report })
    this.#unclaimed = new UnclaimedEvents((message) => report('WARNING', message))
    this.#events = new StoredEvents(this.#writer, log.memory, hub.parked, (dueMs, seq) => this.#due.add(dueMs, seq))
    this.#relay = options.relay === null ? null : new Relay({ send: options.relay, report })
    this.#held = new HeldEvents(hub, log, this.#events)
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
    return this.#fault ?? this.#shared?.members.fault ?? null
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
    } catch (error) {
      if (this.#options.isRequired && isTaken(error)) throw error
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
    this.#left = { from: first - 1, last }
    this.#countWaiting()
    this.#suspects.uncleanEnds = await noteStart(log.database, first, last)
    this.#reconciler = new Reconciler(last + 1)
    await this.#held.learn()
    log.memory.open(last + 1)
  }

  async #join(): Promise<void> {
    const parts = { events: this.#events, held: this.#held, writer: this.#writer, passed: this.#passed }
    this.#shared ??= new SharedLog(this.#options, { ...parts, onFree: () => void this.#read() })
    await this.#held.learn()
    await this.#shared.join()
    const { memory } = this.#options.log
    this.#reconciler ??= new Reconciler(memory.next, memory.epoch)
    if (this.#hasAdopted) await this.#shared.adopt()
  }

  /** All subscribers are known: delivers what an earlier process has left. */
  adopt(): void {
    const { from, last } = this.#left
    if (last > from) this.#options.report('INFO', `Up to ${last - from} events are in the log and are delivered now`)
    this.#hasAdopted = true
    void this.#shared?.adopt()
    this.#timer = setInterval(() => void this.#read(), REFILL_MS).unref()
    void this.#read()
  }

  // ── events that have just been committed ──────────────────────────────────

  /** @param event its payload is a string of bytes, as the hub keeps it */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (event.attempt === OF_NO_PROCESS) {
      if (this.#relay === null) this.#options.hub.record(event, origin)
      return this.#shared?.came()
    }
    if (this.#events.holds(event.seq) || (this.#isEnding && this.#relay === null)) return
    const { timestampMs, delayMs, ttlMs } = event
    if (delayMs > 0 && this.#keepsUntilDue(event, Math.ceil(timestampMs + delayMs)))
      this.#options.hub.record(event, origin)
    else if (this.#mustWait(event)) this.#passed.push(event.seq)
    else return this.#deliver(event, ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs, origin, null)
    this.#countWaiting()
  }

  /** A broker keeps them itself; where nobody wants it, nothing waits. @returns false when it is due now */
  #keepsUntilDue({ event, seq }: EventFrame, dueMs: number): boolean {
    if (this.#relay !== null || !this.#options.hub.hasSubscribers(event)) return false
    return this.#due.keep(dueMs, seq)
  }

  /** Behind events of its key that wait already, and where the hub has enough. */
  #mustWait({ key }: EventFrame): boolean {
    if (!this.#hasRoom) return true
    // A broker gets them all in their order.
    if (key === null && this.#relay === null) return false
    if (this.#passed.size > 0 || this.#isReadingPassed || this.#hasLeft || this.#shared?.isSettling) return true
    return key !== null && this.#suspects.holds(key)
  }

  /** Ended processes have left events that have not been read yet. */
  get #hasLeft(): boolean {
    return this.#left.last > this.#left.from || this.#shared?.members.hasOrphans === true
  }

  get #hasRoom(): boolean {
    if (this.#relay !== null && !this.#relay.hasRoom) return false
    return this.#options.hub.pending < this.#options.maxQueue * HELD_SHARE
  }

  #deliver(event: EventFrame, expiresMs: number, origin: SubscriberThread | null, stored: StoredRow | null): void {
    const left = stored?.left ?? null
    // What an earlier process has published was not recorded here.
    const hasWaited = this.#due.take(event.seq) && event.seq > this.#left.last
    const isRecorded = this.#held.take(event.seq) || hasWaited || stored?.isRecorded === true
    const entry = this.#events.begin(event.seq, left, isRecorded)
    entry.isTaken = stored?.isTaken === true
    entry.slot = stored?.slot ?? (event.key === null ? NO_SLOT : UNKNOWN_SLOT)
    // Where some of its subscribers are done, the others are here.
    if (this.#relay !== null && left === null) {
      const [sent, refused] = [() => this.#events.forget(entry), () => this.#events.leave(entry)]
      return this.#relay.take({ event, expiresMs, origin, sent, refused })
    }
    // Not of a replay, which has a position of this process.
    if (event.seq <= this.#left.last) entry.deaths = this.#options.deathsOf?.(event.id) ?? 0
    this.#options.hub.deliverStored(event, expiresMs, origin, entry)
    if (entry.hasDeliveries) return
    if (stored === null) this.#events.forget(entry)
    else {
      // Perhaps its plugin did not boot: the event waits until there is a subscriber.
      this.#events.leave(entry)
      this.#unclaimed.add(event.event, entry.seq)
    }
  }

  // ── events that wait in the log ───────────────────────────────────────────

  /** Reads as many as the hub has room for: first what an earlier process has left, then what has been passed over. */
  async #read(): Promise<void> {
    if (this.#isReading || !this.#hasAdopted) return
    this.#isReading = true
    try {
      await this.#letGo()
      while (this.#hasRoom && !this.#isEnding) {
        if (this.#hasLeft) await this.#readLeft()
        else if (this.#passed.size > 0 && this.#shared?.isSettling !== true) await this.#readPassed()
        else if (this.#shared?.hasFree) this.#deliverRows(await this.#shared.nextFree())
        else break
        // A page at a time: the primary has requests to serve.
        await new Promise(setImmediate)
      }
      if (!this.#isEnding) await this.#shared?.step()
      this.#unclaimed.report()
      await this.#trySuspect()
      if (this.#shared !== null) await this.#held.look(steadyMs())
      if (this.#reconciler?.isDue(steadyMs())) await this.#reconcile(this.#reconciler)
    } catch (error) {
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isReading = false
    }
  }

  /** What is due waits for room, behind what has waited for that before. */
  async #letGo(): Promise<void> {
    const { database, memory } = this.#options.log
    await this.#due.look(database, Date.now(), memory.epoch)
    for (const seq of this.#due.due(Date.now())) this.#passed.push(seq)
    this.#countWaiting()
  }

  async #readLeft(): Promise<void> {
    if (this.#shared !== null) return this.#deliverRows(await this.#shared.nextLeft())
    const { from, last } = this.#left
    const rows = await readAfter(this.#options.log.database, from, last)
    this.#left.from = rows.length < PAGE_ROWS ? last : Number(rows.at(-1)!.row.seq)
    this.#countWaiting()
    this.#deliverRows(rows)
  }

  async #readPassed(): Promise<void> {
    this.#isReadingPassed = true
    const positions: number[] = []
    while (positions.length < PAGE_ROWS && this.#passed.size > 0) positions.push(this.#passed.shift()!)
    try {
      // Their rows may still have to be written.
      if (this.#held.hasFreed || this.#events.away.size > 0) await this.#writer.written()
      this.#deliverRows(await readInOrder(this.#options.log, positions))
    } catch (error) {
      for (const position of positions.reverse()) this.#passed.unshift(position)
      throw error
    } finally {
      this.#isReadingPassed = false
    }
    this.#countWaiting()
  }

  #deliverRows(rows: readonly StoredRow[]): void {
    for (const stored of rows) {
      const { row } = stored
      const event = asBytes(frameOf(row))
      const live = this.#events.live(event.seq)
      const shares = live?.sharesBack(this.#held.take(event.seq), stored.left) ?? null
      if (shares !== null) {
        this.#options.hub.deliverStored(event, Number(row.expires_ms), null, shares)
        continue
      }
      if (this.#events.knows(event.seq)) continue
      const dueMs = Number(row.due_ms)
      if (dueMs > 0 && this.#keepsUntilDue(event, dueMs)) {
        this.#recordAdopted(event, stored)
        continue
      }
      event.delayMs = Math.max(0, dueMs - Date.now())
      this.#held.learnReplay(event.seq)
      if (event.seq !== this.#suspects.tried && !this.#held.isHeld(event, stored.left)) {
        if (this.#suspects.holds(event.key)) {
          this.#suspects.keep(event.seq, event.key)
          continue
        }
        if (this.#relay === null && this.#suspects.isSuspicious(row, this.#options.deathsOf !== null)) {
          this.#suspects.add(event.seq, event.key)
          continue
        }
      }
      if (this.#relay === null && this.#events.away.keeps(event, stored.left)) this.#recordAdopted(event, stored)
      else this.#deliver(event, Number(row.expires_ms), null, stored)
    }
  }

  /** What is of another process waits here as if this one had published it. */
  #recordAdopted(event: EventFrame, { isRecorded }: StoredRow): void {
    if (this.#shared !== null && isRecorded !== true) this.#options.hub.record(event, null)
  }

  /** Tries the next suspect when the last one has ended. */
  async #trySuspect(): Promise<void> {
    if (this.#suspects.tried !== 0 && this.#events.knows(this.#suspects.tried)) return
    for (const position of this.#suspects.ended().toReversed()) this.#passed.unshift(position)
    const tried = this.#suspects.next()
    if (tried === 0) return
    try {
      const { log, hub } = this.#options
      this.#deliverRows(await readTried(tried, { log, hub, writer: this.#writer }))
      this.#countWaiting()
    } catch (error) {
      this.#suspects.putBack()
      throw error
    }
  }

  /** Finds events that nobody has handed on. */
  async #reconcile(reconciler: Reconciler): Promise<void> {
    const { database, memory } = this.#options.log
    const dueMs = this.#relay === null ? this.#due.movedMs : Number.MAX_SAFE_INTEGER
    const lost = await reconciler.look(database, steadyMs(), { next: memory.next, dueMs }, (seq) => this.#knows(seq))
    if (lost.length === 0) return
    const found = lost.length === 1 ? '1 stored event had' : `${lost.length} stored events had`
    const message = `${found} not been handed on: ${lost.length === 1 ? 'it is' : 'they are'} delivered now`
    this.#options.report('WARNING', message)
    for (const seq of lost) this.#passed.push(seq)
    this.#countWaiting()
  }

  #knows(seq: number): boolean {
    if (this.#events.holds(seq)) return true
    if (this.#passed.has(seq) || this.#suspects.has(seq)) return true
    return this.#unclaimed.has(seq)
  }

  /** A lane is gone: perhaps it has stored events that it could not hand on. */
  laneGone(): void {
    this.#reconciler?.laneGone(steadyMs())
    this.#due.laneGone(Date.now())
  }

  /** There is new code: it may subscribe to what nobody wanted before. */
  codeChanged(): void {
    for (const position of this.#unclaimed.takeAll()) this.#passed.push(position)
    this.#countWaiting()
  }

  /** Their key goes on: what waits in the log is delivered, in its order. */
  #freed(positions: Iterable<number>): void {
    for (const position of this.#held.free(positions)) this.#passed.push(position)
    this.#countWaiting()
    void this.#read()
  }

  /** A letter has been stored as an event again. */
  replaying(position: number): void {
    this.#events.replaying(position)
    this.#passed.push(position)
    this.#countWaiting()
    void this.#read()
  }

  #countWaiting(): void {
    const left = this.#left.last - this.#left.from
    this.#events.waiting = left + this.#passed.size + this.#suspects.size + this.#unclaimed.count + this.#due.count
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
