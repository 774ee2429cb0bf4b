// Coordinates this process with others that share the database: checks once a second, and notifies the others of changes.
import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, type Timer } from '../../core/schedule/clock.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import type { StoreMemory } from '../../transport/memory/store-memory.ts'
import { Doorbell, type News } from './doorbell.ts'
import { Horizon } from './horizon.ts'
import { LateRows } from './late-rows.ts'
import { Lease, RENEW_MS } from './lease.ts'
import type { Processes } from './process-identity.ts'
import type { Reader } from './reader.ts'
import { ServerStore } from './server-store.ts'
import { SHARES_COUNTED } from './share-rows.ts'
import { Slots, type SlotsParts } from './slots.ts'
import type { StoredCancels } from './stored-cancels.ts'

/** Interval of the checks of members, slots and late rows, milliseconds. */
const LOOK_MS = 1000
const NOT_RENEWED = 'the event store cannot be used: the lease of this process has not been renewed for 8 s'
/** A slow check rests this many times as long as it took. */
const REST = 10
/** Interval at which rows of deleted groups are deleted, milliseconds. */
const ORPHANS_MS = 60_000
/** Time a process that ends waits to notify the others, milliseconds. */
const LEAVE_MS = 1000

export interface MembershipParts {
  database: () => StoreDatabase
  clock: Clock
  memory: StoreMemory
  /** Resolves when the groups of all subscribers of this process are stored. */
  groupsAreStored: () => Promise<void>
  /** REPLICA_ID. */
  replica: string
  processes: Processes
  reader: () => Reader
  isInHand: (seq: number) => boolean
  slots: Pick<SlotsParts, 'suspects' | 'suspectsOfKey' | 'onTaken' | 'onDraining' | 'onGone' | 'written'>
  /** Called with the time of a waiting row, milliseconds since the epoch; 0: unknown, look again. */
  onDue: (dueMs: number) => void
  /** Called when others may have taken events back, with what they answer. */
  /** A subscriber is to get nothing for some time, milliseconds. */
  heldBack: (event: string, group: string, ms: number) => void
  /** Deliveries of an event need not wait for the next attempt. @param group null: of all groups */
  runNow: (id: string, group: string | null) => void
  /** Reports of events are stored. @param ids null: of any */
  reported: (ids: readonly string[] | null) => void
  cancels: () => Pick<StoredCancels, 'look' | 'answered'>
  /** Members, their groups or pauses of subscribers have changed. */
  pauses: () => { load(): Promise<void> }
  /** Called when others have removed this member. */
  onLost: () => void
  report: (level: 'WARNING' | 'INFO', message: string) => void
}

export class Membership {
  readonly lease: Lease
  readonly slots: Slots
  readonly store: ServerStore
  readonly doorbell: Doorbell
  /** Dead letters that block keys and are not committed yet. */
  readonly storing = new Set<string>()
  readonly #parts: MembershipParts
  readonly #horizon: Horizon
  #late: LateRows | null = null
  #timer: Timer | undefined
  #renewTimer: Timer | undefined
  #isRenewing = false
  #isLooking = false
  #mustLookAgain = false
  #others = 0
  /** Errors of the lease's renewal and of the check. */
  readonly #faults = new Map<'lease' | 'look', string>()
  /** By the steady clock. */
  #lateAtMs = 0
  #unblockAtMs = 0
  #orphansAtMs = 0
  #isLateRunning = false
  #isUnblocking = false
  /** Members and the changes they have told of, at the last look at the pauses. */
  #pausesSeen = ''

  constructor(parts: MembershipParts) {
    const { database, clock, memory, replica, processes } = parts
    this.#parts = parts
    const member = (): number => this.lease.id
    this.lease = new Lease({ database, clock, memory, replica, processes })
    this.slots = new Slots({
      ...parts.slots,
      database,
      member,
      sharesOf: async (tx, group) => (await this.store.nextShares(group, ['', '', ''], SHARES_COUNTED, tx)).flat(),
      onReleased: () => this.doorbell.members(),
    })
    this.#horizon = new Horizon(database, clock)
    this.store = new ServerStore({
      database,
      memory: parts.memory,
      groupsAreStored: parts.groupsAreStored,
      slots: () => this.slots,
      horizon: this.#horizon,
      member,
      isInHand: parts.isInHand,
      onLate: (group, place, key) => parts.reader().late(group, place, key),
      isOpen: (group, key) => parts.reader().isOpen(group, key),
    })
    this.doorbell = new Doorbell({ database, clock, member, onNews: (news) => this.#hear(news) })
  }

  /** Reason why the database cannot be used; null if it can. */
  get fault(): string | null {
    const [fault = null] = this.#faults.values()
    return fault ?? (this.lease.state === 'held' && !this.lease.isValid ? NOT_RENEWED : null)
  }

  /** Known number of processes that share the database. */
  get size(): number {
    return this.#others + 1
  }

  /** Gets a member number and starts the checks. Does nothing if it has joined. */
  async join(): Promise<void> {
    await this.lease.enter()
    const { reader, isInHand, database, clock } = this.#parts
    this.#late ??= new LateRows({ database, horizon: this.#horizon, reader: reader(), slots: this.slots, isInHand })
    this.doorbell.open()
    this.#works('lease')
    this.#renewTimer ??= clock.every(RENEW_MS, () => void this.#renew()).unref()
    this.#timer ??= clock.every(LOOK_MS, () => void this.look()).unref()
  }

  /** The outcomes of these rows are committed. */
  rowsLeft(seqs: readonly number[]): void {
    this.#late?.left(seqs)
    this.store.rowsLeft(seqs)
  }

  /** Notifies the others of an event committed here. @param dueMs its due time, milliseconds since the epoch; 0: at once */
  ring(event: string, dueMs: number): void {
    if (this.#others === 0) return
    if (dueMs > 0) this.doorbell.later(dueMs)
    else this.doorbell.events(event)
  }

  #hear({
    events,
    dueMs,
    members,
    letters,
    cancels = false,
    answers = [],
    reports = [],
    held = [],
    run = [],
  }: News): void {
    const reader = this.#parts.reader()
    if (cancels) void this.#lookAtCancels()
    if (reports === null || reports.length > 0) this.#parts.reported(reports)
    for (const [event, group, ms] of held) this.#parts.heldBack(event, group, ms)
    for (const [id, group] of run) this.#parts.runNow(id, group)
    for (const answer of answers) this.#parts.cancels().answered(answer)
    if (dueMs > 0) this.#parts.onDue(dueMs)
    if (events === null) reader.rangAll()
    else for (const event of events) reader.rang(event)
    if (members) {
      this.slots.expectChange()
      void this.look()
    }
    if (!letters) return
    this.#unblockAtMs = this.#lateAtMs = 0
    void this.look()
  }

  /** Separate from the check, which may take long: a busy process keeps its slots. */
  async #renew(): Promise<void> {
    const { lease } = this
    if (lease.state !== 'held' || this.#isRenewing) return
    this.#isRenewing = true
    try {
      await lease.renew()
      this.#works('lease')
    } catch (error) {
      const { state } = lease as { state: string }
      if (state === 'lost') this.#lost()
      else if (state === 'held') this.#fails('lease', error)
    }
    this.#isRenewing = false
  }

  /** Handles changed members. If it is already running, it runs once more afterwards. */
  async look(): Promise<void> {
    if (this.lease.state !== 'held') return
    if (this.#isLooking) {
      this.#mustLookAgain = true
      return
    }
    this.#isLooking = true
    this.#mustLookAgain = false
    try {
      await this.#look()
      this.#works('look')
    } catch (error) {
      if (this.lease.state === 'held') this.#fails('look', error)
    } finally {
      this.#isLooking = false
    }
    if (this.#mustLookAgain) await this.look()
  }

  #works(what: 'lease' | 'look'): void {
    if (this.#faults.delete(what) && this.#faults.size === 0)
      this.#parts.report('INFO', 'The event store can be used again')
  }

  #fails(what: 'lease' | 'look', error: unknown): void {
    const fault = `the event store cannot be used: ${messageOf(error)}`
    if (this.#faults.size === 0) this.#parts.report('WARNING', fault)
    this.#faults.set(what, fault)
  }

  #cancelTimers(): void {
    for (const timer of [this.#timer, this.#renewTimer]) this.#parts.clock.cancel(timer)
    this.#timer = this.#renewTimer = undefined
  }

  #lost(): void {
    this.#cancelTimers()
    this.slots.loseAll()
    this.#parts.onLost()
  }

  async #look(): Promise<void> {
    const { lease, slots, store } = this
    let members = await lease.members()
    const dead = lease.deadOf(members)
    for (const { id, until, replica } of dead) {
      if (!(await store.removeMember(Number(id), until))) continue
      this.#parts.report('INFO', `The process ${replica} has ended: others take what it had`)
      this.slots.expectChange()
      this.#orphansAtMs = 0
    }
    if (dead.length > 0) members = await lease.members()
    this.#others = members.length - 1
    const seen = members
      .map(({ id, groups }) => `${id}:${groups}`)
      .sort()
      .join()
    slots.retryReleases()
    if (seen !== this.#pausesSeen) await this.#parts.pauses().load()
    this.#pausesSeen = seen
    await slots.look(
      members.map(({ id }) => Number(id)),
      seen,
    )
    this.#parts.onDue(0)
    this.#parts.reader().areUrgent(await store.urgentEvents())
    void this.#lookAtLateRows()
    void this.#lookAtLetters()
    void this.#lookAtCancels()
    await this.#deleteOrphans()
  }

  async #lookAtLateRows(): Promise<void> {
    const { clock } = this.#parts
    const startMs = clock.steadyMs()
    if (this.#isLateRunning || startMs < this.#lateAtMs) return
    this.#isLateRunning = true
    try {
      await this.store.inTurn(async () => {
        // A waiting reader takes its page first.
        await nextTurn(clock)
        await this.#late!.look()
      })
      this.#lateAtMs = clock.steadyMs() + REST * (clock.steadyMs() - startMs) - LOOK_MS
    } catch {
      // The next check tries again.
    }
    this.#isLateRunning = false
  }

  /** Unblocks keys whose dead letters another process has replayed or deleted. */
  async #lookAtLetters(): Promise<void> {
    const { clock, reader } = this.#parts
    const startMs = clock.steadyMs()
    // Uncommitted ones would look deleted.
    const blocking = [...reader().blocking()].filter(({ deadLetter }) => !this.storing.has(deadLetter))
    if (this.#isUnblocking || blocking.length === 0 || startMs < this.#unblockAtMs) return
    this.#isUnblocking = true
    try {
      const still = await this.store.stillParked(blocking.map(({ deadLetter }) => deadLetter))
      for (const { cursor, deadLetter } of blocking)
        if (!still.has(deadLetter)) reader().unpark(cursor.group.id, deadLetter)
      this.#unblockAtMs = clock.steadyMs() + REST * (clock.steadyMs() - startMs) - LOOK_MS
    } catch {
      // The next check tries again.
    }
    this.#isUnblocking = false
  }

  async #lookAtCancels(): Promise<void> {
    try {
      await this.#parts.cancels().look()
    } catch {
      // The next check tries again.
    }
  }

  async #deleteOrphans(): Promise<void> {
    const nowMs = this.#parts.clock.steadyMs()
    if (nowMs < this.#orphansAtMs) return
    this.#orphansAtMs = nowMs + ORPHANS_MS
    await this.store.deleteOrphans()
  }

  /** Takes no more slots, and releases each one without rows in hand. */
  end(): void {
    this.slots.end()
  }

  /** Leaves the remaining rows to the others, or to the next process. */
  async leave(): Promise<void> {
    const { clock } = this.#parts
    this.#cancelTimers()
    if (this.lease.state !== 'held') return
    this.lease.left()
    // Without the server the lease lapses by itself.
    await withTimeout(this.#remove(), LEAVE_MS, undefined, clock).catch(() => {})
    this.doorbell.close()
  }

  async #remove(): Promise<void> {
    await this.store.removeMember(this.lease.id, null)
    await this.doorbell.sayLast()
  }
}
