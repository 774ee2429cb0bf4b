/**
 * State of the event store that all threads share.
 *
 * Memory:
 *   bytes 0–7    TRUSTED  BigInt64: on a server: until when deliveries may begin, milliseconds of `monotonicMs`; 0: always. Only the
 *                         primary sets it.
 *   bytes 8–15   MEMBER   BigInt64: on a server: number of this member; 0 on a file. Set before IS_OPEN.
 *   bytes 16–19  STORED   Int32: deliveries that are stored, as the primary counts them
 *   bytes 20–23  PARKED   Int32: those of them behind blocked keys, as the primary counts them
 *   bytes 24–27  IS_OPEN  Int32: 1 from when the tables are there. The primary alone sets it.
 *   bytes 28–31  REFUSALS Int32: failed attempts of threads to store events. The primary then probes the store.
 *   bytes 32–35  RECIPIENTS Int32: groups that events are stored for: 0: all, later ones too, 1: the present ones.
 *                         The primary alone sets it.
 *   bytes 36–39  SUBSCRIBING Int32: subscriptions after the boot. The thread counts before it tells the primary.
 *   bytes 40–43  SUBSCRIBED Int32: those of them whose groups are stored. While they differ, RECIPIENTS is 0 for all threads, so that
 *                         an event published right after `subscribe` reaches that subscriber.
 *   bytes 44–51  LATER    2 Int32: inserts with RECIPIENTS 0 that have begun, and those that have ended.
 *   bytes 52–55  MOST_GROUPS Int32: most groups that an event has had. Only the primary sets it.
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
const MOST_GROUPS = 13
const RECIPIENTS_NAMED = ['later', 'groups'] as const

export const STORE_MEMORY_BYTES = 56

export class StoreMemory {
  readonly #longs: BigInt64Array
  readonly #words: Int32Array

  /** @param memory STORE_MEMORY_BYTES, shared by all threads */
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

  /** True while a thread may begin a stored event: no other process can have it. */
  get isTrusted(): boolean {
    const untilMs = load(this.#longs, TRUSTED)
    return untilMs === 0n || monotonicMs() < Number(untilMs)
  }

  /** Counts a failed attempt to store events. */
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

  /** Counts a subscription after the boot. Until its group is stored, events are for all groups, later ones too. */
  subscribing(): void {
    add(this.#words, SUBSCRIBING, 1)
  }

  /** Subscriptions after the boot. */
  get subscriptions(): number {
    return load(this.#words, SUBSCRIBING)
  }

  /** @param subscriptions how many of them have their groups stored */
  groupsStored(subscriptions: number): void {
    store(this.#words, SUBSCRIBED, subscriptions)
  }

  get areGroupsStored(): boolean {
    return load(this.#words, SUBSCRIBED) === load(this.#words, SUBSCRIBING)
  }

  /** An insert for later groups begins. Call `laterEnded` when it is over. */
  beginLater(): void {
    add(this.#words, LATER_BEGUN, 1)
  }

  laterEnded(): void {
    add(this.#words, LATER_ENDED, 1)
  }

  /** Inserts for later groups that have begun. */
  get laterInserts(): number {
    return load(this.#words, LATER_BEGUN)
  }

  /** True while one of them runs, or after its thread has died. */
  get isLaterOpen(): boolean {
    return load(this.#words, LATER_ENDED) !== load(this.#words, LATER_BEGUN)
  }

  /** Drops the running ones: their threads have died. */
  forgetLater(): void {
    store(this.#words, LATER_ENDED, load(this.#words, LATER_BEGUN))
  }

  /** Most groups that an event has had: a bound for the rows of any event. */
  get mostGroups(): number {
    return load(this.#words, MOST_GROUPS)
  }

  set mostGroups(groups: number) {
    store(this.#words, MOST_GROUPS, groups)
  }

  get parked(): number {
    return load(this.#words, PARKED)
  }

  set parked(deliveries: number) {
    store(this.#words, PARKED, deliveries)
  }
}
