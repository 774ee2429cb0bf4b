/**
 * What all threads know of stored events.
 *
 * Memory:
 *   bytes 0–7    NEXT     BigInt64: the number of the next event, on a server. Every thread that stores events takes from it. It counts from 0,
 *                         through blocks of positions that this process alone has. A file numbers its rows itself.
 *   bytes 8–11   STORED   Int32: events that are stored and not forgotten, as the primary counts them; on a file rows, one for each group
 *   bytes 12–15  PARKED   Int32: those of them that wait behind dead letters, as the primary counts them
 *   bytes 16–19  IS_OPEN  Int32: 1 from when the tables are there and NEXT is set. The primary alone sets it.
 *   bytes 20–23  BLOCKS   Int32: blocks that were added, by the primary alone, each after its first position was written to BASES; 0 on a file.
 *   bytes 24–31  EPOCH    BigInt64: number of this process among those on the server; 0 on a file. Set before IS_OPEN.
 *   bytes 32–95  BASES    8 BigInt64: first positions of the last blocks, block n at n mod 8
 *   bytes 96–99  IS_SHARED Int32: 1 while events with keys belong to no process as they are stored, because several deliver them; 0: this process is
 *                         alone, and keeps them. The primary alone sets it.
 *   bytes 100–107 INSERTS 2 Int32: inserts that were begun while IS_SHARED was 0 and 1, and whose events have not been handed on. Each thread counts
 *                         up before it reads IS_SHARED for good, so when the primary has changed it and finds 0 here, all are over.
 *   bytes 108–111 REFUSALS Int32: how often a thread could not store events. The primary tries then whether it can.
 *   bytes 112–115 FREE    Int32: events that are stored and that no process has, as the primary counts them
 *   bytes 116–119 RECIPIENTS Int32: on a file, whom events are stored for: 0: all groups that there will be, 1: the groups that there are, 2: the
 *                         message broker. The primary alone sets it.
 *   bytes 120–123 SUBSCRIBING Int32: how often somebody has subscribed after the boot. The thread counts up before it tells the primary.
 *   bytes 124–127 SUBSCRIBED Int32: how many of those have their groups stored, as the primary knows. While there are more, RECIPIENTS is 0 for
 *                         all: what is published right after `subscribe` is for that subscriber, too.
 *   bytes 128–135 LATER   2 Int32: inserts for all groups that there will be that were begun, and those of them that are over.
 */

// Taken before plugins can replace them.
const { add, load, store, sub } = Atomics
const NEXT = 0
const STORED = 2
const PARKED = 3
const IS_OPEN = 4
const BLOCKS = 5
const EPOCH = 3
const BASES = 4
const BASES_KEPT = 8
const IS_SHARED = 24
const INSERTS = 25
const REFUSALS = 27
const FREE = 28
const RECIPIENTS = 29
const SUBSCRIBING = 30
const SUBSCRIBED = 31
const LATER_BEGUN = 32
const LATER_ENDED = 33
const RECIPIENTS_NAMED = ['later', 'groups', 'broker'] as const

export const LOG_MEMORY_BYTES = 136
/** Positions of one block. */
export const BLOCK_POSITIONS = 1_048_576

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

  /** Number of this process among those that share the log; 0 where there is but one. */
  get epoch(): number {
    return Number(load(this.#longs, EPOCH))
  }

  /** @param next the first position that is free */
  open(next: number): void {
    store(this.#longs, NEXT, BigInt(next))
    store(this.#words, IS_OPEN, 1)
  }

  /** Opens a log that several processes share. At least one block is there. */
  openBlocks(epoch: number): void {
    store(this.#longs, EPOCH, BigInt(epoch))
    store(this.#words, IS_OPEN, 1)
  }

  /** @param base its first position, above those of all earlier blocks: a position says which event of a process came first */
  addBlock(base: number): void {
    const blocks = load(this.#words, BLOCKS)
    store(this.#longs, BASES + (blocks % BASES_KEPT), BigInt(base))
    store(this.#words, BLOCKS, blocks + 1)
  }

  /** Blocks that nobody has taken from, or not all. */
  get blocksLeft(): number {
    return load(this.#words, BLOCKS) - Math.floor(this.#number / BLOCK_POSITIONS)
  }

  get #number(): number {
    return Number(load(this.#longs, NEXT))
  }

  /** @returns the first of so many positions, which nobody else gets. @throws when no block is left, which a database that is away explains */
  take(count: number): number {
    for (;;) {
      const first = Number(add(this.#longs, NEXT, BigInt(count)))
      if (this.epoch === 0) return first
      const position = this.#positionOf(first)
      // Positions of one call are neighbours: those at the end of a block are left out.
      if ((first % BLOCK_POSITIONS) + count <= BLOCK_POSITIONS) return position
    }
  }

  #positionOf(number: number): number {
    const block = Math.floor(number / BLOCK_POSITIONS)
    if (block >= load(this.#words, BLOCKS)) throw new Error('No position in the event log is free at present')
    return Number(load(this.#longs, BASES + (block % BASES_KEPT))) + (number % BLOCK_POSITIONS)
  }

  /** The first position that nobody has taken. */
  get next(): number {
    return this.epoch === 0 ? this.#number : this.#positionOf(this.#number)
  }

  // ── several processes ─────────────────────────────────────────────────────

  /** True while events with keys are stored for whoever delivers their keys. */
  get isShared(): boolean {
    return load(this.#words, IS_SHARED) === 1
  }

  share(): void {
    store(this.#words, IS_SHARED, 1)
  }

  beAlone(): void {
    store(this.#words, IS_SHARED, 0)
  }

  /** An insert begins, which must be told by `insertEnded`. @returns whether it is for whoever delivers the keys */
  beginInsert(): boolean {
    for (;;) {
      const shared = load(this.#words, IS_SHARED)
      add(this.#words, INSERTS + shared, 1)
      if (load(this.#words, IS_SHARED) === shared) return shared === 1
      sub(this.#words, INSERTS + shared, 1)
    }
  }

  /** It is over, and its events have been handed on. */
  insertEnded(isShared: boolean): void {
    sub(this.#words, INSERTS + (isShared ? 1 : 0), 1)
  }

  /** Inserts of one kind that are under way. */
  insertsOpen(isShared: boolean): number {
    return load(this.#words, INSERTS + (isShared ? 1 : 0))
  }

  /** Those that were under way have died with their threads. */
  forgetInserts(isShared: boolean): void {
    store(this.#words, INSERTS + (isShared ? 1 : 0), 0)
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

  set stored(events: number) {
    store(this.#words, STORED, events)
  }

  get free(): number {
    return load(this.#words, FREE)
  }

  set free(events: number) {
    store(this.#words, FREE, events)
  }

  /** On a file: whom events are stored for. */
  get recipients(): 'later' | 'groups' | 'broker' {
    const recipients = RECIPIENTS_NAMED[load(this.#words, RECIPIENTS)]!
    return recipients === 'groups' && !this.areGroupsStored ? 'later' : recipients
  }

  set recipients(recipients: 'later' | 'groups' | 'broker') {
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

  set parked(events: number) {
    store(this.#words, PARKED, events)
  }
}
