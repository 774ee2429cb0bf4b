import { consumerOf } from '../../runtime/streams/keys.ts'
import type { Reading } from './reader-wakeups.ts'
import { type OwnPair, type Pair, pairKey, pairOf, type Subscriber } from './stream-group.ts'

/** What a thread that reads is told. */
export interface Told {
  /** It may read, as this consumer. */
  start(consumer: string): void
  wake(event: string): void
  open(pair: Pair): void
  hold(pair: Pair, isHeld: boolean): void
  pause(plugin: string, isPaused: boolean): void
  /** It reads nothing more, and says so when it has nothing in hand: `isStopped`. */
  stop(): void
}

/** A thread that reads: as which consumer, and what for. */
export class ReadingThread implements Reading {
  readonly thread: number | 'primary'
  readonly consumer: string
  readonly tell: Told
  readonly #pairs: OwnPair[] = []
  readonly #isResponsive: () => boolean
  /** Its groups are being opened, or are: one that comes later is opened at once. */
  hasBegun = false
  /** It reads, and all groups that it had from the beginning are there. */
  isStarted = false
  isStopped = false

  constructor(thread: number | 'primary', replica: string, isResponsive: () => boolean, tell: Told) {
    this.thread = thread
    this.consumer = consumerOf(replica, thread)
    this.#isResponsive = isResponsive
    this.tell = tell
  }

  get isResponsive(): boolean {
    return this.#isResponsive()
  }
  wake(event: string): void {
    this.tell.wake(event)
  }

  /** One for each of its subscribers. */
  get pairs(): readonly OwnPair[] {
    return this.#pairs
  }

  add(subscriber: Subscriber): OwnPair {
    const pair = pairOf(subscriber, this.consumer)
    this.#pairs.push(pair)
    return pair
  }

  /** @returns the pair when nobody here is left for it */
  remove(local: number): Pair | null {
    const at = this.#pairs.findIndex((pair) => pair.local === local)
    if (at < 0) return null
    const [pair] = this.#pairs.splice(at, 1)
    return this.find(pair!.stream, pair!.group) === undefined ? pair! : null
  }

  /** It has none any more. */
  removeAll(): OwnPair[] {
    return this.#pairs.splice(0)
  }

  find(stream: string, group: string): OwnPair | undefined {
    return this.#pairs.find((pair) => pair.stream === stream && pair.group === group)
  }
}

/** Each pair once. */
export function pairsOf(threads: readonly ReadingThread[], others: Iterable<Pair> = []): Pair[] {
  const pairs = new Map<string, Pair>()
  for (const pair of others) pairs.set(pairKey(pair.stream, pair.group), pair)
  for (const thread of threads) for (const pair of thread.pairs) pairs.set(pairKey(pair.stream, pair.group), pair)
  return [...pairs.values()]
}
