/**
 * What all threads know of the event store.
 *
 * Memory:
 *   bytes 0–7    TRUSTED  BigInt64: on a server: until when deliveries may begin, milliseconds by the clock that all threads share; 0: always. Only the
 *                         primary sets it.
 *   bytes 8–15   MEMBER   BigInt64: on a server: number of this member; 0 on a file. Set before IS_OPEN.
 *   bytes 16–19  STORED   Int32: deliveries that are stored, as the primary counts them
 *   bytes 20–23  PARKED   Int32: those of them that wait behind dead letters, as the primary counts them
 *   bytes 24–27  IS_OPEN  Int32: 1 from when the tables are there. The primary alone sets it.
 *   bytes 28–31  REFUSALS Int32: how often a thread could not store events. The primary tries then whether it can.
 *   bytes 32–35  RECIPIENTS Int32: whom events are stored for: 0: all groups that there will be, 1: the groups that there are. The primary alone
 *                         sets it.
 *   bytes 36–39  SUBSCRIBING Int32: how often somebody has subscribed after the boot. The thread counts up before it tells the primary.
 *   bytes 40–43  SUBSCRIBED Int32: how many of those have their groups stored, as the primary knows. While there are more, RECIPIENTS is 0 for
 *                         all: what is published right after `subscribe` is for that subscriber, too.
 *   bytes 44–51  LATER    2 Int32: inserts for all groups that there will be that were begun, and those of them that are over.
 */
import { monotonicMs } from '../../core/schedule/clock.ts'

// Taken before plugins can replace them.
const { add, load, store } = Atomics
const TRUSTED = 0
const MEMBER = 1
const STORED = 4
const PARKED = 5
const IS_OPEN = 6
const REFUSALS = 7
const RECIPIENTS = 8
const SUBSCRIBING = 9
const SUBSCRIBED = 10
const LATER_BEGUN = 11
const LATER_ENDED = 12
const RECIPIENTS_NAMED = ['later', 'groups'] as const

export const LOG_MEMORY_BYTES = 56

export class LogMemory {
  readonly #longs: BigInt64Array
  readonly #words: Int32Array

  /** @param memory LOG_MEMORY_BYTES, shared by all threads */
  constructor(memory: SharedArrayBuffer) {
    this.#longs = new BigInt64Array(memory)
    this.#words = new Int32Array(memory)
  }

  get isOpen(): boolean {
    return load(this.#words, IS_OPEN) === 1
  }

  /** @param member number of this member; 0 on a file */
  open(member: number): void {
    store(this.#longs, MEMBER, BigInt(member))
    store(this.#words, IS_OPEN, 1)
  }

  get member(): number {
    return Number(load(this.#longs, MEMBER))
  }

  /** Lets deliveries begin for this long. @param ms 0: nothing may begin */
  trustFor(ms: number): void {
    store(this.#longs, TRUSTED, BigInt(Math.max(1, Math.floor(monotonicMs() + ms))))
  }

  /** True while a thread may begin a stored event: no other process can have taken it. */
  get isTrusted(): boolean {
    const untilMs = load(this.#longs, TRUSTED)
    return untilMs === 0n || monotonicMs() < Number(untilMs)
  }

  /** A thread could not store events. */
  refused(): void {
    add(this.#words, REFUSALS, 1)
  }

  get refusals(): number {
    return load(this.#words, REFUSALS)
  }

  get stored(): number {
    return load(this.#words, STORED)
  }

  set stored(deliveries: number) {
    store(this.#words, STORED, deliveries)
  }

  get recipients(): 'later' | 'groups' {
    const recipients = RECIPIENTS_NAMED[load(this.#words, RECIPIENTS)]!
    return recipients === 'groups' && !this.areGroupsStored ? 'later' : recipients
  }

  set recipients(recipients: 'later' | 'groups') {
    store(this.#words, RECIPIENTS, RECIPIENTS_NAMED.indexOf(recipients))
  }

  /** Somebody subscribes after the boot: until its group is stored, events are for all groups that there will be. */
  subscribing(): void {
    add(this.#words, SUBSCRIBING, 1)
  }

  /** How often somebody has. */
  get subscriptions(): number {
    return load(this.#words, SUBSCRIBING)
  }

  /** @param subscriptions so many of them have their groups stored */
  groupsStored(subscriptions: number): void {
    store(this.#words, SUBSCRIBED, subscriptions)
  }

  get areGroupsStored(): boolean {
    return load(this.#words, SUBSCRIBED) === load(this.#words, SUBSCRIBING)
  }

  /** An insert for all groups that there will be begins, which must be told by `laterEnded`. */
  beginLater(): void {
    add(this.#words, LATER_BEGUN, 1)
  }

  laterEnded(): void {
    add(this.#words, LATER_ENDED, 1)
  }

  /** How many have begun. */
  get laterInserts(): number {
    return load(this.#words, LATER_BEGUN)
  }

  /** True while one of them is under way, or its thread has died of it. */
  get isLaterOpen(): boolean {
    return load(this.#words, LATER_ENDED) !== load(this.#words, LATER_BEGUN)
  }

  /** Those that are under way have died with their threads. */
  forgetLater(): void {
    store(this.#words, LATER_ENDED, load(this.#words, LATER_BEGUN))
  }

  get parked(): number {
    return load(this.#words, PARKED)
  }

  set parked(deliveries: number) {
    store(this.#words, PARKED, deliveries)
  }
}
