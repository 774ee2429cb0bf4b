// Stores events in the event store, from any thread.
import { threadId } from 'node:worker_threads'

import type { LastStatement, Queryable } from '../../contracts/db.ts'
import { causality } from '../../core/causality/context.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import { isUrgent } from '../events/shares.ts'
import type { StoreDatabase } from './database.ts'
import { INSERT_MAX, insertStatement, type Recipients, sizeFor } from './delivery-rows.ts'
import { HAS_SHARES, staysInStore } from './event-columns.ts'
import { SERVER_MAX_ROWS, serverInsertStatement } from './server-rows.ts'
import { insertUnique, isUnique, type UniqueFrame, type UniqueOutcome } from './unique-rows.ts'

/** Maximum number of events of a thread waiting for their commit. */
const WAITING_MAX = 16_384
/** The same for their payloads, in characters. */
const WAITING_MAX_LENGTH = 128 << 20

interface Waiting {
  frame: EventFrame
  resolve: (id: string) => void
  reject: (error: Error) => void
}

/**
 * Publishes events of one thread through the event store: they are stored in batches, and delivered after their commit, in the order
 * of publication.
 *
 * On SQLite all events of one turn of the loop share a commit. On a server one INSERT runs at a time, and the next gathers behind it: two
 * connections could commit in the other order.
 */
export class StorePublisher {
  readonly #log: ThreadStore
  readonly #deliver: (frame: EventFrame) => void
  readonly #moved: (event: string, dueMs: number) => void
  #waiting: Waiting[] = []
  /** Those of them with `unique`. */
  #uniqueWaiting = 0
  /** Events not committed yet. */
  #open = 0
  /** Characters of their payloads. */
  #openLength = 0
  #isScheduled = false

  /** @param deliver receives committed events @param moved called when a waiting row has got another due time, milliseconds since the epoch */
  constructor(log: ThreadStore, deliver: (frame: EventFrame) => void, moved: (event: string, dueMs: number) => void) {
    this.#log = log
    this.#deliver = deliver
    this.#moved = moved
  }

  /** Resolves after the commit with the id of the event, or of the one that is there in its place. @throws EVENT_BUS_FULL at once; rejects with EVENT_BUS_UNAVAILABLE */
  publish(frame: EventFrame): Promise<string> {
    this.#log.checkRoom(frame)
    if (!this.#log.isOnServer && causality.getStore()?.transaction?.isOpen) {
      throw new HeddleError(
        'EVENT_BUS_UNAVAILABLE',
        'event_bus.publish would wait for the transaction around it: publish through its tx, and the event is published if and only if the rows commit',
      )
    }
    if (this.#open >= WAITING_MAX || this.#openLength >= WAITING_MAX_LENGTH)
      throw new HeddleError('EVENT_BUS_FULL', 'Too many events of this thread wait for their commit')
    this.#open++
    this.#openLength += frame.payload.length
    if (isUnique(frame)) this.#uniqueWaiting++
    return new Promise((resolve, reject) => {
      this.#waiting.push({ frame, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      this.#log.clock.turn(this.#store)
    })
  }

  readonly #store = async (): Promise<void> => {
    const { isOnServer, maxRows } = this.#log
    while (this.#waiting.length > 0) {
      const events = this.#takeNext(isOnServer ? maxRows : this.#waiting.length)
      // A transaction that has the name holds up nobody else: it has an order only with others of its key.
      if (isUnique(events[0]!.frame)) {
        const stored = this.#storeUnique(events[0]!, events[0]!.frame)
        if (events[0]!.frame.key !== null) await stored
      } else if (this.#log.isLarge(lengthOf(events))) await this.#storeLarge(events)
      else if (isOnServer || this.#uniqueWaiting > 0) await this.#storeAll(events)
      else void this.#storeAll(events)
    }
    this.#isScheduled = false
  }

  /** The next ones: one with `unique`, or some without. */
  #takeNext(most: number): Waiting[] {
    if (this.#uniqueWaiting === 0) return this.#waiting.splice(0, most)
    const first = this.#waiting.findIndex(({ frame }) => isUnique(frame))
    if (first === 0) this.#uniqueWaiting--
    return this.#waiting.splice(0, first === 0 ? 1 : Math.min(first, most))
  }

  async #storeUnique(event: Waiting, frame: UniqueFrame): Promise<void> {
    const log = this.#log
    try {
      await log.opened()
      const bytes = log.isLarge(frame.payload.length) ? await log.copies().of(frame) : 0
      if (bytes > COPIES_MAX_BYTES) throw tooLarge(frame, bytes)
      const { id, isNew, movedToMs, insertion } = await log.insertUnique(log.database, frame)
      if (isNew) this.#deliver(frame)
      if (movedToMs !== null) this.#moved(frame.event, movedToMs)
      log.ended(insertion)
      event.resolve(id)
    } catch (error) {
      if (error instanceof DbError) log.memory.refused()
      event.reject(storeError(error))
    } finally {
      this.#ended(event)
    }
  }

  /** On a file they share a commit. */
  async #storeAll(events: readonly Waiting[]): Promise<void> {
    const { maxRows } = this.#log
    const stored: Promise<void>[] = []
    for (let from = 0; from < events.length; from += maxRows)
      stored.push(this.#storeTogether(events.slice(from, from + maxRows)))
    await Promise.all(stored)
  }

  /** One commit after another, each of a bounded size: others write in between. */
  async #storeLarge(events: readonly Waiting[]): Promise<void> {
    let copies: Copies | null = null
    let page: Waiting[] = []
    let pageBytes = 0
    for (const event of events) {
      try {
        await this.#log.opened()
        copies ??= this.#log.copies()
        const bytes = await copies.of(event.frame)
        if (bytes > COPIES_MAX_BYTES) throw tooLarge(event.frame, bytes)
        if (page.length > 0 && pageBytes + bytes > PAGE_MAX_BYTES) {
          const full = page
          page = []
          pageBytes = 0
          await this.#storeAll(full)
        }
        page.push(event)
        pageBytes += bytes
      } catch (error) {
        this.#ended(event)
        event.reject(storeError(error))
      }
    }
    await this.#storeAll(page)
  }

  #ended({ frame }: Waiting): void {
    this.#open--
    this.#openLength -= frame.payload.length
  }

  async #storeTogether(events: readonly Waiting[]): Promise<void> {
    let insertion: Insertion | null = null
    try {
      await this.#log.opened()
      insertion = this.#log.insertion(events.map(({ frame }) => frame))
      await runAll(this.#log.database, insertion)
    } catch (error) {
      if (insertion !== null) this.#log.ended(insertion)
      this.#log.memory.refused()
      for (const { reject } of events) reject(storeError(error))
      return
    } finally {
      for (const event of events) this.#ended(event)
    }
    for (const { frame, resolve } of events) {
      this.#deliver(frame)
      resolve(frame.id)
    }
    this.#log.ended(insertion)
  }
}

/** Share of EVENT_BUS_MAX_STORED above which new requests are refused. */
const CROWDED_SHARE = 0.75
/** Multiple of the limit for events caused by events: otherwise a full store could never be emptied. */
const CAUSED_FULL = 2
/** Share of EVENT_BUS_MAX_STORED for rows behind dead letters, and for the dead letters blocking them. */
const PARKED_SHARE = 0.5
/** Duration above which an insert is reported to the primary, which then tests the store, milliseconds. */
const SLOW_MS = 2000
/**
 * Maximum payload bytes of one event, and of the events of one transaction, counted once for each of their groups: on a file all other writers wait for
 * that commit.
 */
export const COPIES_MAX_BYTES = 64 << 20
/** The same for events of one commit of other events, but for one that is larger alone. */
const PAGE_MAX_BYTES = 16 << 20
/** Maximum bytes of UTF-8 for one unit of a string's length. */
const UNIT_MAX_BYTES = 3
/** Time an early event waits for the tables, milliseconds. */
const OPEN_WAIT_MS = 5000

/** Bytes of payloads, once for each group that gets them. Each event's groups are counted once. */
export class Copies {
  readonly #from: Queryable
  readonly #isRelayed: (frame: EventFrame) => boolean
  readonly #groups = new Map<string, number>()

  /** @param isRelayed true for an event that is stored once, for the broker */
  constructor(from: Queryable, isRelayed: (frame: EventFrame) => boolean) {
    this.#from = from
    this.#isRelayed = isRelayed
  }

  /** @throws DbError */
  async of(frame: EventFrame): Promise<number> {
    const bytes = Buffer.byteLength(frame.payload)
    return this.#isRelayed(frame) ? bytes : bytes * (await this.#groupsOf(frame.event))
  }

  async #groupsOf(event: string): Promise<number> {
    const known = this.#groups.get(event)
    if (known !== undefined) return known
    const sql = 'SELECT count(*) AS groups FROM heddle_group WHERE event = $1'
    const groups = Number((await this.#from.queryOne<{ groups: number }>(sql, [event]))!.groups)
    this.#groups.set(event, groups)
    return groups
  }
}

/** Events being stored. */
export interface Insertion {
  readonly statements: readonly LastStatement[]
  /** True if they are for all later groups. */
  readonly isLater: boolean
}

/** The event store as one thread uses it: on the thread's own connection, in the commits of the tool `db`. */
export class ThreadStore {
  readonly memory: StoreMemory
  readonly clock: Clock
  readonly chance: Chance
  readonly #database: () => StoreDatabase | null
  readonly #maxStored: number
  readonly #hasBroker: boolean
  /** Start of each running insertion on a server, by `steadyMs`, oldest first. */
  readonly #open = new Map<object, number>()
  #isWatching = false

  /**
   * @param database called on first use: the tools are installed later
   * @param settings EVENT_BUS_MAX_STORED, and whether a message broker gets the events without key and delay
   */
  constructor(
    memory: StoreMemory,
    database: () => StoreDatabase | null,
    { maxStored, hasBroker }: { maxStored: number; hasBroker: boolean },
    clock: Clock,
    chance: Chance,
  ) {
    this.memory = memory
    this.clock = clock
    this.chance = chance
    this.#database = database
    this.#maxStored = maxStored
    this.#hasBroker = hasBroker
  }

  /** @throws EVENT_BUS_UNAVAILABLE if no database can hold the store */
  get database(): StoreDatabase {
    const database = this.#database()
    if (database !== null) return database
    throw new HeddleError(
      'EVENT_BUS_UNAVAILABLE',
      'No installed tool db can store events: events with a key or a delay, and events of transactions, need one',
    )
  }

  /** True if statements go to a server: two of one thread may commit in any order. */
  get isOnServer(): boolean {
    return this.#database()?.dialect === 'postgres'
  }

  /** True when it is too full for new work: running work needs the rest. */
  get isCrowded(): boolean {
    return this.memory.stored > this.#maxStored * CROWDED_SHARE
  }

  /** Checks the limits of the store. The limit of rows behind dead letters is for events with a key alone. @throws EVENT_BUS_FULL */
  checkRoom({ key, parentId }: Pick<EventFrame, 'key' | 'parentId'>): void {
    const { stored, parked } = this.memory
    const most = parentId === null ? this.#maxStored : this.#maxStored * CAUSED_FULL
    if (stored >= most) throw new HeddleError('EVENT_BUS_FULL', `The event store is full: ${stored} events are stored`)
    if (key === null || parked < this.#maxStored * PARKED_SHARE) return
    throw new HeddleError(
      'EVENT_BUS_FULL',
      `${parked} events wait behind dead letters, dead letters included: replay or delete some, until then events with a key are refused`,
    )
  }

  /** True if payloads may be too large for their groups: `copies` counts. @param length of all of them, characters */
  isLarge(length: number): boolean {
    return length * UNIT_MAX_BYTES * Math.max(1, this.memory.mostGroups) > PAGE_MAX_BYTES
  }

  /** Counts the bytes of large payloads. @param from the transaction that publishes them; default: the database */
  copies(from?: Queryable): Copies {
    return new Copies(from ?? this.database, (frame) => this.#hasBroker && !staysInStore(frame))
  }

  /** Resolves when the tables are there. @throws EVENT_BUS_UNAVAILABLE after 5 s */
  async opened(): Promise<void> {
    if (this.memory.isOpen) return
    // Without a database it would never open.
    void this.database
    await until(() => this.memory.isOpen, this.clock.steadyMs() + OPEN_WAIT_MS, { clock: this.clock })
    if (!this.memory.isOpen)
      throw new HeddleError('EVENT_BUS_UNAVAILABLE', 'The event store is not open: the log of the process says why')
  }

  /**
   * Returns the statements that store events. The caller must call `ended` after they have ended and the events have been delivered.
   * @param frames their payloads are text
   * @param isOwn true for events without a recipient yet
   */
  insertion(frames: readonly EventFrame[], isOwn = false): Insertion {
    const recipients = isOwn ? 'later' : this.memory.recipients
    const relayed = this.#hasBroker ? frames.filter((frame) => !staysInStore(frame)) : []
    const kept = relayed.length === 0 ? frames : frames.filter(staysInStore)
    const isLater = recipients === 'later' && kept.length > 0
    if (isLater) this.memory.beginLater()
    const urgent = new Set(kept.filter(({ shares }) => isUrgent(shares)).map(({ event }) => event))
    const statements: LastStatement[] = [...urgent].map((event) => ({ sql: HAS_SHARES, params: [event] }))
    statements.push(...this.#statements(kept, recipients))
    if (relayed.length > 0) statements.push(...this.#statements(relayed, 'broker'))
    const insertion = { statements, isLater }
    if (this.isOnServer) this.#watch(insertion)
    return insertion
  }

  /** The insertion has ended, and its events have been delivered. */
  ended(insertion: Pick<Insertion, 'isLater'>): void {
    this.#open.delete(insertion)
    if (insertion.isLater) this.memory.laterEnded()
  }

  /** A foreign lock blocks an INSERT: it fails only after its time limit. */
  #watch(insertion: Insertion): void {
    this.#open.set(insertion, this.clock.steadyMs())
    if (this.#isWatching) return
    this.#isWatching = true
    this.clock.after(SLOW_MS, () => this.#look()).unref()
  }

  #look(): void {
    this.#isWatching = false
    const [oldestMs] = this.#open.values()
    if (oldestMs === undefined) return
    if (this.clock.steadyMs() - oldestMs >= SLOW_MS) this.memory.refused()
    this.#isWatching = true
    this.clock.after(SLOW_MS, () => this.#look()).unref()
  }

  /** One row for each group, in the order of the events. */
  #statements(frames: readonly EventFrame[], recipients: Recipients): LastStatement[] {
    const { isOnServer } = this
    const statements: LastStatement[] = []
    for (let from = 0; from < frames.length; ) {
      const size = isOnServer ? SERVER_MAX_ROWS : sizeFor(frames.length - from)
      const page = frames.slice(from, from + size)
      statements.push(
        isOnServer
          ? serverInsertStatement(recipients, page, this.memory.member, threadId, this.memory.subscriptions)
          : insertStatement(recipients, page, threadId),
      )
      from += size
    }
    return statements
  }

  /**
   * Stores an event that each of its groups has one at a time. The caller must call `ended` with `insertion` when the commit has ended and the event has been delivered.
   * @param to a transaction, or the database
   */
  async insertUnique(to: Queryable, frame: UniqueFrame): Promise<UniqueOutcome & { insertion: Insertion }> {
    const { recipients, member, subscriptions } = this.memory
    // One that is there may wait for its groups, and get them before this one is stored beside it.
    const insertion = { statements: [], isLater: recipients === 'later' || !this.isOnServer }
    if (insertion.isLater) this.memory.beginLater()
    if (this.isOnServer) this.#watch(insertion)
    const { dialect } = this.database
    const target = { dialect, isForGroups: recipients === 'groups', thread: threadId, member, subscriptions }
    try {
      if (isUrgent(frame.shares)) await to.execute(HAS_SHARES, [frame.event])
      return { ...(await insertUnique(to, target, frame)), insertion }
    } catch (error) {
      this.ended(insertion)
      throw error
    }
  }

  /** True if a tool `db` can store events. */
  get hasDatabase(): boolean {
    return this.#database() !== null
  }

  /** Maximum number of events of one statement. */
  get maxRows(): number {
    return this.isOnServer ? SERVER_MAX_ROWS : INSERT_MAX
  }

  /** Stores events delivered by this process itself. @param to a transaction */
  async insertOwn(to: Queryable, frames: readonly EventFrame[]): Promise<void> {
    const insertion = this.insertion(frames, true)
    try {
      await runAll(to, insertion)
    } finally {
      this.ended(insertion)
    }
  }
}

/** Runs its statements. @param to the database, or a transaction */
async function runAll(to: Queryable, { statements }: Insertion): Promise<void> {
  await Promise.all(statements.map(({ sql, params }) => to.execute(sql, params)))
}

/** Returns the publisher's error for an event the store did not take. */
export function storeError(error: unknown): HeddleError {
  if (error instanceof HeddleError && !(error instanceof DbError)) return error
  return new HeddleError('EVENT_BUS_UNAVAILABLE', `The event was not stored: ${messageOf(error)}`, { cause: error })
}

const lengthOf = (events: readonly Waiting[]): number =>
  events.reduce((sum, { frame }) => sum + frame.payload.length, 0)

/** @param copies payload bytes, once for each group @param others of the same transaction */
export function tooLarge({ event, payload }: EventFrame, copies: number, others = 0): HeddleError {
  const bytes = Buffer.byteLength(payload)
  const beside = others === 0 ? '' : `, beside ${others} of the same transaction`
  return new HeddleError(
    'EVENT_PAYLOAD_TOO_LARGE',
    `The payload of ${event} has ${bytes} bytes and would be stored for ${copies / bytes} subscribers: ${copies} bytes${beside}; ${COPIES_MAX_BYTES} are allowed`,
  )
}
