// The event store of a process, from opening to end.

import type { Queryable } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import { prepareTables } from '../../runtime/event-log/tables.ts'
import { BROKER } from '../../runtime/event-store/delivery-rows.ts'
import { dueMsOf, keyIn, staysInStore } from '../../runtime/event-store/event-columns.ts'
import { MEMBER_THREADS } from '../../runtime/event-store/server-tables.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { hubEventOf, type SubscriberThread } from '../events/consumer.ts'
import { POISON_DEATHS } from '../events/quarantine.ts'
import type { Cursor, Group } from './cursor.ts'
import { DueRows } from './due-rows.ts'
import { Groups } from './groups.ts'
import { Hand } from './hand.ts'
import { buryRow } from './malformed.ts'
import { Membership } from './membership.ts'
import { GROUP_MAX, KEY_MAX, Reader } from './reader.ts'
import { Relay } from './relay.ts'
import type { NewGroup } from './server-store.ts'
import { Settler } from './settler.ts'
import type { OwnedSlot, ParkedInSlot } from './slots.ts'
import { SqlStore } from './sql-store.ts'
import type { StoredDelivery } from './store.ts'
import type { EventStoreOptions } from './store-options.ts'
import { StoreTrial } from './store-trial.ts'

/** How long events are still given to a broker at the end, milliseconds. */
const RELAY_END_MS = 1000
/** How long a start waits until its groups are stored, milliseconds. */
const GROUPS_STORED_MS = 5000
/** Pause before the store is opened again, milliseconds. */
const REOPEN_MS = 1000
/** How often it checks groups, counts rows and tries what failed, milliseconds. */
const LOOK_MS = 1000
/** How long a start waits for the file, milliseconds: a process that is ending holds it a little longer. */
const CLAIM_MS = 1000
/** Maximum number of events kept for the trace until the subscribers are known. */
const UNRECORDED_MAX = 10_000
/** Every commit has succeeded or failed after this time, milliseconds. */
const COMMIT_MAX_MS = 30_000
/** Maximum number of replayed or deleted dead letters to remember. */
const RELEASED_MAX = 1000
/** Maximum time between counting a subscription and its message to the primary, milliseconds. */
const MESSAGE_MAX_MS = 1000
/** Inserts that began before the groups were known have ended after this time, milliseconds. */
const UNASSIGNED_MS = 120_000
/** On a file up to this many rows are counted at each look, and how often more are, milliseconds: no other process changes them. */
const COUNTED_OFTEN = 10_000
const RECOUNT_MS = 600_000
/** On a server counting rests this many times as long as it took, for each process. */
const COUNT_REST = 20
/** Rows of one page on a server: each page is a round trip. */
const SERVER_PAGE_ROWS = 256
/** A row runs alone after this many crashes; after more under the guardian, which knows what was running. */
const SUSPECT_CRASHES = 3
const GUARDED_SUSPECT_CRASHES = 6

const LOST =
  'Another process has taken over the events of this one, which had stood still or was cut off from the database for more than 10 s'
const BROKER_GROUP: Group = { id: BROKER, event: '', name: '', kind: 'broker' }

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'DATABASE_TAKEN'

/**
 * ```
 *   new ──► opening ──► open ──► serving ──► ended
 *             ▲  │
 *             └──┘ the database is locked, another process has it, a table is missing
 * ```
 */
type State = 'new' | 'opening' | 'open' | 'serving' | 'ended'

export class EventStore {
  readonly reader: Reader
  readonly groups: Groups
  readonly hand: Hand
  readonly #options: EventStoreOptions
  readonly #store: SqlStore
  readonly #clock: Clock
  readonly #settler: Settler
  readonly #due: DueRows
  readonly #relay: Relay | null
  readonly #trial: StoreTrial
  /** On a server: this process among those that share the database. */
  readonly #members: Membership | null
  #state: State = 'new'
  #hasNotedStart = false
  /** Dead letters replayed or deleted recently. */
  readonly #released = new Set<string>()
  /** Places of dead letters that are being replayed. */
  readonly #places = new Map<string, number>()
  /** When the rows are counted again, by the steady clock. */
  #countAtMs = 0
  /** Number of subscriptions after the boot that the hub knows. */
  #subscriptions = 0
  #groupsStored: Promise<void> = Promise.resolve()
  #refusals = 0
  #ringUntilMs = 0
  #begunMs = 0
  /** True once all subscribers of the boot are known. */
  #isAdopted = false
  #fault: string | null = null
  #isTaken = false
  /** Number of broken rules (EVENT_STORE_BROKEN). */
  #broken = 0
  #lookTimer: ReturnType<Clock['every']> | undefined
  /** Rows in the store, as far as is known. */
  #rows = 0
  /** Events that were published before the subscribers were known. */
  #unrecorded: { event: EventFrame; origin: SubscriberThread | null }[] = []
  /** Last recorded event of each thread. Events of one thread are in the order of their ids. */
  readonly #recorded = new Map<number, string>()

  constructor(options: EventStoreOptions) {
    const { hub, log, maxQueue, maxStored, report, write } = options
    const { clock, chance } = log
    this.#options = options
    this.#clock = clock
    const members = log.isOnServer ? this.#membership(options) : null
    const onFile = (): SqlStore =>
      new SqlStore(
        () => log.database,
        log.memory,
        () => this.#groupsAreStored(),
      )
    const store = members?.store ?? onFile()
    this.#members = members
    this.#store = store
    const member = members === null ? {} : { member: () => members.lease.id }
    this.#settler = new Settler({ write, clock, chance, log: report, ...member })
    this.#due = new DueRows({ store, settler: this.#settler, clock, report: (message) => report('WARNING', message) })
    this.#relay = options.relay === null ? null : new Relay({ send: options.relay, clock, report })
    const { deathsOf } = options
    const suspectCrashes = deathsOf === null ? SUSPECT_CRASHES : GUARDED_SUSPECT_CRASHES
    const warn = (message: string): void => report('WARNING', message)
    this.reader = new Reader({
      store,
      clock,
      maxQueue,
      ...(members === null ? {} : { pageRows: SERVER_PAGE_ROWS }),
      isInHand: (seq) => this.hand.has(seq),
      isSuspect: ({ seq, crashes, deaths }) =>
        (members !== null || seq <= this.hand.lastBefore) && crashes >= suspectCrashes && deaths < POISON_DEATHS,
      note: (row) => this.hand.note(row),
      untried: (seq) => this.hand.untried(seq),
      isTried: (seq) => this.hand.isTried(seq),
      give: (cursor, row) => this.#give(cursor, row),
      onMalformed: ({ seq, fault }) => void this.#bury(seq, fault),
      report,
    })
    const onBroken = (slot: OwnedSlot | undefined, message: string): void => {
      report('ERROR', `EVENT_STORE_BROKEN ${++this.#broken}: ${message}`, { code: 'EVENT_STORE_BROKEN' })
      if (slot !== undefined) members?.slots.lose(slot)
    }
    const parts = { hub, reader: this.reader, settler: this.#settler, clock, deathsOf, onBroken }
    this.hand = new Hand({
      ...parts,
      ...(members === null
        ? {}
        : {
            isLeaseValid: () => members.lease.isValid,
            isLeaseOver: () => members.lease.isOver,
            onLeft: (slot: OwnedSlot) => members.slots.rowLeft(slot),
            onParking: (letter: string, isStored: boolean) =>
              void (isStored ? members.storing.delete(letter) : members.storing.add(letter)),
          }),
    })
    this.groups = new Groups({
      hub,
      store,
      reader: this.reader,
      settler: this.#settler,
      clock,
      maxStored,
      onHere: (group) => (members === null ? this.#retry(() => this.#take(group)) : this.#share(group)),
      onNew: () => {
        log.memory.subscribing()
        this.subscribed()
      },
      ...(members === null
        ? {}
        : {
            join: (groups: readonly NewGroup[]) => this.#join(groups),
            onGone: (group: Group) => this.#unshare(group),
          }),
      report: warn,
    })
    hub.groups = this.groups
    this.#trial = new StoreTrial(log, report)
    const { onCommitted } = this.#settler
    this.#settler.onCommitted = (seqs, deleted) => {
      members?.rowsLeft(seqs)
      onCommitted(seqs, deleted)
      this.#rows -= deleted
      this.#count()
    }
    this.#settler.onLost = (slots) => {
      for (const slot of slots) members?.slots.lose(slot)
    }
    this.#settler.onLater = (seq, dueMs) => this.#due.noted(seq, dueMs)
    this.#settler.onPromoted = (groups) => {
      if (groups === null) this.reader.rangAll()
      else for (const group of groups) this.reader.rangGroup(group)
      this.#retry(() => this.#due.first())
    }
  }

  get isOpen(): boolean {
    return this.#options.log.memory.isOpen
  }

  /** Only makes the tables. @throws as `open` does */
  prepare(): Promise<void> {
    return prepareTables(this.#options.log.database, this.#options.mayMakeTables, () => this.#claimFile())
  }

  /** Why nothing can be stored; null if it can. */
  get fault(): string | null {
    return this.#fault ?? this.#trial.fault ?? this.#members?.fault ?? null
  }

  /** True while another process has the file: no transaction of this one can publish. */
  get isTaken(): boolean {
    return this.#isTaken
  }

  // ── open ──────────────────────────────────────────────────────────────────

  /**
   * Makes the tables and lets all threads write, now or as soon as the database allows it.
   * @throws DATABASE_TAKEN if all events go through the store and another process has the file
   */
  async open(): Promise<void> {
    this.#state = 'opening'
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
      if (!this.#isEnded) this.#clock.after(REOPEN_MS, () => void this.open()).unref()
    }
  }

  get #isEnded(): boolean {
    return this.#state === 'ended'
  }

  async #open(): Promise<void> {
    const store = this.#store
    const { memory } = this.#options.log
    // Claims the file itself before it changes tables.
    await this.prepare()
    await this.#claimFile()
    await this.#members?.join()
    this.hand.lastBefore = await store.lastSeq()
    if (!this.#hasNotedStart && this.#members === null) await store.noteStart(GROUP_MAX, KEY_MAX)
    this.#hasNotedStart = true
    this.#rows = await store.count()
    await this.groups.load()
    if (this.#members === null) for (const { seq, sinceMs } of await store.replays()) this.hand.replaying(seq, sinceMs)
    if (this.#isEnded) return
    this.#state = 'open'
    memory.open(this.#members?.lease.id ?? 0)
    this.#count()
    if (this.#isAdopted) await this.#serve()
  }

  /** @throws DATABASE_TAKEN while another process has the file */
  async #claimFile(): Promise<void> {
    const { database } = this.#store
    const isFree = (): boolean => database.claim?.() !== false
    await until(isFree, this.#clock.steadyMs() + CLAIM_MS, { clock: this.#clock })
    if (isFree()) return
    throw new HeddleError(
      'DATABASE_TAKEN',
      'Another process has the event log of this database file: SQLite serves one process. Stop that one, or use PostgreSQL, which serves any number',
    )
  }

  /** Delivers stored events, now that all subscribers are known. */
  async adopt(): Promise<void> {
    this.#isAdopted = true
    if (this.#rows > 0) this.#options.report('INFO', `${this.#rows} deliveries are stored and go on now`)
    for (const { event, origin } of this.#unrecorded) this.#record(event, origin)
    this.#unrecorded = []
    if (this.#state === 'open') await this.#serve()
  }

  async #serve(): Promise<void> {
    try {
      await this.#begin()
    } catch (error) {
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
      this.#clock.after(REOPEN_MS, () => void this.#serve()).unref()
    }
  }

  async #begin(): Promise<void> {
    if (this.#state !== 'open') return
    const { memory } = this.#options.log
    this.#store.areGroupsKnown = true
    this.groups.begin()
    this.#storeGroups()
    const stored = this.#groupsStored.then(() => {
      memory.recipients = 'groups'
    })
    if (this.#relay === null) await this.#store.takeBackRelayed()
    else {
      await this.#members?.store.joinBroker()
      this.reader.add(BROKER_GROUP)
      this.#members?.slots.add(BROKER_GROUP)
    }
    // A database that takes no changes does not hold up the start.
    await withTimeout(stored, GROUPS_STORED_MS, undefined, this.#clock)
    this.#begunMs = this.#clock.steadyMs()
    if (memory.recipients !== 'later') await this.#assign()
    await this.#due.open(this.hand.lastBefore)
    // It may have ended meanwhile.
    if (this.#state !== 'open') return
    this.#state = 'serving'
    this.reader.open()
    await this.#members?.look()
    this.#members?.doorbell.members()
    this.#lookTimer = this.#clock.every(LOOK_MS, () => this.#look()).unref()
  }

  /** Reads the rows of a group from now on, except those of blocked keys. */
  async #take(group: Group): Promise<void> {
    const parked = await this.#store.parkedKeys(group.id)
    // It may have gone meanwhile.
    if (!this.groups.isHere(group)) return
    const cursor = this.reader.add(group)
    for (const { key, deadLetter, place } of parked)
      if (!this.#released.has(deadLetter)) this.reader.park(cursor, key, deadLetter, place)
  }

  /** Gives rows that were stored before the groups were known to the groups. */
  async #assign(): Promise<void> {
    const store = this.#store
    if (!store.areGroupsKnown || !(await store.hasUnassigned())) return
    await store.assign()
    this.reader.rangAll()
  }

  /** A thread has counted a subscription, and the hub knows it now. */
  subscribed(): void {
    this.#subscriptions++
    // They are stored with those of the boot.
    if (!this.#store.areGroupsKnown) return
    // Events published meanwhile wait for all groups.
    this.#begunMs = this.#clock.steadyMs()
    this.#storeGroups()
    this.#groupsStored.then(() => this.#retry(() => this.#assign()))
  }

  #storeGroups(): void {
    const { memory } = this.#options.log
    const subscriptions = this.#subscriptions
    const store = async (): Promise<void> => {
      // A late one has been counted already.
      const stored = Math.min(subscriptions, memory.subscriptions)
      await this.#subscriptionsStored(stored)
      memory.groupsStored(stored)
    }
    this.#groupsStored = Promise.all([this.#settler.written(), this.groups.areJoined]).then(store)
  }

  /** On a server: lets other processes assign rows that waited for these groups. */
  async #subscriptionsStored(subscriptions: number): Promise<void> {
    for (; this.#members !== null && !this.#isEnded; await pause(this.#clock, REOPEN_MS)) {
      try {
        return await this.#members.store.subscriptionsStored(subscriptions)
      } catch {
        // The look of the membership reports why.
      }
    }
  }

  /** Resolves when the groups of all subscribers are stored. */
  async #groupsAreStored(): Promise<void> {
    await this.#groupsStored
    const { memory } = this.#options.log
    const limitMs = this.#clock.steadyMs() + MESSAGE_MAX_MS
    await until(() => memory.areGroupsStored || this.#isEnded, limitMs, { clock: this.#clock })
    if (memory.areGroupsStored || this.#isEnded) return
    // A thread died before it could say that somebody subscribes.
    this.#subscriptions = memory.subscriptions
    await this.#subscriptionsStored(this.#subscriptions)
    memory.groupsStored(this.#subscriptions)
  }

  // ── several processes ─────────────────────────────────────────────────────

  #membership({ log, replica, processes, report }: EventStoreOptions): Membership {
    return new Membership({
      database: () => log.database,
      clock: log.clock,
      memory: log.memory,
      groupsAreStored: () => this.#groupsAreStored(),
      replica,
      processes,
      reader: () => this.reader,
      isInHand: (seq) => this.hand.has(seq),
      slots: {
        suspects: GROUP_MAX,
        suspectsOfKey: KEY_MAX,
        onTaken: (slots, parked) => this.#slotsTaken(slots, parked),
        onDraining: (slot) => this.hand.takeBack(slot),
        onGone: (slot) => this.#slotGone(slot),
        written: () => this.#settler.written(),
      },
      onDue: (dueMs) => (dueMs > 0 ? this.#due.add(dueMs) : this.#retry(() => this.#due.again())),
      onLost: () => this.#lost(),
      report,
    })
  }

  #slotsTaken(slots: readonly OwnedSlot[], parked: readonly ParkedInSlot[]): void {
    if (slots.length === 0) return
    const { group } = slots[0]!
    const cursor = this.reader.cursor(group)
    if (cursor === undefined) return
    for (const { slot } of slots) cursor.dropKeysOf(slot)
    for (const { slot, key: column, deadLetter, place } of parked) {
      const key = keyIn(column)
      if (key === null) continue
      this.reader.park(cursor, key, deadLetter, place)
      cursor.keyOf(key).slot = slot
    }
    this.reader.reset(group)
  }

  #slotGone(slot: OwnedSlot): void {
    this.hand.takeBack(slot)
    this.reader.cursor(slot.group)?.dropKeysOf(slot.slot)
  }

  /** @returns null if this process ends first */
  async #join(groups: readonly NewGroup[]): Promise<number[] | null> {
    for (let isFirst = true; !this.#isEnded; isFirst = false) {
      try {
        return await this.#members!.store.join(groups)
      } catch (error) {
        const message = `The groups of subscribers are not stored, it is tried again: ${messageOf(error)}`
        if (isFirst) this.#options.report('WARNING', message)
        await pause(this.#clock, REOPEN_MS)
      }
    }
    return null
  }

  /** Takes part in a group, now that it is stored. */
  #share(group: Group): void {
    const { slots, doorbell } = this.#members!
    this.reader.add(group)
    if (group.kind === 'group') slots.add(group)
    else slots.addOwn(group)
    if (group.kind !== 'group') this.reader.reset(group.id)
    if (this.#state !== 'serving') return
    void this.#members!.look()
    doorbell.members()
  }

  #unshare(group: Group): void {
    const { slots, store, doorbell } = this.#members!
    slots.remove(group)
    if (group.kind !== 'group' || this.#isEnded) return
    this.#retry(async () => {
      await store.leave([group.id])
      doorbell.members()
    })
  }

  /** Others have removed this member. */
  #lost(): void {
    if (this.#isAdopted) return this.#options.onLost(LOST)
    this.#options.report('WARNING', `${LOST}: it does not deliver events yet, and takes the log anew`)
    this.#fault = 'the event log is taken anew'
    this.#members!.lease.reset()
    void this.open()
  }

  #look(): void {
    this.#trial.look(this.#clock.steadyMs())
    this.#retry(() => this.groups.look())
    if (this.#clock.steadyMs() - this.#begunMs > UNASSIGNED_MS) this.#options.log.memory.forgetLater()
    this.#retry(() => this.#assign())
    this.#retry(() => this.#recount())
    this.#ringRefused()
  }

  /** A commit with an unknown outcome may have stored rows without a doorbell. */
  #ringRefused(): void {
    const { refusals } = this.#options.log.memory
    const nowMs = this.#clock.steadyMs()
    if (refusals !== this.#refusals) this.#ringUntilMs = nowMs + COMMIT_MAX_MS
    this.#refusals = refusals
    if (nowMs < this.#ringUntilMs) this.reader.rangAll()
  }

  /** Counts the rows anew: outcomes of commits may be unknown, and others store and delete rows. */
  async #recount(): Promise<void> {
    const startMs = this.#clock.steadyMs()
    if (startMs < this.#countAtMs) return
    this.#countAtMs = Number.POSITIVE_INFINITY
    try {
      this.#rows = await this.#store.count()
    } finally {
      const nowMs = this.#clock.steadyMs()
      this.#countAtMs = nowMs + this.#countRestMs(nowMs - startMs)
    }
    this.#count()
  }

  #countRestMs(tookMs: number): number {
    const members = this.#members?.size
    // At each look.
    if (members === undefined) return this.#rows > COUNTED_OFTEN ? RECOUNT_MS : -tookMs
    return COUNT_REST * members * tookMs
  }

  #retry(run: () => Promise<void>): void {
    run().catch((error) => {
      this.#options.report('WARNING', `The event log cannot be read, it is tried again: ${messageOf(error)}`)
      if (!this.#isEnded) this.#clock.after(LOOK_MS, () => this.#retry(run)).unref()
    })
  }

  /** Tells publishers how many rows are stored. */
  #count(): void {
    const { memory } = this.#options.log
    memory.stored = Math.max(0, this.#rows)
    // Dead letters that block a key are never dropped, so they share the bound of the rows behind them.
    const { rows, keys } = this.reader.parked
    memory.parked = Math.max(rows, keys)
  }

  // ── events ────────────────────────────────────────────────────────────────

  /** A thread has stored an event. @param event without its payload */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (this.#isAdopted) this.#record(event, origin)
    else if (this.#unrecorded.length < UNRECORDED_MAX) this.#unrecorded.push({ event, origin })
    const isRelayed = this.#isRelayed(event)
    this.#rows += isRelayed ? 1 : this.groups.countOf(event.event)
    this.#count()
    const dueMs = dueMsOf(event)
    this.#members?.ring(isRelayed ? '' : event.event, dueMs)
    if (dueMs > 0) this.#due.add(dueMs)
    else this.reader.rang(isRelayed ? '' : event.event)
  }

  #isRelayed(event: EventFrame): boolean {
    return this.#relay !== null && !staysInStore(event)
  }

  /** The driver records those of the broker, when it has them. */
  #record(event: EventFrame, origin: SubscriberThread | null): void {
    if (origin !== null) this.#recorded.set(origin.threadId, event.id)
    if (!this.#isRelayed(event)) this.#options.hub.record(event, origin)
  }

  /** Records an event whose lane died before it could send the doorbell. */
  #recordLost({ group }: Cursor, { seq, thread: number, event }: StoredDelivery): void {
    const member = this.#members?.lease.id ?? 0
    if (seq <= this.hand.lastBefore || Math.floor(number / MEMBER_THREADS) !== member) return
    const thread = number % MEMBER_THREADS
    if ((this.#recorded.get(thread) ?? '') >= event.id || this.#options.isAlive(thread)) return
    this.#recorded.set(thread, event.id)
    if (group.kind !== 'broker') this.#options.hub.record(event, null)
  }

  #give(cursor: Cursor, row: StoredDelivery): boolean {
    // The slot was lost or began to drain since the page was read.
    if (row.slot !== undefined && row.slot.state !== 'held') return false
    this.#recordLost(cursor, row)
    if (cursor.group.kind !== 'broker') return this.hand.give(cursor, row)
    const { event, seq, expiresMs } = row
    event.seq = seq
    return this.hand.relay(cursor, row, (sent, refused) =>
      this.#relay!.take({ event: hubEventOf(event, expiresMs, null), expiresMs, origin: null, sent, refused }),
    )
  }

  async #bury(seq: number, fault: string): Promise<void> {
    const { report, log } = this.#options
    try {
      await buryRow(this.#store.database, log, seq, fault)
      report('WARNING', `A row of heddle_delivery is set aside (seq ${seq}): ${fault}; it is a dead letter`)
      this.#rows--
    } catch (error) {
      report(
        'WARNING',
        `A malformed row of heddle_delivery was not made a dead letter (seq ${seq}): ${messageOf(error)}`,
      )
    }
  }

  // ── dead letters ──────────────────────────────────────────────────────────

  /** Returns the key of a dead letter and how many rows wait behind it. */
  async waitingFor(event: string, group: string, key: string): Promise<{ key: string; waiting: number } | object> {
    const id = this.groups.idOf(event, group)
    return id === undefined ? {} : { key, waiting: await this.#store.countOfKey(id, key) }
  }

  /** Makes a dead letter a row of its group again, at its old place. @returns the number of the row; null if the group is unknown */
  async moveIn(tx: Queryable, letter: string, group: string, frame: EventFrame): Promise<number | null> {
    const id = this.groups.idOf(frame.event, group)
    if (id === undefined) return null
    const { seq, place } = await this.#store.moveIn(tx, letter, id, frame, this.#clock.nowMs())
    this.#places.set(letter, place)
    return seq
  }

  /** The replay is committed. */
  replaying(letter: string, event: string, group: string, key: string | null, seq: number): void {
    const id = this.groups.idOf(event, group)
    const place = this.#places.get(letter) ?? 0
    this.#places.delete(letter)
    if (id === undefined) return
    this.#release(letter)
    this.#rows++
    this.#members?.doorbell.letters()
    if (this.#members !== null) return this.#replayed(id, letter, place, key)
    this.hand.replaying(seq, this.#clock.nowMs())
    this.reader.unpark(id, letter)
    this.reader.back(id, place, key)
  }

  /** If this process owns the slot, it reads the row at once; else the owner hears of it. */
  #replayed(group: number, letter: string, place: number, key: string | null): void {
    this.reader.unpark(group, letter)
    this.reader.late(group, place, key)
    this.reader.rangGroup(group)
  }

  /** A dead letter is deleted. */
  unpark(letter: string, event: string, group: string): void {
    const id = this.groups.idOf(event, group)
    this.#release(letter)
    this.#members?.doorbell.letters()
    if (id === undefined) return
    this.reader.unpark(id, letter)
    this.#count()
  }

  /** Remembers the dead letter: a read of blocked keys that is under way may still return it. */
  #release(letter: string): void {
    if (this.#released.size >= RELEASED_MAX) this.#released.clear()
    this.#released.add(letter)
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** Reads nothing more: this process ends, and what the hub gives up stays in the store. */
  end(): void {
    this.#state = 'ended'
    this.hand.end()
    this.reader.end()
    this.#due.end()
    this.#members?.end()
    this.#clock.cancel(this.#lookTimer)
  }

  /** Writes the remaining outcomes. The next process delivers what is left. */
  async close(deadlineMs: number): Promise<void> {
    this.end()
    const clock = this.#clock
    const relayedMs = Math.min(deadlineMs, clock.steadyMs() + RELAY_END_MS)
    await until(() => this.#relay?.isIdle !== false, relayedMs, { clock })
    this.#relay?.close()
    this.hand.takeBackTrials()
    await until(() => this.#settler.isIdle, deadlineMs, { clock })
    const isIdle = this.#settler.isIdle
    this.#settler.close()
    if (this.isOpen && isIdle && this.#members === null) await this.#store.noteEnd().catch(() => {})
  }

  /** Leaves the other processes, after the lanes have ended. */
  async leave(): Promise<void> {
    await this.#members?.leave()
  }
}
