// One event of the log that is in the hub.
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { DUE_WITH_GROUP, type WaitingDelivery } from '../../transport/log-changes.ts'
import type { Delivery, Share } from '../events/consumer.ts'

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
  keeps({ seq, key }: EventFrame, left: readonly WaitingDelivery[] | null): boolean {
    if (key !== null || left === null || left.length === 0) return false
    if (left.some(({ deaths }) => deaths > 0)) return false
    return this.add(seq, Math.min(...left.map(({ dueMs }) => dueMs)))
  }
}

/** An event that the hub gets. */
export interface BegunEvent {
  seq: number
  /** Its name. */
  event: string
  /** Its deliveries, when only some of them are left; null: all. */
  left: readonly WaitingDelivery[] | null
  /** Groups that it waits for and that are not here. */
  absent: readonly string[]
}

/** The event has no key. */
export const NO_SLOT = -1
/** It has a key whose slot is not known here: it was stored while this process was alone. */
export const UNKNOWN_SLOT = -2

/** A stored event that the hub has: it is forgotten when its last delivery has ended. */
export class StoredEvent {
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
  open: Delivery[] = []
  /** It stays in the log whatever becomes of them: it is being copied for other processes. */
  isHeld = false
  /** Deliveries that this process has given up at its end: the next one makes them. */
  readonly givenBack: Delivery[] = []
  /** Deliveries that it has ever had here, and the copies for other processes. */
  deliveries = 0
  /** Subscribers for whom it waits in the log, behind a dead letter. */
  parked: Set<string> | null = null
  /** Subscribers for whom it waits in the log for its next attempt. */
  away: Set<string> | null = null
  /** Groups for which it waits in the log because they are not here; null: none. */
  absent: Set<string> | null
  /** Its deliveries have rows of their own. */
  isSplit: boolean

  constructor({ seq, event, left, absent }: BegunEvent) {
    this.seq = seq
    this.event = event
    this.isSplit = left !== null
    this.absent = absent.length === 0 ? null : new Set(absent)
  }

  /** True while nothing of it is at work here. */
  get isIdle(): boolean {
    return this.open.length === 0 && !this.isHeld
  }

  /** True when nobody here has it or waits for it, and nobody elsewhere. */
  get isDone(): boolean {
    return this.isIdle && !this.parked?.size && !this.away?.size && (this.absent?.size ?? 0) === 0
  }

  /** True when it may be left to another process: it is not ordered, and no thread has had it. */
  get isSharable(): boolean {
    if (this.slot !== NO_SLOT || this.isTaken || this.isHeld) return false
    if (this.parked?.size || this.away?.size || this.absent?.size) return false
    return this.open.every((delivery) => !delivery.isBegun && !isBroadcast(delivery) && delivery.deaths === 0)
  }

  /**
   * Whom it goes to now, while others are at work on it: those that its key has held up, that are here again, or whose next attempt is due.
   * @param isFreed its key goes on
   * @param left its deliveries as they are stored
   * @param isHere true for a group of its event that this process has
   * @returns null when nobody has waited
   */
  sharesBack(
    isFreed: boolean,
    left: readonly WaitingDelivery[] | null,
    isHere: (group: string) => boolean,
  ): readonly Share[] | null {
    const isDue = (this.away?.size ?? 0) > 0 && left !== null
    if (!isFreed && !isDue && this.absent === null) return null
    const rowOf = (group: string): WaitingDelivery | undefined => left?.find((row) => row.group === group)
    const back = new Set([...(this.parked ?? []), ...(this.absent ?? [])])
    for (const group of this.away ?? []) if (rowOf(group) !== undefined) back.add(group)
    const groups = [...back].filter(isHere)
    for (const waiting of [this.parked, this.absent, this.away]) for (const group of groups) waiting?.delete(group)
    return groups.map((group) => rowOf(group) ?? newDelivery(this.seq, group))
  }

  add(delivery: Delivery): void {
    // Not by `push`, which makes room for seventeen where mostly there is but one.
    this.open = this.open.length === 0 ? [delivery] : [...this.open, delivery]
    this.deliveries++
    if (this.deaths <= delivery.deaths) return
    delivery.deaths = this.deaths
    delivery.isBegun = true
  }
}

/** Every thread gets it: it has no row of its own. */
export const isBroadcast = ({ queue }: Delivery): boolean => queue.instance !== null

/** What is left of a delivery that nobody has begun. */
export const newDelivery = (seq: number, group: string, isHere = true): WaitingDelivery => ({
  seq,
  group,
  attempt: 1,
  deaths: 0,
  dueMs: isHere ? 0 : DUE_WITH_GROUP,
  error: '',
})
