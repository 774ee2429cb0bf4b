// One event of the log that is in the hub.
import { DUE_WITH_GROUP, type WaitingDelivery } from '../../transport/log-changes.ts'
import type { Delivery, Share } from '../events/consumer.ts'

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
  /** Groups for which it waits in the log while it is here for others; null: there has been none. */
  #waits: Map<string, Wait> | null = null
  /** Its deliveries have rows of their own. */
  isSplit: boolean

  constructor({ seq, event, left, absent }: BegunEvent) {
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
