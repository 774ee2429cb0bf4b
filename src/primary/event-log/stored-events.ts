import type { LogMemory } from '../../transport/memory/log-memory.ts'
import type {
  Consumer,
  DeliverySource,
  FailedDelivery,
  RetryPlan,
  StoredShare,
  StoredShares,
} from '../events/consumer.ts'
import type { ParkedKeys } from '../events/parked-keys.ts'
import { AwayRetries } from './away-retries.ts'
import type { ChangeWriter } from './change-writer.ts'
import { rowOf } from './letter-row.ts'
import type { DeliveryRow } from './log-reader.ts'

/** The event has no key. */
export const NO_SLOT = -1
/** It has a key whose slot is not known here: it was stored while this process was alone. */
export const UNKNOWN_SLOT = -2

/** A stored event that the hub has: it is forgotten when its last delivery has ended. */
class StoredEvent implements StoredShares {
  readonly seq: number
  /** Processes that have died while they handled it. */
  deaths = 0
  /** Slot of its key, NO_SLOT or UNKNOWN_SLOT. */
  slot = NO_SLOT
  /** It belonged to no process, and was taken because there was room for it. */
  isTaken = false
  /** Deliveries that have not ended. */
  readonly open: StoredDelivery[] = []
  /** Deliveries that this process has given up at its end: the next one makes them. */
  readonly givenBack: StoredDelivery[] = []
  /** Deliveries that it has ever had here. */
  deliveries = 0
  /** Subscribers for whom it waits in the log, behind a dead letter. */
  readonly parked = new Set<string>()
  /** Subscribers for whom it waits in the log for its next attempt. */
  readonly away = new Set<string>()
  /** Its deliveries have rows of their own. */
  isSplit: boolean
  readonly isRecorded: boolean
  readonly #events: StoredEvents
  /** The deliveries that were left when it was read from the log; null: all. */
  readonly #left: readonly DeliveryRow[] | null

  constructor(events: StoredEvents, seq: number, left: readonly DeliveryRow[] | null, isRecorded: boolean) {
    this.#events = events
    this.seq = seq
    this.isSplit = left !== null
    this.#left = left
    this.isRecorded = isRecorded
  }

  /** True when it may be left to another process: it is not ordered, and no thread has had it. */
  get isSharable(): boolean {
    if (this.slot !== NO_SLOT || this.isTaken || this.parked.size > 0) return false
    return this.open.every(({ isBegun, isBroadcast, deaths }) => !isBegun && !isBroadcast && deaths === 0)
  }

  get hasDeliveries(): boolean {
    return this.deliveries > 0
  }

  /**
   * Whom it goes to now, while others are at work on it: those that its key has held up, or whose next attempt is due.
   * @param isFreed its key goes on
   * @param left its deliveries as they are stored
   * @returns null when nobody has waited
   */
  sharesBack(isFreed: boolean, left: readonly DeliveryRow[] | null): StoredShares | null {
    if (isFreed) return this.#freed
    return this.away.size > 0 && left !== null ? this.#returned(left) : null
  }

  get #freed(): StoredShares {
    return {
      isRecorded: true,
      shareOf: ({ group }) => {
        if (!this.parked.delete(group)) return null
        return { source: this.#begin(group, false), attempt: 1, deaths: 0, dueMs: 0 }
      },
    }
  }

  #returned(left: readonly DeliveryRow[]): StoredShares {
    this.#events.away.delete(this.seq)
    return {
      isRecorded: true,
      shareOf: ({ group }) => {
        const row = left.find(({ grp }) => grp === group)
        return row !== undefined && this.away.delete(group) ? this.#again(group, false, row) : null
      },
    }
  }

  #again(group: string, isBroadcast: boolean, row: DeliveryRow): StoredShare {
    const source = this.#begin(group, isBroadcast)
    source.attempt = Number(row.attempt)
    source.deaths = Number(row.deaths)
    const { attempt } = source
    return { source, attempt, deaths: Math.max(source.deaths, this.deaths), dueMs: Number(row.due_ms) }
  }

  #begin(group: string, isBroadcast: boolean): StoredDelivery {
    const source = new StoredDelivery(this.#events, this, group, isBroadcast)
    this.open.push(source)
    this.deliveries++
    return source
  }

  shareOf({ group, broadcast }: Consumer): StoredShare | null {
    const left = this.#left
    const row = left === null ? undefined : left.find(({ grp }) => grp === group)
    if (left !== null && row === undefined) return null
    if (row !== undefined) return this.#again(group, broadcast, row)
    return { source: this.#begin(group, broadcast), attempt: 1, deaths: this.deaths, dueMs: 0 }
  }
}

/** One delivery of a stored event, as the hub tells what becomes of it. */
class StoredDelivery implements DeliverySource {
  readonly isBroker = false
  readonly event: StoredEvent
  readonly group: string
  /** Every thread gets it: it has no row of its own. */
  readonly isBroadcast: boolean
  /** Number of its next attempt, and the threads that died of it. */
  attempt: number
  deaths: number
  hasEnded = false
  /** A thread has had it. */
  isBegun = false
  readonly #events: StoredEvents

  constructor(events: StoredEvents, event: StoredEvent, group: string, isBroadcast: boolean) {
    this.#events = events
    this.event = event
    this.group = group
    this.isBroadcast = isBroadcast
    this.attempt = 1
    this.deaths = 0
  }

  begun(): void {
    this.isBegun = true
  }

  retrying(plan: RetryPlan): boolean {
    return this.#events.retrying(this, plan)
  }

  park(positions: Set<number>): boolean {
    this.#events.park(this, positions)
    return true
  }

  storeDeadLetter(letter: FailedDelivery): Promise<void> {
    return this.#events.storeLetter(this, letter)
  }

  ended(isDone: boolean): void {
    this.#events.ended(this, isDone)
  }
}

/** The stored events that the hub has at present, and what has become of them since the last commit. */
export class StoredEvents {
  readonly #live = new Map<number, StoredEvent>()
  readonly #writer: ChangeWriter
  readonly #memory: LogMemory
  readonly #parked: ParkedKeys
  /** Events that wait behind dead letters, each with the number of its subscribers that wait. */
  readonly #behindLetters = new Map<number, number>()
  readonly away: AwayRetries
  /** Letters whose commit is not over. */
  readonly #storing = new Set<string>()
  /** Positions of the events that are replayed. */
  readonly #replays = new Set<number>()
  /** Events that are stored and not here: they wait in the log. */
  #waiting = 0
  /** This process ends: what has not ended stays in the log. */
  #isEnding = false
  /** Positions of events that are given back at this moment. */
  #given: number[] | null = null

  /** @param onAway told when deliveries of an event wait in the log until then */
  constructor(
    writer: ChangeWriter,
    memory: LogMemory,
    parked: ParkedKeys,
    onAway: (dueMs: number, seq: number) => void,
  ) {
    this.#parked = parked
    this.away = new AwayRetries(onAway)
    this.#writer = writer
    this.#memory = memory
  }

  /** True when the event is here, or has just been forgotten. */
  knows(seq: number): boolean {
    return this.#live.has(seq) || this.#writer.isForgetting(seq)
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
    return this.knows(seq) || this.#behindLetters.has(seq) || this.away.has(seq)
  }

  /** @param left its deliveries, when only some of them are left; null: all */
  begin(seq: number, left: readonly DeliveryRow[] | null, isRecorded: boolean): StoredEvent {
    const event = new StoredEvent(this, seq, left, isRecorded)
    this.away.delete(seq)
    this.#live.set(seq, event)
    this.#count()
    return event
  }

  /** Nobody was there to take it: it is done. */
  forget(event: StoredEvent): void {
    this.#live.delete(event.seq)
    this.#writer.forget(event.seq, event.isSplit)
    this.#count()
  }

  /** Nobody was there to take it, and it stays in the log. */
  leave(event: StoredEvent): void {
    this.#live.delete(event.seq)
    this.#count()
  }

  /** @returns true when the delivery has left the hub until then */
  retrying(delivery: StoredDelivery, plan: RetryPlan): boolean {
    if (delivery.isBroadcast) return false
    const { attempt, deaths, error } = plan
    const { event } = delivery
    // The hub's clock has fractions, and a column for integers takes none.
    const dueMs = Math.ceil(plan.dueMs)
    delivery.attempt = attempt
    delivery.deaths = deaths
    this.#split(event, delivery)
    this.#writer.waiting({ seq: event.seq, group: delivery.group, attempt, deaths, dueMs, error })
    if (!plan.mayLeave || this.#isEnding || !this.away.add(event.seq, dueMs)) return false
    delivery.hasEnded = true
    remove(delivery)
    event.away.add(delivery.group)
    if (event.open.length === 0) this.#live.delete(event.seq)
    this.#count()
    return true
  }

  /** Its deliveries have rows of their own from now on. @param but one whose row is written by the caller */
  #split(event: StoredEvent, but: StoredDelivery | null): void {
    if (event.isSplit) return
    event.isSplit = true
    for (const other of [...event.open, ...event.givenBack]) {
      if (other === but || other.isBroadcast) continue
      const { group, attempt, deaths } = other
      this.#writer.waiting({ seq: event.seq, group, attempt, deaths, dueMs: 0, error: '' })
    }
  }

  /** The delivery waits in the log, behind a dead letter. @param positions of its key */
  park(delivery: StoredDelivery, positions: Set<number>): void {
    const { event, group } = delivery
    const { seq } = event
    // Where nobody else gets the event, it is in the log as it was.
    if (event.deliveries > 1) this.#split(event, null)
    delivery.hasEnded = true
    remove(delivery)
    event.parked.add(group)
    if (!positions.has(seq)) {
      positions.add(seq)
      this.#behindLetters.set(seq, (this.#behindLetters.get(seq) ?? 0) + 1)
    }
    if (event.open.length === 0) this.#live.delete(seq)
    this.#count()
  }

  /** Their key goes on: they are read from the log when what is written of them so far is there. */
  freed(positions: Iterable<number>): void {
    for (const seq of positions) {
      const waiting = this.#behindLetters.get(seq)! - 1
      if (waiting > 0) this.#behindLetters.set(seq, waiting)
      else this.#behindLetters.delete(seq)
    }
    this.#count()
  }

  /** An event is a letter that is replayed: what becomes of it is told there. */
  replaying(seq: number): void {
    this.#replays.add(seq)
  }

  /** The letter and the end of its delivery are in one commit. Resolves after it. */
  storeLetter(delivery: StoredDelivery, letter: FailedDelivery): Promise<void> {
    const row = rowOf(letter)
    const { event, group, parks } = letter
    if (parks) this.#parked.park({ event: event.event, group, key: event.key }, row.id)
    if (this.#replays.delete(delivery.event.seq)) {
      this.#writer.replayed({ seq: delivery.event.seq, error: letter.error, letter: row.id })
    }
    this.#end(delivery, null)
    this.#storing.add(row.id)
    return this.#writer.letter(row).then(() => void this.#storing.delete(row.id))
  }

  ended(delivery: StoredDelivery, isDone: boolean): void {
    if (delivery.hasEnded) return
    const isGivenBack = this.#isEnding || this.#given !== null
    if (isDone || !isGivenBack) return this.#end(delivery, isDone ? null : 'Its subscriber is gone')
    delivery.hasEnded = true
    remove(delivery)
    const { event } = delivery
    event.givenBack.push(delivery)
    if (event.open.length > 0) return
    // What is done is not to be done again.
    if (event.givenBack.length < event.deliveries) this.#split(event, null)
    this.#live.delete(event.seq)
    this.#given?.push(event.seq)
    this.#count()
  }

  /**
   * Gives events back of which no thread has a delivery.
   * @param take has the hub end the deliveries of the events for which its argument holds
   * @returns their positions: they are in the log alone from now on
   */
  giveBack(
    isWanted: (event: StoredEvent) => boolean,
    take: (isWanted: (position: number) => boolean) => void,
  ): number[] {
    const given: number[] = []
    this.#given = given
    take((position) => {
      const event = this.#live.get(position)
      return event !== undefined && isWanted(event)
    })
    this.#given = null
    return given
  }

  /** True while the hub has events for which this holds. */
  has(isWanted: (event: StoredEvent) => boolean): boolean {
    for (const event of this.#live.values()) if (isWanted(event)) return true
    return false
  }

  /** Events that wait behind dead letters wait for another process. */
  unpark(positions: readonly number[]): void {
    for (const seq of positions) this.#behindLetters.delete(seq)
    this.#parked.dropPositions(positions)
    this.#count()
  }

  /** @param replayError why a replay was for nothing; null when it was handled */
  #end(delivery: StoredDelivery, replayError: string | null): void {
    delivery.hasEnded = true
    remove(delivery)
    const { event } = delivery
    if (this.#replays.delete(event.seq)) this.#writer.replayed({ seq: event.seq, error: replayError, letter: null })
    // What is given back needs rows of its own, for this one is done.
    if (event.givenBack.length > 0) this.#split(event, delivery)
    else if (event.open.length === 0 && event.parked.size + event.away.size === 0) return this.forget(event)
    if (event.open.length === 0) this.#live.delete(event.seq)
    if (event.isSplit && !delivery.isBroadcast) this.#writer.done(event.seq, delivery.group)
    this.#count()
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
    this.#memory.stored = this.#live.size + this.#waiting + this.#behindLetters.size + this.away.size
  }
}

export type { StoredDelivery, StoredEvent }

function remove(delivery: StoredDelivery): void {
  const { open } = delivery.event
  const at = open.indexOf(delivery)
  if (at >= 0) open.splice(at, 1)
}
