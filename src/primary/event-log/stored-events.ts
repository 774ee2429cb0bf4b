// Stored events that are in the hub, and what becomes of them.
import { Numbered } from '../../core/collections/numbered.ts'
import { DUE_BEGUN, DUE_BEGUN_WITH_GROUP, DUE_WITH_GROUP, type WaitingDelivery } from '../../transport/log-changes.ts'
import type { LogMemory } from '../../transport/memory/log-memory.ts'
import type { Delivery, EventSource, FailedDelivery, Share } from '../events/consumer.ts'
import type { ParkedKeys } from '../events/key-order.ts'
import type { DueEvents } from './due-events.ts'
import type { KnownGroups } from './known-groups.ts'
import type { Settler } from './settler.ts'

/** Why a group of an event does not get it at present: behind a dead letter, until its next attempt is due, or until the group is here. */
type Wait = 'letter' | 'time' | 'group'

/** An event that the hub gets. */
export interface BegunEvent {
  seq: number
  /** Its name. */
  event: string
  /** Its deliveries, when only some of them are left; null: all. */
  left: readonly WaitingDelivery[] | null
  /** Groups that it waits for and that are not here. */
  absent: readonly string[]
  /** Slot of its key, NO_SLOT or UNKNOWN_SLOT. */
  slot: number
  /** It belonged to no process, and was taken because there was room for it. */
  isTaken: boolean
  /** Groups that are on trial (see StoredRow). */
  trial?: readonly string[]
}

/** The event has no key. */
export const NO_SLOT = -1
/** It has a key whose slot is not known here: it was stored while this process was alone. */
export const UNKNOWN_SLOT = -2

const NO_TRIAL = new Set<string>()

/** A stored event that the hub has: it is forgotten when its last delivery has ended. */
export class StoredEvent {
  readonly seq: number
  /** Its name. */
  readonly event: string
  /** Processes that have died while they handled a delivery of it; null: none, as far as is known. */
  deathsOf: ((delivery: Delivery) => number) | null = null
  slot: number
  readonly isTaken: boolean
  /** Deliveries that have not ended. */
  open: Delivery[] = []
  /** It stays in the log whatever becomes of them: it is being copied for other processes. */
  isHeld = false
  /** Deliveries that this process has given up at its end: the next one makes them. */
  readonly givenBack: Delivery[] = []
  /** Deliveries that it has ever had here, and the copies for other processes. */
  deliveries = 0
  /** Groups for which it waits in the log while it is here for others; null: there has been none. */
  #waits: Map<string, Wait> | null = null
  /** Its deliveries have rows of their own. */
  isSplit: boolean
  readonly #trial: Set<string>

  constructor({ seq, event, left, absent, slot, isTaken, trial }: BegunEvent) {
    this.#trial = trial === undefined ? NO_TRIAL : new Set(trial)
    this.slot = slot
    this.isTaken = isTaken
    this.seq = seq
    this.event = event
    this.isSplit = left !== null
    for (const group of absent) this.waits(group, 'group')
  }

  /** True while nothing of it is at work here. */
  get isIdle(): boolean {
    return this.open.length === 0 && !this.isHeld
  }

  /** True when nobody here has it or waits for it, and nobody elsewhere. */
  get isDone(): boolean {
    return this.isIdle && !this.#waits?.size
  }

  /** It waits in the log for the group. */
  waits(group: string, why: Wait): void {
    this.#waits ??= new Map()
    this.#waits.set(group, why)
  }

  /** Groups for which it waits for this reason. */
  waitingFor(why: Wait): string[] {
    return this.#waits === null ? [] : [...this.#waits.keys()].filter((group) => this.isWaiting(group, why))
  }

  isWaiting(group: string, why: Wait): boolean {
    return this.#waits?.get(group) === why
  }

  /** Nothing waits for the group any more. */
  forgetGroup(group: string): void {
    if (this.isWaiting(group, 'group')) this.#waits!.delete(group)
  }

  /** True when it waits in the log, and only for groups that are not here. */
  get isAwaited(): boolean {
    return this.isIdle && !!this.#waits?.size && [...this.#waits.values()].every((why) => why === 'group')
  }

  /** True when it may be left to another process: it is not ordered, and no thread has had it. */
  get isSharable(): boolean {
    if (this.slot !== NO_SLOT || this.isTaken || this.isHeld) return false
    if (this.#waits?.size) return false
    return this.open.every((delivery) => !delivery.isBegun && !isBroadcast(delivery) && delivery.deaths === 0)
  }

  /**
   * Whom it goes to now, while others are at work on it: all for whom it has waited and who are here. Who must go on waiting, does so in the hub.
   * @param left its deliveries as they are stored
   * @param isHere true for a group of its event that this process has
   * @returns null when nobody has waited
   */
  sharesBack(left: readonly WaitingDelivery[] | null, isHere: (group: string) => boolean): readonly Share[] | null {
    const waits = this.#waits
    if (!waits?.size) return null
    const groups = [...waits.keys()].filter(isHere)
    for (const group of groups) waits.delete(group)
    return groups.map((group) => left?.find((row) => row.group === group) ?? newDelivery(this.seq, group))
  }

  add(delivery: Delivery): void {
    // Not by `push`, which makes room for seventeen where mostly there is but one.
    this.open = this.open.length === 0 ? [delivery] : [...this.open, delivery]
    this.deliveries++
    const deaths = this.deathsOf?.(delivery) ?? 0
    if (deaths <= delivery.deaths) return
    delivery.deaths = deaths
    delivery.isBegun = true
  }

  /** This process has not died of the delivery. @returns true when one death too many is stored */
  outlived(delivery: Delivery): boolean {
    return this.#trial.delete(delivery.consumer.group)
  }
}

/** Every thread gets it: it has no row of its own. */
export const isBroadcast = ({ queue }: Delivery): boolean => queue.instance !== null

const dueWithGroup = ({ isBegun }: Pick<WaitingDelivery, 'isBegun'>): number =>
  isBegun === true ? DUE_BEGUN_WITH_GROUP : DUE_WITH_GROUP

/** What is left of a delivery that nobody has begun. */
export const newDelivery = (seq: number, group: string, isHere = true): WaitingDelivery => ({
  seq,
  group,
  attempt: 1,
  deaths: 0,
  dueMs: isHere ? 0 : DUE_WITH_GROUP,
  error: '',
})

/** The groups that events wait for. */
type Awaited = Pick<KnownGroups, 'isKnown' | 'waits' | 'isShared'>

/** The stored events that the hub has at present, and what has become of them since the last commit. */
export class StoredEvents implements EventSource {
  readonly isBroker = false
  readonly #live = new Numbered<StoredEvent>()
  readonly #settler: Settler
  readonly #memory: LogMemory
  readonly #parked: ParkedKeys
  readonly #due: DueEvents
  /** Letters whose commit is not over. */
  readonly #storing = new Set<string>()
  /** Positions of the events that are replayed, and since when they are. */
  readonly #replays = new Map<number, number>()
  /** Events that are stored and not here: they wait in the log. */
  #waiting = 0
  /** This process ends: what has not ended stays in the log. */
  #isEnding = false
  /** Positions of events that are given back at this moment. */
  #given: number[] | null = null

  /** Gets the positions of events that leave the hub; null: nobody wants to know. */
  #leavers: Set<number> | null = null

  readonly #groups: Awaited

  constructor(settler: Settler, memory: LogMemory, parked: ParkedKeys, groups: Awaited, due: DueEvents) {
    this.#parked = parked
    this.#due = due
    this.#settler = settler
    this.#memory = memory
    this.#groups = groups
  }

  /** True when the event is here, or has just been forgotten. */
  knows(seq: number): boolean {
    return this.#live.get(seq) !== undefined || this.#settler.isForgetting(seq)
  }

  /** True until the letter is stored. */
  isStoring(letter: string): boolean {
    return this.#storing.has(letter)
  }

  /** An event that the hub has. */
  live(seq: number): StoredEvent | undefined {
    return this.#live.get(seq)
  }

  /** True for these, and for those that wait in the log, behind a dead letter or for their next attempt. */
  holds(seq: number): boolean {
    return this.knows(seq) || this.#parked.isWaiting(seq) || this.#due.isRetry(seq)
  }

  /** The slot of an event's key has been found. */
  isOfSlot(seq: number, slot: number): void {
    const event = this.#live.get(seq)
    if (event !== undefined) event.slot = slot
  }

  /** Adds the positions of events that leave the hub from now on, until it is called with null. */
  collectLeavers(leavers: Set<number> | null): void {
    this.#leavers = leavers
  }

  begin(begun: BegunEvent): StoredEvent {
    const event = new StoredEvent(begun)
    this.#due.retried(event.seq)
    this.#live.set(event.seq, event)
    this.#count()
    return event
  }

  accepted(delivery: Delivery): void {
    this.#eventOf(delivery).add(delivery)
  }

  /** It is here as long as one of its deliveries is. */
  #eventOf({ event }: Delivery): StoredEvent {
    return this.#live.get(event.seq)!
  }

  /** Nobody was there to take it: it is done. */
  forget(event: StoredEvent): void {
    this.#remove(event.seq)
    this.#settler.forget(event.seq, event.isSplit)
    this.#count()
  }

  /** A broker has refused it: it stays in the log. */
  leave(event: StoredEvent): void {
    this.#remove(event.seq)
    this.#count()
  }

  /** It waits for those of its groups that are not here, and nobody else is left who could be done with it. */
  waitForAbsent(event: StoredEvent, left: readonly WaitingDelivery[] | null): void {
    const absent = event.waitingFor('group')
    if (absent.length === 0) return
    this.#split(event, null)
    for (const row of left ?? [])
      if (row.dueMs >= 0 && absent.includes(row.group))
        this.#settler.settle('waiting', { ...row, dueMs: dueWithGroup(row) })
    for (const group of absent) this.#groups.waits(event.event, group)
    if (event.isIdle) this.#leaveHub(event)
  }

  /** Groups have gone while their next attempts waited in the log: everybody who is here has been offered theirs. */
  awaitAway(event: StoredEvent, left: readonly WaitingDelivery[] | null): void {
    for (const row of left ?? []) {
      if (!event.isWaiting(row.group, 'time')) continue
      this.#settler.settle('waiting', { ...row, dueMs: dueWithGroup(row) })
      this.#awaits(event, row.group)
    }
  }

  #awaits(event: StoredEvent, group: string): void {
    event.waits(group, 'group')
    this.#groups.waits(event.event, group)
  }

  #remove(seq: number): void {
    this.#live.take(seq)
    this.#leavers?.add(seq)
  }

  /** Nobody here is at work on it any more, and it stays in the log. */
  #leaveHub(event: StoredEvent): void {
    this.#remove(event.seq)
    // Another process may have the groups that it waits for.
    if (event.isAwaited && this.#groups.isShared) this.#settler.settle('released', event.seq)
    this.#count()
  }

  /** Positions of events that wait for a group, while others are at work on them. */
  awaiting(name: string, group: string): number[] {
    const found: number[] = []
    for (const event of this.#live.items())
      if (event.event === name && event.isWaiting(group, 'group')) found.push(event.seq)
    return found
  }

  /** A group is forgotten: nothing waits for it any more. */
  forgetGroup(name: string, group: string): void {
    for (const event of this.#live.items()) if (event.event === name) event.forgetGroup(group)
  }

  /** What was begun in time is done also when its process dies meanwhile. */
  begun(delivery: Delivery): void {
    if (delivery.event.expiresMs === 0 || isBroadcast(delivery)) return
    const event = this.#eventOf(delivery)
    this.#split(event, delivery)
    this.#wait(event, delivery, DUE_BEGUN)
  }

  retrying(delivery: Delivery, dueMs: number, mayLeave: boolean): boolean {
    if (isBroadcast(delivery)) return false
    const event = this.#eventOf(delivery)
    event.outlived(delivery)
    this.#split(event, delivery)
    this.#wait(event, delivery, dueMs)
    if (!mayLeave || this.#isEnding || !this.#due.keepRetry(dueMs, event.seq)) return false
    remove(event, delivery)
    event.waits(delivery.consumer.group, 'time')
    if (event.isIdle) this.#leaveHub(event)
    else this.#count()
    return true
  }

  #wait({ seq }: StoredEvent, { consumer, attempt, deaths, error }: Delivery, dueMs: number): void {
    this.#settler.settle('waiting', { seq, group: consumer.group, attempt, deaths, dueMs, error })
  }

  /** Its deliveries have rows of their own from now on. @param but one whose row is written by the caller */
  #split(event: StoredEvent, but: Delivery | null): void {
    if (event.isSplit) return
    event.isSplit = true
    for (const other of [...event.open, ...event.givenBack])
      if (other !== but && !isBroadcast(other)) this.#wait(event, other, 0)
    // Behind a letter it was in the log as it was, as long as nobody else got the event.
    for (const group of event.waitingFor('letter')) this.#settler.settle('waiting', newDelivery(event.seq, group))
    for (const group of event.waitingFor('group')) this.#settler.settle('waiting', newDelivery(event.seq, group, false))
  }

  /** Its group has gone from this process: the delivery waits in the log until it is here again. */
  #awaitGroup(event: StoredEvent, delivery: Delivery): void {
    event.outlived(delivery)
    this.#split(event, delivery)
    this.#wait(event, delivery, dueWithGroup(delivery))
    this.#awaits(event, delivery.consumer.group)
    if (event.isIdle) this.#leaveHub(event)
  }

  park(delivery: Delivery): void {
    const event = this.#eventOf(delivery)
    // Where nobody else gets the event, it is in the log as it was.
    if (event.deliveries > 1) this.#split(event, null)
    remove(event, delivery)
    event.waits(delivery.consumer.group, 'letter')
    if (event.isIdle) this.#remove(event.seq)
    this.#count()
  }

  /** An event is a letter that is replayed: what becomes of it is told there. */
  replaying(seq: number, sinceMs: number): void {
    this.#replays.set(seq, sinceMs)
  }

  /** Since when it is a replay, milliseconds since the epoch; 0: it is none. */
  replayedMs(seq: number): number {
    return this.#replays.get(seq) ?? 0
  }

  /** The letter and the end of its delivery are in one commit. Resolves after it. */
  storeDeadLetter(delivery: Delivery, letter: FailedDelivery): Promise<void> {
    const event = this.#eventOf(delivery)
    const row = this.#settler.rowOf(letter)
    const { group, parks } = letter
    if (parks) this.#parked.park({ event: event.event, group, key: letter.event.key }, row.id)
    if (this.#replays.delete(event.seq))
      this.#settler.settle('replayed', { seq: event.seq, error: letter.error, letter: row.id })
    remove(event, delivery)
    // Else whoever reads the event after this process gives it to this group, too.
    if (!event.isDone) this.#split(event, delivery)
    this.#end(event, delivery, null)
    this.#storing.add(row.id)
    return this.#settler.letter(row).then(() => void this.#storing.delete(row.id))
  }

  ended(delivery: Delivery, isDone: boolean): void {
    const event = this.#live.get(delivery.event.seq)
    // Its letter is stored.
    if (event === undefined || !remove(event, delivery)) return
    const isGivenBack = this.#isEnding || this.#given !== null
    if (isDone || (isBroadcast(delivery) && !isGivenBack))
      return this.#end(event, delivery, isDone ? null : 'Its subscriber is gone')
    if (isGivenBack) return this.#giveBack(event, delivery)
    if (this.#groups.isKnown(event.event, delivery.consumer.group)) return this.#awaitGroup(event, delivery)
    this.#end(event, delivery, 'Its subscriber is gone')
  }

  #giveBack(event: StoredEvent, delivery: Delivery): void {
    const { isBegun } = delivery
    if (event.outlived(delivery)) this.#wait(event, delivery, isBegun && delivery.event.expiresMs !== 0 ? DUE_BEGUN : 0)
    event.givenBack.push(delivery)
    if (!event.isIdle) return
    // What is done is not to be done again.
    if (event.givenBack.length < event.deliveries) this.#split(event, null)
    this.#remove(event.seq)
    this.#given?.push(event.seq)
    this.#count()
  }

  /** Its copies for other processes are stored. */
  release(event: StoredEvent): void {
    event.isHeld = false
    if (event.isIdle) this.#end(event, null, null)
  }

  /**
   * Gives events back of which no thread has a delivery.
   * @param take has the hub end the deliveries of the events for which its argument holds
   * @returns their positions: they are in the log alone from now on
   */
  giveBack(isWanted: (event: StoredEvent) => boolean, take: (isTaken: (seq: number) => boolean) => void): number[] {
    const given: number[] = []
    this.#given = given
    take((seq) => {
      const event = this.#live.get(seq)
      return event !== undefined && isWanted(event)
    })
    this.#given = null
    return given
  }

  /** True while the hub has events for which this holds. */
  has(isWanted: (event: StoredEvent) => boolean): boolean {
    for (const event of this.#live.items()) if (isWanted(event)) return true
    return false
  }

  /** Positions of such events. */
  positionsOf(isWanted: (event: StoredEvent) => boolean): number[] {
    return this.#live
      .items()
      .filter(isWanted)
      .map(({ seq }) => seq)
  }

  /** Events that wait behind dead letters wait for another process. */
  unpark(positions: readonly number[]): void {
    this.#parked.dropPositions(positions)
    this.#count()
  }

  /**
   * @param delivery null: the copies of the event are stored
   * @param replayError why a replay was for nothing; null when it was handled
   */
  #end(event: StoredEvent, delivery: Delivery | null, replayError: string | null): void {
    if (this.#replays.delete(event.seq))
      this.#settler.settle('replayed', { seq: event.seq, error: replayError, letter: null })
    // What is given back needs rows of its own, for this one is done.
    if (event.givenBack.length > 0) this.#split(event, delivery)
    else if (event.isDone) return this.forget(event)
    // It stays for those that wait: whoever reads it then must not give it to this one again.
    else if (event.isIdle) this.#split(event, delivery)
    if (event.isSplit && delivery !== null && !isBroadcast(delivery))
      this.#settler.settle('done', { seq: event.seq, group: delivery.consumer.group })
    if (event.isIdle) this.#leaveHub(event)
    else this.#count()
  }

  /** From now on what the hub gives up stays in the log. */
  end(): void {
    this.#isEnding = true
  }

  /** @param waiting events that are in the log and not here */
  set waiting(waiting: number) {
    this.#waiting = waiting
    this.#count()
  }

  #count(): void {
    // Letters that hold up a key are never dropped: they have the bound of what waits for them.
    this.#memory.parked = Math.max(this.#parked.waiting, this.#parked.size)
    this.#memory.stored = this.#live.size + this.#waiting + this.#parked.waiting
  }
}

/** @returns false when it had been removed before */
function remove({ open }: StoredEvent, delivery: Delivery): boolean {
  const at = open.indexOf(delivery)
  if (at >= 0) open.splice(at, 1)
  return at >= 0
}
