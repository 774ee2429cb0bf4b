// One event of the log that is in the hub.
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type {
  Consumer,
  DeliverySource,
  FailedDelivery,
  RetryPlan,
  StoredShare,
  StoredShares,
} from '../events/consumer.ts'
import { ANYBODY } from './known-groups.ts'
import type { DeliveryRow } from './log-reader.ts'

/** A retry that is due later than this leaves the hub until then, milliseconds. */
const RETRY_LEAVES_MS = 1000

/** Stored events of which deliveries wait in the log, and not in the hub, for their next attempt. */
export class AwayRetries {
  readonly #positions = new Set<number>()
  readonly #onAway: (dueMs: number, seq: number) => void

  /** @param onAway told when deliveries of an event wait in the log until then */
  constructor(onAway: (dueMs: number, seq: number) => void) {
    this.#onAway = onAway
  }

  get size(): number {
    return this.#positions.size
  }

  has(seq: number): boolean {
    return this.#positions.has(seq)
  }

  /** Its deliveries are here again. */
  delete(seq: number): void {
    this.#positions.delete(seq)
  }

  /** @returns false when it is due so soon that it stays */
  add(seq: number, dueMs: number): boolean {
    if (dueMs - Date.now() < RETRY_LEAVES_MS) return false
    this.#positions.add(seq)
    this.#onAway(dueMs, seq)
    return true
  }

  /** An event waits in the log when the next attempts of all its deliveries are due later, and nothing waits behind it. */
  keeps({ seq, key }: EventFrame, left: readonly DeliveryRow[] | null): boolean {
    if (key !== null || left === null || left.length === 0) return false
    if (left.some(({ deaths }) => Number(deaths) > 0)) return false
    return this.add(seq, Math.min(...left.map(({ due_ms }) => Number(due_ms))))
  }
}

/** What becomes of the deliveries of stored events: see DeliverySource. */
interface DeliveryEnds {
  readonly away: AwayRetries
  retrying(delivery: StoredDelivery, plan: RetryPlan): boolean
  park(delivery: StoredDelivery, positions: Set<number>): void
  storeLetter(delivery: StoredDelivery, letter: FailedDelivery): Promise<void>
  ended(delivery: StoredDelivery, isDone: boolean): void
}

/** An event that the hub gets. */
export interface BegunEvent {
  seq: number
  /** Its name. */
  event: string
  /** Its deliveries, when only some of them are left; null: all. */
  left: readonly DeliveryRow[] | null
  /** The hub has recorded it before. */
  isRecorded: boolean
  /** Groups that it waits for and that are not here. */
  absent: readonly string[]
}

/** The event has no key. */
export const NO_SLOT = -1
/** It has a key whose slot is not known here: it was stored while this process was alone. */
export const UNKNOWN_SLOT = -2

/** A stored event that the hub has: it is forgotten when its last delivery has ended. */
export class StoredEvent implements StoredShares {
  readonly seq: number
  /** Its name. */
  readonly event: string
  /** Processes that have died while they handled it. */
  deaths = 0
  /** Slot of its key, NO_SLOT or UNKNOWN_SLOT. */
  slot = NO_SLOT
  /** It belonged to no process, and was taken because there was room for it. */
  isTaken = false
  /** Deliveries that have not ended. */
  open: StoredDelivery[] = []
  /** Deliveries that this process has given up at its end: the next one makes them. */
  readonly givenBack: StoredDelivery[] = []
  /** Deliveries that it has ever had here. */
  deliveries = 0
  /** Subscribers for whom it waits in the log, behind a dead letter. */
  parked: Set<string> | null = null
  /** Subscribers for whom it waits in the log for its next attempt. */
  away: Set<string> | null = null
  /** Groups for which it waits in the log because they are not here; null: none. */
  absent: Set<string> | null
  /** Its deliveries have rows of their own. */
  isSplit: boolean
  readonly isRecorded: boolean
  readonly #ends: DeliveryEnds
  /** The deliveries that were left when it was read from the log; null: all. */
  readonly #left: readonly DeliveryRow[] | null

  constructor(ends: DeliveryEnds, { seq, event, left, isRecorded, absent }: BegunEvent) {
    this.#ends = ends
    this.seq = seq
    this.event = event
    this.isSplit = left !== null
    this.#left = left
    this.isRecorded = isRecorded
    this.absent = absent.length === 0 ? null : new Set(absent)
  }

  /** True when nobody here has it or waits for it, and nobody elsewhere. */
  get isDone(): boolean {
    return this.open.length === 0 && !this.parked?.size && !this.away?.size && (this.absent?.size ?? 0) === 0
  }

  /** True when it may be left to another process: it is not ordered, and no thread has had it. */
  get isSharable(): boolean {
    if (this.slot !== NO_SLOT || this.isTaken || this.parked?.size || this.away?.size || this.absent?.size) return false
    return this.open.every(({ isBegun, isBroadcast, deaths }) => !isBegun && !isBroadcast && deaths === 0)
  }

  get hasDeliveries(): boolean {
    return this.deliveries > 0
  }

  /**
   * Whom it goes to now, while others are at work on it: those that its key has held up, that are here again, or whose next attempt is due.
   * @param isFreed its key goes on
   * @param left its deliveries as they are stored
   * @returns null when nobody has waited
   */
  sharesBack(isFreed: boolean, left: readonly DeliveryRow[] | null): StoredShares | null {
    const isDue = (this.away?.size ?? 0) > 0 && left !== null
    if (!isFreed && !isDue && this.absent === null) return null
    if (isDue) this.#ends.away.delete(this.seq)
    return {
      isRecorded: true,
      shareOf: ({ group }) => {
        const row = left?.find(({ grp }) => grp === group)
        const isBack = this.parked?.delete(group) || this.absent?.delete(group) === true
        return isBack || (row !== undefined && this.away?.delete(group)) ? this.#share(group, row) : null
      },
    }
  }

  /** Keeps it in the log until the one that holds it says that this has ended. */
  hold(): StoredDelivery {
    return this.#begin('', true)
  }

  #begin(group: string, isBroadcast: boolean): StoredDelivery {
    const source = new StoredDelivery(this.#ends, this, group, isBroadcast)
    // Not by `push`, which makes room for seventeen where mostly there is but one.
    this.open = this.open.length === 0 ? [source] : [...this.open, source]
    this.deliveries++
    return source
  }

  shareOf({ group, broadcast }: Consumer): StoredShare | null {
    const left = this.#left
    const row = left === null ? undefined : (left.find(({ grp }) => grp === group) ?? left.find(isForAnybody))
    if (left !== null && row === undefined) return null
    return this.#share(group, row, broadcast)
  }

  #share(group: string, row: DeliveryRow | undefined, isBroadcast = false): StoredShare {
    const source = this.#begin(group, isBroadcast)
    if (row === undefined) return { source, attempt: 1, deaths: this.deaths, dueMs: 0 }
    source.attempt = Number(row.attempt)
    source.deaths = Number(row.deaths)
    source.error = row.error
    return {
      source,
      attempt: source.attempt,
      deaths: Math.max(source.deaths, this.deaths),
      dueMs: Math.max(0, Number(row.due_ms)),
    }
  }
}

const isForAnybody = ({ grp }: DeliveryRow): boolean => grp === ANYBODY

/** One delivery of a stored event, as the hub tells what becomes of it. */
export class StoredDelivery implements DeliverySource {
  readonly isBroker = false
  readonly event: StoredEvent
  readonly group: string
  /** Every thread gets it: it has no row of its own. */
  readonly isBroadcast: boolean
  /** Number of its next attempt, and the threads that died of it. */
  attempt: number
  deaths: number
  /** Why the attempt before has failed. */
  error = ''
  /** It has been tried here, and waits for its next attempt or is under way again. */
  isTried = false
  hasEnded = false
  /** A thread has had it. */
  isBegun = false
  readonly #ends: DeliveryEnds

  constructor(ends: DeliveryEnds, event: StoredEvent, group: string, isBroadcast: boolean) {
    this.#ends = ends
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
    return this.#ends.retrying(this, plan)
  }

  park(positions: Set<number>): boolean {
    this.#ends.park(this, positions)
    return true
  }

  storeDeadLetter(letter: FailedDelivery): Promise<void> {
    return this.#ends.storeLetter(this, letter)
  }

  ended(isDone: boolean): void {
    this.#ends.ended(this, isDone)
  }
}
