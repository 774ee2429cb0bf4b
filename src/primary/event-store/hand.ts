// Stored deliveries in the hub, and their outcomes.
import { Numbered } from '../../core/collections/numbered.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import { frameOf } from '../../runtime/event-store/event-columns.ts'
import { CANCELLED, type Meant } from '../../runtime/events/cancelling.ts'
import { bytesOf, type EventFrame } from '../../transport/frames/event-frame.ts'
import type { NotedDelivery } from '../../transport/store-changes.ts'
import { type Delivery, type EventSource, type FailedDelivery, hubEventOf, type Share } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { RETRY_MAX_DELAY_MS } from '../events/queues.ts'
import type { Cursor, Key, RowInHand } from './cursor.ts'
import type { Reader } from './reader.ts'
import type { Settler } from './settler.ts'
import type { OwnedSlot } from './slots.ts'
import type { StoredDelivery } from './store.ts'

/** Pause above which a delivery leaves the hub until its next attempt, milliseconds. */
const RETRY_LEAVES_MS = 1000

/**
 * ```
 *   held ──┬──► settling ──► out of the hand     its outcome is committed, or its slot was lost meanwhile
 *          ├──► leaving ───► out of the hand     its slot drains: the next owner has the next attempt, once this one is noted
 *          └───────────────► out of the hand     it stays in the store: its group has gone, its slot is lost, the process ends, a dead
 *                                                letter of its key came first, or the broker refuses it
 * ```
 */
type RowState = 'held' | 'settling' | 'leaving'

/** A row in hand. */
interface Held {
  readonly seq: number
  readonly id: string
  readonly parentId: string | null
  readonly ancestors: string
  readonly place: number
  readonly cursor: Cursor
  readonly key: string | null
  readonly unique: EventFrame['unique']
  readonly share: string
  readonly bytes: number
  /** On a server: its slot. */
  readonly slot: OwnedSlot | undefined
  state: RowState
  /** Number of its deliveries open in the hub: several for a broadcast, and for temporary subscribers. */
  open: number
  isBegun: boolean
  /** The stored row while a death is noted in advance; otherwise null. */
  trial: StoredDelivery | null
  /** An attempt has failed. */
  isTried: boolean
}

export interface HandParts {
  hub: Hub
  reader: Reader
  settler: Settler
  clock: Clock
  /** Counts crashes of the process during which a plugin was handling an event, since a time. Null without a guardian. */
  deathsOf: ((id: string, plugin: string, sinceMs: number) => number) | null
  /** True for a row that was taken back since its page was read: it ends. */
  isCancelled: (row: StoredDelivery) => boolean
  /** On a server: true while deliveries may begin. */
  isLeaseValid?: () => boolean
  /** On a server: true once other processes may have taken the slots of this one. */
  isLeaseOver?: () => boolean
  /** Called if a rule of the store is broken: nothing more is handed out of the slot. */
  onBroken?: (slot: OwnedSlot | undefined, message: string) => void
  /** On a server: called when a row of a slot has left the hand. */
  onLeft?: (slot: OwnedSlot) => void
  /** Called when a dead letter blocks a key, before and after its commit. */
  onBlocking?: (deadLetter: string, isStored: boolean) => void
}

/** The rows in hand: each from its handover to the hub until its outcome is committed. */
export class Hand implements EventSource {
  readonly isBroker = false
  readonly #parts: HandParts
  readonly #held = new Numbered<Held>()
  /** Replays of dead letters by row number, with their start, milliseconds since the epoch. */
  readonly #replays = new Map<number, number>()
  /** Rows with a death noted in advance, until they are handed out. */
  readonly #trials = new Map<number, StoredDelivery>()
  /** Last row of earlier processes. */
  lastBefore = 0
  #isEnding = false

  constructor(parts: HandParts) {
    this.#parts = parts
    parts.settler.onCommitted = (seqs) => {
      for (const seq of seqs) this.#committed(seq)
    }
  }

  get isAway(): boolean {
    return this.#parts.isLeaseValid?.() === false
  }

  get size(): number {
    return this.#held.size
  }

  has(seq: number): boolean {
    return this.#held.get(seq) !== undefined
  }

  // ── to the hub ────────────────────────────────────────────────────────────

  /** Gives the hub a row. @returns false if it has no subscriber now */
  give(cursor: Cursor, row: StoredDelivery): boolean {
    const { hub } = this.#parts
    const { event, seq, expiresMs, slot, replayedMs } = row
    const broken = this.#brokenBy(cursor, row)
    if (broken !== null) {
      this.#broken(slot, `row ${seq} of ${cursor.group.name} was to be handed out, ${broken}`)
      return false
    }
    if (replayedMs !== undefined) this.#replays.set(seq, replayedMs)
    // Another event may have replaced it since: its store knows when it begins.
    const isCancelled = event.unique?.while !== 'waiting' && this.#parts.isCancelled(row)
    const shares = isCancelled ? [] : this.#sharesOf(cursor, row)
    // Its subscriber may return. A broadcast without a subscriber ends.
    if (shares.length === 0 && cursor.group.kind === 'group' && !isCancelled) return false
    const trial = this.#trials.get(seq) ?? null
    event.seq = seq
    const held = this.#hold(cursor, row, trial)
    if (trial !== null) this.#trialEnded(trial)
    if (shares.length > 0) hub.take(hubEventOf(event, expiresMs, this), shares)
    this.#ended(held, isCancelled ? CANCELLED : null)
    return true
  }

  #broken(slot: OwnedSlot | undefined, message: string): void {
    this.#parts.onBroken?.(slot, message)
  }

  /** Returns the rule that handing out the row would break; null if none. */
  #brokenBy({ keys }: Cursor, { seq, slot, event }: StoredDelivery): string | null {
    if (this.has(seq)) return 'which is in hand'
    if (slot !== undefined && slot.state !== 'held') return `whose slot is ${slot.state}`
    if (event.key !== null && keys.get(event.key)?.state === 'parked') return 'whose key is blocked'
    return null
  }

  /** Gives a row to the message broker. @param send receives the callback for the broker's answer */
  relay(cursor: Cursor, row: StoredDelivery, send: (sent: () => void) => void): boolean {
    const held = this.#hold(cursor, row, null)
    send(() => this.#ended(held))
    return true
  }

  #hold(cursor: Cursor, { seq, place, event, slot, isBegun }: StoredDelivery, trial: StoredDelivery | null): Held {
    const held: Held = {
      seq,
      id: event.id,
      parentId: event.parentId,
      ancestors: event.ancestors,
      place,
      cursor,
      key: event.key,
      unique: event.unique,
      share: event.shares,
      bytes: event.payload.length,
      slot,
      state: 'held',
      open: 1,
      isBegun,
      trial,
      isTried: false,
    }
    this.#held.set(seq, held)
    if (slot !== undefined) slot.inHand++
    return held
  }

  #sharesOf({ group }: Cursor, row: StoredDelivery): Share[] {
    const { hub } = this.#parts
    const { event } = row
    if (group.kind === 'temporary') return hub.temporaryGroupsOf(event.event).map((name) => this.#shareOf(name, row))
    return hub.hasConsumer(event.event, group.name) ? [this.#shareOf(group.name, row)] : []
  }

  #shareOf(group: string, row: StoredDelivery): Share {
    const { seq, attempt, error, isBegun, retryMs } = row
    // Somebody may have set the clock back since.
    const dueMs = retryMs === 0 ? 0 : Math.min(retryMs, this.#parts.clock.nowMs() + RETRY_MAX_DELAY_MS)
    const share = { group, attempt, deaths: this.#deathsOf(row, group), dueMs, error, isBegun }
    // The replay of a broadcast's dead letter goes to any instance.
    return this.#replays.size > 0 && this.#replays.has(seq) ? { ...share, isForOne: true } : share
  }

  #deathsOf({ seq, deaths, event }: StoredDelivery, group: string): number {
    const { deathsOf, hub } = this.#parts
    if (deathsOf === null || seq > this.lastBefore) return deaths
    const sinceMs = this.#replays.get(seq) ?? 0
    const plugins = hub.pluginsOf(event.event, group)
    return Math.max(deaths, ...plugins.map((plugin) => deathsOf(event.id, plugin, sinceMs)))
  }

  // ── outcomes from the hub ─────────────────────────────────────────────────

  accepted({ event }: Delivery): void {
    this.#held.get(event.seq)!.open++
  }

  /** False without a valid lease, if another process has the slot, and while another delivery of its key is open. */
  mayBegin({ event }: Delivery): boolean {
    const held = this.#held.get(event.seq)
    if (held === undefined) return true
    const { slot, cursor } = held
    if (slot?.state === 'lost' || slot?.state === 'released') return false
    if (slot !== undefined && !this.#parts.isLeaseValid!()) return false
    return event.key === null || cursor.group.kind !== 'group' || this.#isAlone(held, cursor.keyOf(event.key))
  }

  #isAlone({ seq, slot }: Held, key: Key): boolean {
    if (key.running === 0 || key.running === seq) {
      key.running = seq
      return true
    }
    if (seq > key.refused) {
      key.refused = seq
      this.#broken(slot, `row ${seq} was to begin while row ${key.running} of its key is open`)
    }
    return false
  }

  /** Returns unstarted deliveries of the slot to the store. */
  takeBack(slot: OwnedSlot): void {
    const isOfSlot = (seq: number): boolean => this.#held.get(seq)?.slot === slot
    this.#parts.hub.takeBack(isOfSlot)
    if (slot.state === 'lost') this.#parts.hub.moved(isOfSlot)
  }

  /** Returns unstarted deliveries of a group to the store. */
  takeBackOf(event: string, group: string): void {
    this.#parts.hub.takeBack((seq) => {
      const of = this.#held.get(seq)?.cursor.group
      return of?.event === event && of.name === group && of.kind === 'group'
    })
  }

  /** Its row is no longer alone. */
  async begin({ event }: Delivery): Promise<(EventFrame & { expiresMs: number }) | null> {
    const held = this.#held.get(event.seq)
    const row = held === undefined ? null : await this.#parts.settler.begin(held.seq, held.slot)
    if (row === null) return null
    try {
      const now = frameOf({ ...row, id: event.id, event: event.event, key: null })
      const { subscriber, attempt, key } = event
      const unique = { ...event.unique!, while: 'running' as const }
      const { expiresMs } = row
      return { ...now, subscriber, attempt, key, unique, payload: bytesOf(now.payload), expiresMs }
    } catch {
      // Others have written it: as a row that is read, it is quarantined.
      return null
    }
  }

  begun(delivery: Delivery): void {
    const held = this.#held.get(delivery.event.seq)
    if (held === undefined) return
    if (held.slot !== undefined && this.#parts.isLeaseOver?.())
      this.#broken(held.slot, `row ${held.seq} of ${held.cursor.group.name} was begun after the end of the lease`)
    if (held.isBegun || delivery.event.expiresMs === 0) return
    held.isBegun = true
    this.#note(held, delivery, 0, 0)
  }

  unbegun(delivery: Delivery): void {
    const held = this.#held.get(delivery.event.seq)
    // Another thread may have begun a broadcast.
    if (held === undefined || held.isBegun === delivery.isBegun || held.cursor.group.kind !== 'group') return
    held.isBegun = delivery.isBegun
    this.#note(held, delivery, 0, 0)
  }

  retrying(delivery: Delivery, dueMs: number, mayLeave: boolean): boolean {
    const held = this.#held.get(delivery.event.seq)
    if (held === undefined || held.cursor.group.kind !== 'group') return false
    held.isTried = true
    if (held.trial !== null) delivery.deaths--
    held.trial = null
    if (this.#leaves(held, delivery, dueMs)) return true
    // The row of a replay keeps its number.
    const leaves =
      mayLeave &&
      !this.#isEnding &&
      !this.#replays.has(held.seq) &&
      dueMs - this.#parts.clock.nowMs() >= RETRY_LEAVES_MS
    if (leaves) {
      held.open--
      this.#settles(held)
    }
    // Even, as the end of a delay: it moves when somebody sets the clock.
    this.#note(held, delivery, leaves ? 0 : dueMs, leaves ? 2 * Math.ceil(dueMs / 2) : 0)
    return leaves
  }

  leaving(delivery: Delivery): boolean {
    const held = this.#held.get(delivery.event.seq)
    if (held === undefined || held.cursor.group.kind !== 'group') return false
    return this.#leaves(held, delivery, 0)
  }

  /** On a server: a failed delivery of a slot assigned to or owned by another process is tried again there. */
  #leaves(held: Held, delivery: Delivery, retryMs: number): boolean {
    const { slot } = held
    if (slot === undefined || slot.state === 'held') return false
    if (slot.state === 'draining') {
      // The next owner counts this attempt: the slot is released after the commit.
      this.#settles(held, 'leaving')
      this.#note(held, this.#untried(held, delivery), retryMs, 0)
    } else this.#remove(held.seq)
    return true
  }

  /** Without the death noted in advance for a row that runs alone. */
  #untried({ trial }: Held, delivery: Delivery): Delivery {
    return trial === null ? delivery : { ...delivery, deaths: delivery.deaths - 1 }
  }

  #note(held: Held, { attempt, deaths, error, isBegun }: Delivery, retryMs: number, dueMs: number): void {
    held.isBegun ||= isBegun
    const noted: NotedDelivery = { seq: held.seq, attempt, deaths, error, isBegun: held.isBegun, retryMs, dueMs }
    this.#parts.settler.note(noted, held.slot, held.state === 'leaving' || dueMs > 0)
  }

  /** The dead letter, the end of its row and the block of its key are one commit. Resolves after it. */
  storeDeadLetter(delivery: Delivery, deadLetter: FailedDelivery): Promise<void> {
    const { settler, reader, hub } = this.#parts
    const held = this.#held.get(delivery.event.seq)!
    const isGroup = held.cursor.group.kind === 'group'
    const row = settler.rowOf({ ...deadLetter, parks: deadLetter.parks && isGroup })
    if (this.#replays.delete(held.seq))
      settler.replayed({ seq: held.seq, error: deadLetter.error, letter: row.id }, held.slot)
    if (isGroup) this.#settles(held)
    if (row.isParked) {
      this.#parts.onBlocking?.(row.id, false)
      reader.park(held.cursor, held.key!, row.id, held.place)
      hub.takeBehind(delivery)
    }
    const stored = settler.deadLetter(
      isGroup ? { row, seq: held.seq, place: held.place } : { row, seq: 0, place: 0 },
      held.slot,
    )
    return row.isParked ? stored.then(() => this.#parts.onBlocking?.(row.id, true)) : stored
  }

  ended(delivery: Delivery, isDone: boolean): void {
    const held = this.#held.get(delivery.event.seq)
    if (held === undefined) return
    const { kind } = held.cursor.group
    // Departed broadcasts and temporary subscribers take no more.
    if (!isDone && (kind === 'group' || this.#isEnding)) return this.#return(held, delivery)
    this.#ended(held)
  }

  /** One of its deliveries has ended. @param error of a replay */
  #ended(held: Held, error: string | null = null): void {
    held.open--
    if (held.open > 0 || held.state !== 'held') return
    this.#settles(held)
    const { settler } = this.#parts
    if (this.#replays.delete(held.seq)) settler.replayed({ seq: held.seq, error, letter: null }, held.slot)
    settler.done(held.seq, held.slot)
  }

  /** It stays in the store. */
  #return(held: Held, delivery: Delivery): void {
    if (held.state !== 'held') return
    if (held.trial !== null) this.#note(held, this.#untried(held, delivery), 0, 0)
    this.#remove(held.seq)
    this.#back(held)
  }

  /** The row is in the store, and no longer in hand. */
  #back({ cursor, place, key, share }: Held): void {
    if (!this.#isEnding) this.#parts.reader.back(cursor.group.id, place, key, share)
  }

  /** The hub is done with it. The row is in hand until the outcome is committed. */
  #settles(held: Held, state: 'settling' | 'leaving' = 'settling'): void {
    const { reader } = this.#parts
    held.state = state
    this.#closed(held)
    reader.load.settling++
    reader.rowLeft(held.cursor, held.bytes, held.key, held.share)
  }

  /** The key of the row may go on. */
  #closed({ seq, cursor, key: name }: Held): void {
    const key = name === null ? undefined : cursor.keys.get(name)
    if (key !== undefined && key.running === seq) key.running = 0
  }

  #committed(seq: number): void {
    const held = this.#held.get(seq)
    if (held === undefined || held.state === 'held')
      this.#broken(held?.slot, `an outcome of row ${seq} was written, which was ${held?.state ?? 'not in hand'}`)
    this.#remove(seq)
  }

  #remove(seq: number): void {
    const held = this.#held.take(seq)
    if (held === undefined) return
    const { reader } = this.#parts
    const { state } = held
    this.#closed(held)
    if (state === 'settling' || state === 'leaving') reader.load.settling--
    else reader.rowLeft(held.cursor, held.bytes, held.key, held.share)
    reader.gone(seq, held.cursor, held.share, held.key)
    if (held.slot !== undefined) this.#parts.onLeft?.(held.slot)
    // The slot may be held again.
    if (state === 'leaving') this.#back(held)
  }

  /** Number of rows in hand whose outcomes are not committed yet, of matching events. */
  settling(isWanted: (event: Meant) => boolean): number {
    let count = 0
    for (const held of this.#held.items())
      if (held.state === 'settling' && isWanted({ ...held, event: held.cursor.group.event })) count++
    return count
  }

  /** The rows of a group. */
  *of(group: number): Generator<RowInHand> {
    for (const { seq, share, key, state, cursor } of this.#held.items())
      if (cursor.group.id === group) yield { seq, share, key, isInHub: state === 'held' }
  }

  // ── rows that may have crashed processes ──────────────────────────────────

  /** Notes one more death before a row runs: if the process dies of it, the next one knows. Resolves after the commit. */
  async note(row: StoredDelivery): Promise<StoredDelivery> {
    const noted = { ...row, deaths: row.deaths + 1 }
    // Its slot is not released before the death is taken back.
    if (row.slot !== undefined) row.slot.inHand++
    this.#noteTrial(noted, noted.deaths)
    await this.#parts.settler.written()
    this.#trials.set(row.seq, noted)
    return noted
  }

  #noteTrial({ seq, attempt, error, isBegun, retryMs, slot }: StoredDelivery, deaths: number): void {
    this.#parts.settler.note({ seq, attempt, deaths, error, isBegun, retryMs, dueMs: 0 }, slot)
  }

  /** Takes back the death noted in advance if the row was not handed out. */
  untried(seq: number): void {
    const trial = this.#trials.get(seq)
    if (trial === undefined) return
    this.#noteTrial(trial, trial.deaths - 1)
    this.#trialEnded(trial)
  }

  #trialEnded({ seq, slot }: StoredDelivery): void {
    this.#trials.delete(seq)
    if (slot !== undefined) this.#parts.onLeft?.(slot)
  }

  /** Takes back the deaths noted in advance: the process ends in order. */
  takeBackTrials(): void {
    for (const { trial } of this.#held.items()) if (trial !== null) this.#noteTrial(trial, trial.deaths - 1)
    for (const seq of [...this.#trials.keys()]) this.untried(seq)
  }

  isTried(seq: number): boolean {
    return this.#held.get(seq)?.isTried ?? true
  }

  // ── replays ───────────────────────────────────────────────────────────────

  /** A dead letter is a row of its group again. @param sinceMs start of the replay, milliseconds since the epoch */
  replaying(seq: number, sinceMs: number): void {
    this.#replays.set(seq, sinceMs)
  }

  /** Leaves deliveries the hub gives up in the store from now on. */
  end(): void {
    this.#isEnding = true
  }
}
