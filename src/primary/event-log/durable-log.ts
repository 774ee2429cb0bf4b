import type { LogLevel } from '../../contracts/logger.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { messageOf } from '../../core/errors/description.ts'
import { until } from '../../core/schedule/until.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { frameOf } from '../../runtime/event-log/event-rows.ts'
import { prepareTables } from '../../runtime/event-log/tables.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { LogChanges } from '../../transport/log-changes.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import { asBytes } from '../events/event-driver.ts'
import type { Hub } from '../events/hub.ts'
import { ChangeWriter } from './change-writer.ts'
import { countEvents, lastPosition, PAGE_ROWS, readAfter, readListed, type StoredRow } from './log-reader.ts'
import { type StoredEvent, StoredEvents } from './stored-events.ts'

/** Stored deliveries that the hub holds at most, as a share of EVENT_BUS_MAX_QUEUE: the rest waits in the log. */
const HELD_SHARE = 0.5
/** How often it is asked whether there is room for more of the log, milliseconds. */
const REFILL_MS = 20
/** Pause before the log is opened again, milliseconds. */
const REOPEN_MS = 1000
/** An event that so many processes have died with is tried alone from then on. */
const SUSPICIOUS_RECOVERIES = 3
/** Longest time of Node's timers, milliseconds. */
const TIMER_MAX_MS = 2_147_483_647

export interface DurableLogOptions {
  hub: Hub
  log: EventLog
  maxQueue: number
  /** DB_AUTO_MIGRATE. */
  mayMakeTables: boolean
  /** Commits what has become of events. */
  write: (changes: LogChanges) => Promise<void>
  report: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

/**
 * The durable log of this process, in its primary. Events come here after their commit, on their way to the hub, which delivers from memory.
 * The log itself is read only at the start, and for events that the hub had no room for.
 */
export class DurableLog {
  readonly #options: DurableLogOptions
  readonly #writer: ChangeWriter
  readonly #events: StoredEvents
  /** Positions of events that had no room, in the order in which they came. */
  readonly #passed = new Fifo<number>()
  /** What an earlier process has left: events after `from`, up to `last`. */
  #left = { from: 0, last: 0, events: 0 }
  #hasAdopted = false
  #isReading = false
  /** Events of an earlier process that nobody here subscribes to, by name: they stay in the log. */
  readonly #unclaimed = new Map<string, number[]>()
  #hasNewUnclaimed = false
  #timer: NodeJS.Timeout | undefined
  #isEnding = false
  #fault: string | null = null

  constructor(options: DurableLogOptions) {
    this.#options = options
    const { log, write, report } = options
    this.#writer = new ChangeWriter({ write, log: report })
    this.#events = new StoredEvents(this.#writer, log.memory)
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
    return this.#fault
  }

  /** Makes the tables, and lets all threads write: now, or as soon as the database lets it. */
  async open(): Promise<void> {
    try {
      await this.#open()
      if (this.#fault !== null) this.#options.report('INFO', 'The event log is open')
      this.#fault = null
    } catch (error) {
      const fault = `the event log is not open: ${messageOf(error)}`
      if (fault !== this.#fault) this.#options.report('WARNING', fault)
      this.#fault = fault
      if (!this.#isEnding) setTimeout(() => void this.open(), REOPEN_MS).unref()
    }
  }

  async #open(): Promise<void> {
    const { log } = this.#options
    await this.prepare()
    const last = await lastPosition(log.database)
    const events = last === 0 ? 0 : await countEvents(log.database)
    this.#left = { from: 0, last, events }
    this.#events.waiting = events
    await this.#noteStart()
    log.memory.open(last + 1)
  }

  /** An event that is still there after an end without order has perhaps caused it. */
  async #noteStart(): Promise<void> {
    const { database } = this.#options.log
    const row = await database.queryOne<{ value: number }>("SELECT value FROM heddle_log WHERE name = 'in_use'")
    if (Number(row?.value ?? 0) === 1) await database.execute('UPDATE heddle_event SET recovered = recovered + 1')
    await this.#setInUse(1)
  }

  #setInUse(value: 0 | 1): Promise<unknown> {
    return this.#options.log.database.execute(
      "INSERT INTO heddle_log (name, value) VALUES ('in_use', $1) ON CONFLICT (name) DO UPDATE SET value = $1",
      [value],
    )
  }

  /** All subscribers are known: delivers what an earlier process has left. */
  adopt(): void {
    const { events } = this.#left
    if (events > 0) this.#options.report('INFO', `${events} stored events are delivered from here on`)
    this.#hasAdopted = true
    this.#timer = setInterval(() => void this.#read(), REFILL_MS).unref()
    void this.#read()
  }

  // ── events that have just been committed ──────────────────────────────────

  /** @param event its payload is a string of bytes, as the hub keeps it */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (this.#events.knows(event.seq) || this.#isEnding) return
    if (this.#mustWait(event)) {
      this.#passed.push(event.seq)
      this.#countWaiting()
      return
    }
    const { timestampMs, delayMs, ttlMs } = event
    this.#deliver(event, ttlMs === 0 ? 0 : timestampMs + delayMs + ttlMs, origin, null)
  }

  /** Behind events of its key that wait already, and where the hub has enough. */
  #mustWait({ key }: EventFrame): boolean {
    if (!this.#hasRoom) return true
    return key !== null && (this.#passed.size > 0 || this.#left.events > 0)
  }

  get #hasRoom(): boolean {
    return this.#options.hub.pending < this.#options.maxQueue * HELD_SHARE
  }

  #deliver(event: EventFrame, expiresMs: number, origin: SubscriberThread | null, stored: StoredRow | null): void {
    const left = stored?.left ?? null
    const entry = this.#events.begin(event.seq, left)
    if (Number(stored?.row.recovered ?? 0) >= SUSPICIOUS_RECOVERIES) entry.deaths = 1
    this.#options.hub.deliverStored(event, expiresMs, origin, entry)
    if (entry.hasDeliveries) return
    if (stored === null) this.#events.forget(entry)
    else this.#leave(entry, event.event)
  }

  // ── events that wait in the log ───────────────────────────────────────────

  /** Reads as many as the hub has room for: first what an earlier process has left, then what has been passed over. */
  async #read(): Promise<void> {
    if (this.#isReading || !this.#hasAdopted) return
    this.#isReading = true
    try {
      while (this.#hasRoom && !this.#isEnding) {
        if (this.#left.events > 0) await this.#readLeft()
        else if (this.#passed.size > 0) await this.#readPassed()
        else break
      }
      this.#reportUnclaimed()
    } catch (error) {
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isReading = false
    }
  }

  async #readLeft(): Promise<void> {
    const { from, last } = this.#left
    const rows = await readAfter(this.#options.log.database, from, last)
    this.#left.from = Number(rows.at(-1)?.row.seq ?? last)
    this.#left.events = rows.length < PAGE_ROWS ? 0 : Math.max(1, this.#left.events - rows.length)
    this.#countWaiting()
    this.#deliverRows(rows)
  }

  async #readPassed(): Promise<void> {
    const positions: number[] = []
    while (positions.length < PAGE_ROWS && this.#passed.size > 0) positions.push(this.#passed.shift()!)
    try {
      this.#deliverRows(await readListed(this.#options.log.database, positions))
    } catch (error) {
      for (const position of positions.reverse()) this.#passed.unshift(position)
      throw error
    }
    this.#countWaiting()
  }

  #deliverRows(rows: readonly StoredRow[]): void {
    for (const stored of rows) {
      const { row } = stored
      const event = asBytes(frameOf(row))
      if (this.#events.knows(event.seq)) continue
      const dueMs = Number(row.due_ms)
      if (dueMs > 0) event.delayMs = Math.min(TIMER_MAX_MS, Math.max(0, dueMs - Date.now()))
      this.#deliver(event, Number(row.expires_ms), null, stored)
    }
  }

  /** Perhaps its plugin did not boot: the event waits until there is a subscriber. */
  #leave(entry: StoredEvent, event: string): void {
    this.#events.leave(entry)
    const positions = this.#unclaimed.get(event) ?? []
    if (positions.push(entry.seq) === 1) this.#unclaimed.set(event, positions)
    this.#hasNewUnclaimed = true
  }

  #reportUnclaimed(): void {
    if (!this.#hasNewUnclaimed) return
    this.#hasNewUnclaimed = false
    for (const [event, positions] of this.#unclaimed) {
      const message = `Nobody subscribes to ${event}: ${positions.length} stored events wait until somebody does`
      this.#options.report('WARNING', message)
    }
  }

  /** There is new code: it may subscribe to what nobody wanted before. */
  codeChanged(): void {
    for (const positions of this.#unclaimed.values()) for (const position of positions) this.#passed.push(position)
    this.#unclaimed.clear()
    this.#countWaiting()
  }

  /** An event that has been stored without coming here. */
  takePosition(position: number): void {
    this.#passed.push(position)
    this.#countWaiting()
    void this.#read()
  }

  #countWaiting(): void {
    let unclaimed = 0
    for (const { length } of this.#unclaimed.values()) unclaimed += length
    this.#events.waiting = this.#left.events + this.#passed.size + unclaimed
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** This process ends: nothing more is read, and what the hub gives up stays in the log. */
  end(): void {
    this.#isEnding = true
    this.#events.end()
    clearInterval(this.#timer)
  }

  /** Writes what is still to be written. Everything that is left in the log is delivered by the next process. */
  async close(deadlineMs: number): Promise<void> {
    this.end()
    await until(() => this.#writer.isIdle, deadlineMs)
    const isIdle = this.#writer.isIdle
    this.#writer.close()
    if (this.isOpen && isIdle) await this.#setInUse(0).catch(() => {})
  }
}
