// The durable log of a process, from its opening to its end.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import { prepareTables } from '../../runtime/event-log/tables.ts'
import { Relay } from '../event-store/relay.ts'
import type { DurableLogOptions } from '../event-store/store-options.ts'
import { StoreTrial } from '../event-store/store-trial.ts'
import { DueEvents } from './due-events.ts'
import { Feed } from './feed.ts'
import { KnownGroups } from './known-groups.ts'
import { OpenLetters } from './open-letters.ts'
import { Reconciler } from './positions.ts'
import { SetAside } from './set-aside.ts'
import { Settler } from './settler.ts'
import { SharedLog } from './shared-log.ts'
import { SqlLog } from './sql-log.ts'
import { StoredEvents } from './stored-events.ts'

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'DATABASE_TAKEN'

/** How long events are still given to a broker at the end, milliseconds. */
const RELAY_END_MS = 1000
/** How long a start waits until its subscribers are stored, milliseconds. */
const GROUPS_STORED_MS = 5000
/** Pause before the log is opened again, milliseconds. */
const REOPEN_MS = 1000

/**
 * The durable log of this process, in its primary: it is opened, takes part, and is closed in order. What comes of it to the hub is the affair
 * of its feed.
 */
export class DurableLog {
  readonly feed: Feed
  readonly #options: DurableLogOptions
  readonly #log: SqlLog
  readonly #clock: Clock
  readonly #settler: Settler
  readonly #events: StoredEvents
  readonly #letters: OpenLetters
  readonly #due: DueEvents
  readonly #groups: KnownGroups
  readonly #relay: Relay | null
  readonly #storeTrial: StoreTrial
  readonly #setAside: SetAside
  #isEnding = false
  #fault: string | null = null
  #isTaken = false

  constructor(options: DurableLogOptions) {
    this.#options = options
    const { hub, write, maxStored, report } = options
    const log = new SqlLog(options.log)
    this.#log = log
    const { clock, chance } = log
    this.#clock = clock
    this.#due = new DueEvents(log, () => void this.feed.read())
    const settler = new Settler({ write, clock, chance, log: report })
    const groups = new KnownGroups({
      hub,
      log,
      settler,
      maxStored,
      onReturned: (event, group) => this.feed.groupReturned(event, group),
      onForgotten: (event, group) => this.#events.forgetGroup(event, group),
      report: (message) => report('WARNING', message),
    })
    this.#settler = settler
    this.#groups = groups
    this.#storeTrial = new StoreTrial(options.log, report)
    this.#setAside = new SetAside(log, report)
    this.#events = new StoredEvents(settler, log.memory, hub.parked, groups, this.#due)
    this.#relay = options.relay === null ? null : new Relay({ send: options.relay, clock, report })
    // A broker knows its groups itself.
    if (this.#relay === null) hub.groups = groups
    this.#letters = new OpenLetters({
      hub,
      log,
      events: this.#events,
      setAside: this.#setAside,
      isAtHand: (seq) => this.feed.knows(seq),
    })
    this.feed = new Feed({
      options,
      log,
      events: this.#events,
      settler,
      groups,
      due: this.#due,
      letters: this.#letters,
      setAside: this.#setAside,
      relay: this.#relay,
      onTurn: () => this.#storeTrial.look(clock.steadyMs()),
    })
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
    return this.#fault ?? this.#storeTrial.fault ?? this.feed.shared?.members.fault ?? null
  }

  /** Another process has it: until that one is gone, no transaction of this one publishes. */
  get isTaken(): boolean {
    return this.#isTaken
  }

  /**
   * Makes the tables, and lets all threads write: now, or as soon as the database lets it.
   * @throws DATABASE_TAKEN when all events go through the log, and another process has it
   */
  async open(): Promise<void> {
    try {
      await this.#open()
      if (this.#fault !== null) this.#options.report('INFO', 'The event log is open')
      this.#due.begin(this.#clock.nowMs())
      this.#fault = null
      this.#isTaken = false
    } catch (error) {
      this.#isTaken = isTaken(error)
      if (this.#options.isRequired && this.#isTaken) throw error
      const fault = `the event log is not open: ${messageOf(error)}`
      if (fault !== this.#fault) this.#options.report('WARNING', fault)
      this.#fault = fault
      if (!this.#isEnding) this.#clock.after(REOPEN_MS, () => void this.open()).unref()
    }
  }

  async #open(): Promise<void> {
    const log = this.#log
    await this.prepare()
    this.#due.begin(this.#clock.nowMs())
    if (log.isShared) return this.#join()
    await log.claimFile()
    const { first, last } = await this.feed.findLeft()
    this.feed.trials.uncleanEnds = await log.noteStart(first, last)
    await this.#letters.learn()
    if (this.#relay === null) await this.#groups.learn()
    log.memory.open(last + 1)
    if (this.feed.hasAdopted) this.#groups.begin(this.#clock.nowMs())
  }

  async #join(): Promise<void> {
    const parts = {
      events: this.#events,
      letters: this.#letters,
      settler: this.#settler,
      passed: this.feed.passed,
      freed: this.feed.freed,
      setAside: this.#setAside,
    }
    const options = { ...this.#options, onLost: (message: string) => this.#lost(message) }
    this.feed.shared ??= new SharedLog(options, { ...parts, onFree: () => void this.feed.read() })
    if (this.#relay === null) await this.#groups.learn()
    await this.feed.shared.join()
    this.feed.reconciler ??= new Reconciler(this.#log, this.#log.memory.next)
    if (this.feed.hasAdopted) await this.#takePart()
  }

  /** A start that takes long, for want of a core, is no reason to end: the next one would take as long. */
  #lost(message: string): void {
    if (this.feed.hasAdopted) return this.#options.onLost(message)
    this.#options.report('WARNING', `${message}: it does not deliver events yet, and takes the log anew`)
    this.#fault = 'the event log is taken anew'
    this.feed.shared!.reset()
    void this.open()
  }

  /** What others have left, or cannot deliver, comes before what is published from now on, as far as it is known. */
  async #takePart(): Promise<void> {
    if (this.#relay === null && this.#groups.begin(this.#clock.nowMs())) await this.#groupsStored()
    this.feed.shared?.adopt()
    if (this.#relay === null) await this.#groups.findReleased()
  }

  /** Where this process ends at once, the next one knows for whom its events wait. A database that takes no changes does not hold up the start. */
  async #groupsStored(): Promise<void> {
    await withTimeout(this.#settler.written(), GROUPS_STORED_MS, undefined, this.#clock)
  }

  /** All subscribers are known: delivers what an earlier process has left. */
  async adopt(): Promise<void> {
    const { size } = this.feed
    if (size > 0) this.#options.report('INFO', `Up to ${size} events are in the log and are delivered now`)
    this.feed.adopt()
    const failed = (error: unknown): void =>
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
    if (this.isOpen) await this.#takePart().catch(failed)
    this.feed.begin()
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** This process ends: nothing more is read, and what the hub gives up stays in the log. */
  end(): void {
    this.#isEnding = true
    this.#events.end()
    this.feed.end()
    this.#due.close()
  }

  /** Writes what is still to be written. Everything that is left in the log is delivered by the next process. */
  async close(deadlineMs: number): Promise<void> {
    this.end()
    const clock = this.#clock
    const relayedMs = Math.min(deadlineMs, clock.steadyMs() + RELAY_END_MS)
    await until(() => this.#relay?.isIdle !== false, relayedMs, { clock })
    this.#relay?.close()
    await until(() => this.#settler.isIdle, deadlineMs, { clock })
    const isIdle = this.#settler.isIdle
    this.#settler.close()
    if (this.feed.shared === null && this.isOpen && isIdle) await this.#log.noteEnd().catch(() => {})
  }

  /** The lanes have ended: nothing more is stored. */
  async leave(): Promise<void> {
    await this.feed.shared?.leave()
  }
}
