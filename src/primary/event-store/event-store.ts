// The event store of a process, from opening to end.

import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { until, withTimeout } from '../../core/schedule/waiting.ts'
import { CLOCK_MS, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { BROKER } from '../../runtime/event-store/delivery-rows.ts'
import { dueMsOf, keyIn, staysInStore } from '../../runtime/event-store/event-columns.ts'
import { pruneReports } from '../../runtime/event-store/report-rows.ts'
import { prepareTables } from '../../runtime/event-store/tables.ts'
import { isUrgent } from '../../runtime/events/shares.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { hubEventOf, type SubscriberThread } from '../events/consumer.ts'
import { POISON_DEATHS } from '../events/quarantine.ts'
import type { Cursor, Group } from './cursor.ts'
import { DueRows } from './due-rows.ts'
import { EarlyRows } from './early-rows.ts'
import { Groups } from './groups.ts'
import { Hand } from './hand.ts'
import { buryRow } from './malformed.ts'
import { Membership } from './membership.ts'
import { GROUP_MAX, KEY_MAX, Reader } from './reader.ts'
import { Relay } from './relay.ts'
import { Replays } from './replays.ts'
import { RowCount } from './row-count.ts'
import type { NewGroup } from './server-store.ts'
import { Settler } from './settler.ts'
import { prunePermits } from './shared-permits.ts'
import type { OwnedSlot, ParkedInSlot } from './slots.ts'
import { SqlStore } from './sql-store.ts'
import type { StoredDelivery } from './store.ts'
import type { EventStoreOptions } from './store-options.ts'
import { StoreTrial } from './store-trial.ts'
import { StoredCancels } from './stored-cancels.ts'
import { StoredPauses } from './stored-pauses.ts'
import { StoredRecords } from './stored-records.ts'

/** Time for which events are still sent to a broker at the end, milliseconds. */
const RELAY_END_MS = 1000
/** Time for which a start waits for its groups to be stored, milliseconds. */
const GROUPS_STORED_MS = 5000
/** Pause before the store is opened again, milliseconds. */
const REOPEN_MS = 1000
/** Interval at which it checks groups, counts rows and repeats failed work, milliseconds. */
const LOOK_MS = 1000
/** Interval at which it looks for rows for a broker that no process has any more, milliseconds. */
const RELAYED_MS = 10_000
/** Time for which a start waits for the file, milliseconds: a process that is ending holds it a little longer. */
const CLAIM_MS = 1000
/** Every commit has succeeded or failed after this time, milliseconds. */
const COMMIT_MAX_MS = 30_000
/** Rows of one page on a server: each page is a round trip. */
const SERVER_PAGE_ROWS = 256
/** A row runs alone after this many crashes. Under the guardian, which knows the running handlers, it takes more. */
const SUSPECT_CRASHES = 3
const GUARDED_SUSPECT_CRASHES = 6

const LOST =
  'Another process has taken over the events of this one, which had stood still or was cut off from the database for more than 10 s'
const BROKER_GROUP: Group = { id: BROKER, event: '', name: '', kind: 'broker' }

const isTaken = (error: unknown): boolean => error instanceof HeddleError && error.code === 'DATABASE_TAKEN'

/**
 * ```
 *   new ──► opening ──► open ──► serving ──► ended
 *            ▲   │▲       │
 *            └───┘└───────┘ others have removed this member before it served
 *            the database is locked, another process has it, a table is missing
 * ```
 * Each of them ends with the process.
 */
type State = 'new' | 'opening' | 'open' | 'serving' | 'ended'

/** Interval at which reports of ended events are deleted, milliseconds. */
const PRUNE_MS = 60_000

export class EventStore {
  readonly reader: Reader
  readonly groups: Groups
  readonly hand: Hand
  readonly replays: Replays
  readonly cancels: StoredCancels
  readonly pauses: StoredPauses
  readonly #options: EventStoreOptions
  readonly #store: SqlStore
  readonly #clock: Clock
  readonly #settler: Settler
  readonly #due: DueRows
  readonly #relay: Relay | null
  readonly #trial: StoreTrial
  readonly #rows: RowCount
  readonly #early: EarlyRows
  readonly #records: StoredRecords
  /** On a server: membership among the processes that share the database. */
  readonly #members: Membership | null
  #state: State = 'new'
  #hasNotedStart = false
  #refusals = 0
  #ringUntilMs = 0
  /** By the steady clock. */
  #prunedMs = 0
  #relayedAtMs = 0
  /** True once all subscribers of the boot are known. */
  #isAdopted = false
  #fault: string | null = null
  /** Number of broken rules (EVENT_STORE_BROKEN). */
  #broken = 0
  #lookTimer: ReturnType<Clock['every']> | undefined

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
        () => this.#early.areGroupsStored(),
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
      isPaused: ({ event, name }) => hub.pauses.has(event, name),
      isSuspect: ({ seq, crashes, deaths }) =>
        (members !== null || seq <= this.hand.lastBefore) && crashes >= suspectCrashes && deaths < POISON_DEATHS,
      note: (row) => this.hand.note(row),
      untried: (seq) => this.hand.untried(seq),
      isTried: (seq) => this.hand.isTried(seq),
      give: (cursor, row) => this.#give(cursor, row),
      hearing: (page) => this.cancels.hearing(page),
      onMalformed: ({ seq, fault }) => void this.#bury(seq, fault),
      areTurnsTaken: ({ event, name }) => hub.areTurnsTaken(event, name),
      inHandOf: (group) => this.hand.of(group),
      roomOfShare: ({ event, name }, share) => hub.roomOfShare(event, name, share),
      report,
    })
    store.onAssigned = () => this.reader.rangAll()
    const onBroken = (slot: OwnedSlot | undefined, message: string): void => {
      report('ERROR', `EVENT_STORE_BROKEN ${++this.#broken}: ${message}`, { code: 'EVENT_STORE_BROKEN' })
      if (slot !== undefined) members?.slots.lose(slot)
    }
    const isCancelled = (row: StoredDelivery): boolean => this.cancels.has(row, this.reader.readMs)
    const parts = { hub, reader: this.reader, settler: this.#settler, clock, deathsOf, onBroken, isCancelled }
    this.hand = new Hand({
      ...parts,
      ...(members === null
        ? {}
        : {
            isLeaseValid: () => members.lease.isValid,
            isLeaseOver: () => members.lease.isOver,
            onLeft: (slot: OwnedSlot) => members.slots.rowLeft(slot),
            onBlocking: (deadLetter: string, isStored: boolean) =>
              void (isStored ? members.storing.delete(deadLetter) : members.storing.add(deadLetter)),
          }),
    })
    this.groups = new Groups({
      hub,
      store,
      reader: this.reader,
      settler: this.#settler,
      clock,
      memory: log.memory,
      maxStored,
      heldBack: (...of) => members?.doorbell.heldBack(...of),
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
    const { reader, groups, hand } = this
    const { memory } = log
    this.#rows = new RowCount({ store, reader, memory, clock, members: () => members?.size ?? null })
    this.replays = new Replays({ store, groups, reader, hand, rows: this.#rows, clock, members })
    this.cancels = new StoredCancels({
      hub,
      hand,
      rows: this.#rows,
      clock,
      database: () => log.database,
      index: options.index,
      onTaken: () => this.reader.looksAgain(),
      members,
    })
    this.pauses = new StoredPauses({ hub, hand, reader, groups, database: () => log.database, members })
    const isEnded = (): boolean => this.#isEnded
    this.#early = new EarlyRows({ store, groups, reader, settler: this.#settler, memory, clock, members, isEnded })
    this.#records = new StoredRecords({ hub, member: () => members?.lease.id ?? 0, isAlive: options.isAlive })
    this.#trial = new StoreTrial(log, report)
    const { onCommitted } = this.#settler
    this.#settler.onCommitted = (seqs, deleted) => {
      members?.rowsLeft(seqs)
      onCommitted(seqs, deleted)
      this.#rows.add(-deleted)
    }
    this.#settler.onLost = (slots) => {
      for (const slot of slots) members?.slots.lose(slot)
    }
    // On a server each process looks once a second whether what blocks its keys is still there.
    this.#settler.onUnstored = (deadLetters) => {
      for (const { cursor, deadLetter } of [...this.reader.blocking()])
        if (deadLetters.includes(deadLetter)) this.reader.unpark(cursor.group.id, deadLetter)
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

  get database(): StoreDatabase {
    return this.#store.database
  }

  /** Null on a file. */
  get members(): Pick<Membership, 'size' | 'lease'> | null {
    return this.#members
  }

  /** Known number of rows. */
  get rows(): number {
    return this.#rows.rows
  }

  /** Somebody looks for an event by its id. */
  wantIndex(): Promise<void> {
    return this.#options.index.want()
  }

  /** Only makes the tables. @throws as `open` does */
  prepare(): Promise<void> {
    return prepareTables(this.#options.log.database, this.#options.mayMakeTables, () => this.#claimFile())
  }

  /** Reason why nothing can be stored; null if it can. */
  get fault(): string | null {
    return this.#fault ?? this.#trial.fault ?? this.#members?.fault ?? null
  }

  // ── open ──────────────────────────────────────────────────────────────────

  /**
   * Makes the tables and lets all threads write, now or as soon as the database allows it.
   * @throws DATABASE_TAKEN if all events go through the store and another process has the file
   */
  async open(): Promise<void> {
    if (this.#isEnded) return
    this.#state = 'opening'
    try {
      await this.#open()
      if (this.#fault !== null) this.#options.report('INFO', 'The event store is open')
      this.#fault = null
    } catch (error) {
      if (this.#options.isRequired && isTaken(error)) throw error
      const fault = `the event store is not open: ${messageOf(error)}`
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
    await this.pauses.load()
    // A server takes a second for a million rows: there the first look counts them.
    if (this.#members === null) await this.#rows.first()
    await this.groups.load()
    if (this.#members === null) for (const { seq, sinceMs } of await store.replays()) this.hand.replaying(seq, sinceMs)
    if (this.#isEnded) return
    this.#state = 'open'
    memory.open(this.#members?.lease.id ?? 0)
    this.#rows.tell()
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
      'Another process has the event store of this database file: SQLite serves one process. Stop that one, or use PostgreSQL, which serves any number',
    )
  }

  /** Delivers stored events, now that all subscribers are known. */
  async adopt(): Promise<void> {
    this.#isAdopted = true
    const { rows } = this.#rows
    if (rows > 0) this.#options.report('INFO', `${rows} deliveries are stored and go on now`)
    this.#records.adopt()
    if (this.#state === 'open') await this.#serve()
  }

  async #serve(): Promise<void> {
    try {
      await this.#begin()
    } catch (error) {
      this.#options.report('WARNING', `The event store cannot be read, it is tried again: ${messageOf(error)}`)
      this.#clock.after(REOPEN_MS, () => void this.#serve()).unref()
    }
  }

  async #begin(): Promise<void> {
    if (this.#state !== 'open') return
    const { memory } = this.#options.log
    this.groups.begin()
    const stored = this.#early.groupsKnown().then(() => {
      memory.recipients = 'groups'
    })
    if (this.#relay === null) await this.#store.takeBackRelayed()
    else {
      await this.#members?.store.joinBroker()
      this.reader.add(BROKER_GROUP)
      this.#members?.slots.add(BROKER_GROUP)
    }
    // A database that refuses changes does not delay the start.
    await withTimeout(stored, GROUPS_STORED_MS, undefined, this.#clock)
    if (memory.recipients !== 'later') await this.#early.assign()
    await this.#due.open(this.hand.lastBefore)
    this.reader.areUrgent(await this.#store.urgentEvents())
    await this.cancels.look()
    // It may have ended meanwhile.
    if (this.#state !== 'open') return
    this.#state = 'serving'
    this.reader.open()
    await this.#members?.look()
    this.#members?.doorbell.members()
    this.#lookTimer = this.#clock.every(LOOK_MS, () => this.#look()).unref()
  }

  /** Starts reading the rows of a group, except rows of blocked keys. */
  async #take(group: Group): Promise<void> {
    const parked = await this.#store.parkedKeys(group.id)
    // It may have gone meanwhile.
    if (!this.groups.isHere(group)) return
    const cursor = this.reader.add(group)
    for (const { key, deadLetter, place } of parked)
      if (!this.replays.isReleased(deadLetter)) this.reader.park(cursor, key, deadLetter, place)
  }

  /** A thread has counted a subscription, and the hub knows it now. Events published meanwhile wait for all groups. */
  subscribed(): void {
    void this.#early.subscribed()?.then(() => this.#retry(() => this.#early.assign()))
  }

  // ── several processes ─────────────────────────────────────────────────────

  #membership({ log, replica, processes, report }: EventStoreOptions): Membership {
    return new Membership({
      database: () => log.database,
      clock: log.clock,
      memory: log.memory,
      groupsAreStored: () => this.#early.areGroupsStored(),
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
      cancels: () => this.cancels,
      pauses: () => this.pauses,
      reported: (ids) => this.#options.reported(ids),
      heldBack: (...of) => this.#options.hub.holdBack(...of),
      runNow: (id, group) =>
        this.#options.hub.runNow(
          ({ event, consumer }) => event.id === id && (group ?? consumer.group) === consumer.group,
        ),
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

  /** Takes part in a stored group. */
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
    this.#options.report('WARNING', `${LOST}: it does not deliver events yet, and opens the store anew`)
    this.#fault = 'the event store is opened anew'
    this.#members!.lease.reset()
    void this.open()
  }

  #look(): void {
    this.#trial.look()
    this.#retry(() => this.groups.look())
    this.#retry(() => this.#lookForRelayed())
    this.#retry(() => this.#early.look())
    this.#retry(() => this.#rows.look())
    this.#retry(() => this.cancels.prune())
    this.#retry(() => this.#pruneReports())
    this.#ringRefused()
  }

  /** On a server the last process with a broker may have left rows for it: they are for the groups then. */
  async #lookForRelayed(): Promise<void> {
    const nowMs = this.#clock.steadyMs()
    if (this.#relay !== null || this.#members === null || nowMs < this.#relayedAtMs) return
    this.#relayedAtMs = nowMs + RELAYED_MS
    await this.#store.takeBackRelayed()
  }

  /** A commit with an unknown outcome may have stored rows without a doorbell. */
  #ringRefused(): void {
    const { refusals } = this.#options.log.memory
    const nowMs = this.#clock.steadyMs()
    if (refusals !== this.#refusals) this.#ringUntilMs = nowMs + COMMIT_MAX_MS
    this.#refusals = refusals
    if (nowMs < this.#ringUntilMs) this.rangAll()
  }

  /** Rows may have been stored without a doorbell: all groups are read again, and the first due row is looked for. */
  rangAll(): void {
    this.reader.rangAll()
    this.#retry(() => this.#due.again())
  }

  /** It may have committed without telling. */
  laneGone(): void {
    this.rangAll()
    if (this.isOpen) this.cancels.committed()
  }

  #retry(run: () => Promise<void>): void {
    run().catch((error) => {
      this.#options.report('WARNING', `The event store cannot be read, it is tried again: ${messageOf(error)}`)
      if (!this.#isEnded) this.#clock.after(LOOK_MS, () => this.#retry(run)).unref()
    })
  }

  // ── events ────────────────────────────────────────────────────────────────

  /** A thread has stored an event. @param event without its payload */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    const isRelayed = this.#isRelayed(event)
    this.#records.published(event, origin, isRelayed)
    this.#rows.add(isRelayed ? 1 : this.groups.countOf(event.event))
    const dueMs = dueMsOf(event)
    this.#members?.ring(isRelayed ? '' : event.event, dueMs)
    if (isUrgent(event.shares)) this.reader.areUrgent([event.event])
    if (dueMs > 0) this.#due.add(dueMs)
    else this.reader.rang(isRelayed ? '' : event.event)
  }

  /** Reports of an event are stored. */
  reported(id: string): void {
    this.#members?.doorbell.reported(id)
  }

  /** True while rows are read, moved or about to be, and with `isWithRunning` while outcomes are written. */
  isBusy(isWithRunning: boolean): boolean {
    return this.reader.isReading || this.#due.isBusy || (isWithRunning && !this.#settler.isIdle)
  }

  async #pruneReports(): Promise<void> {
    const nowMs = this.#clock.steadyMs()
    if (nowMs < this.#prunedMs) return
    this.#prunedMs = nowMs + PRUNE_MS
    await this.pruneReports()
    const { database } = this.#store
    if (database.dialect === 'postgres') await prunePermits(database)
    await database.execute(`DELETE FROM heddle_limit WHERE until_ms < ${CLOCK_MS[database.dialect]}`)
  }

  /** Rows of an event are due that were not, or wait for the next attempt in other processes. @param group null: of all groups */
  dueNow(id: string, group: string | null): void {
    this.moved('', 1)
    this.#members?.doorbell.runNow(id, group)
  }

  /** Deletes reports that are no longer kept. */
  pruneReports(): Promise<void> {
    const { database } = this.#store
    return pruneReports(database, database.dialect)
  }

  /** A row that waits has got another due time, milliseconds since the epoch, or another share. @param dueMs 0: now */
  moved(event: string, dueMs: number): void {
    this.#members?.ring(event, dueMs)
    this.reader.looksAgain()
    if (dueMs > 0) this.#due.add(dueMs)
    else this.reader.rang(event)
  }

  #isRelayed(event: EventFrame): boolean {
    return this.#relay !== null && !staysInStore(event)
  }

  #give(cursor: Cursor, row: StoredDelivery): boolean {
    // The slot was lost or began to drain since the page was read.
    if (row.slot !== undefined && row.slot.state !== 'held') return false
    if (row.seq > this.hand.lastBefore) this.#records.read(row, cursor.group.kind === 'broker')
    if (cursor.group.kind !== 'broker') return this.hand.give(cursor, row)
    const { event, seq, expiresMs } = row
    event.seq = seq
    return this.hand.relay(cursor, row, (sent) =>
      this.#relay!.take({ event: hubEventOf(event, expiresMs, null), expiresMs, sent }),
    )
  }

  async #bury(seq: number, fault: string): Promise<void> {
    const { report, log } = this.#options
    try {
      if (!(await buryRow(this.#store.database, log, seq, fault))) return
      report('WARNING', `A row of heddle_delivery was quarantined as a dead letter (seq ${seq}): ${fault}`)
      this.#rows.add(-1)
      this.reader.looksAgain()
    } catch (error) {
      report(
        'WARNING',
        `A malformed row of heddle_delivery was not made a dead letter (seq ${seq}): ${messageOf(error)}`,
      )
    }
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /** Stops reading: this process ends. Deliveries the hub gives up stay in the store. */
  end(): void {
    this.#state = 'ended'
    this.hand.end()
    this.reader.end()
    this.#due.end()
    this.#members?.end()
    this.#clock.cancel(this.#lookTimer)
  }

  /** Writes the remaining outcomes. The next process delivers the remaining rows. */
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
