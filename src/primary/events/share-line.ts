// Deliveries that wait for a thread, where those whose they are take turns.
import { Fifo } from '../../core/collections/fifo.ts'
import { priorityOf } from '../../runtime/events/shares.ts'

/** What waits. */
interface Shared {
  readonly share: string
  /** Its limit has let it begin. */
  readonly isLet?: boolean
}

/** What a queue of deliveries can do: a `Fifo`, or a `ShareLine`. */
export interface WaitingLine<T> extends Iterable<T> {
  readonly size: number
  push(delivery: T): void
  /** Ahead of all others. */
  unshift(delivery: T): void
  /** The next one that may be sent; undefined: none may now. */
  peek(): T | undefined
  /** Takes out what `peek` has returned. */
  shift(): T | undefined
  takeIf(isWanted: (delivery: T) => boolean): T[]
}

/** After so many deliveries of higher priorities, one of a lower priority that waits is next. */
const HIGHER_MAX = 7

/** The lines of the shares of one priority. */
class Lines<T> {
  /** In the order of their turns. */
  readonly ready = new Map<string, Fifo<T>>()
  /** Their limits are used up. */
  readonly aside = new Map<string, Fifo<T>>()
  /** Deliveries of higher priorities sent since the last one of this, while one waited. */
  passed = 0

  /** @param mayTry false while the limit of a share is used up */
  peek(mayTry: (share: string) => boolean): T | undefined {
    for (const [share, line] of this.ready) {
      if (mayTry(share)) return line.peek()
      this.ready.delete(share)
      this.aside.set(share, line)
    }
    return undefined
  }
}

/**
 * One line for each share. Of one priority they take turns, one delivery at a time; one whose limit is used up stands aside until it is told that it may try
 * again.
 */
export class ShareLine<T extends Shared> implements WaitingLine<T> {
  readonly #priorities = [new Lines<T>(), new Lines<T>(), new Lines<T>()]
  /** Deliveries that have lost their thread: they go first. */
  readonly #first = new Fifo<T>()
  readonly #mayTry: (share: string) => boolean
  #size = 0
  #peeked: T | undefined

  /** @param mayTry false while the limit of a share is used up */
  constructor(mayTry: (share: string) => boolean) {
    this.#mayTry = mayTry
  }

  get size(): number {
    return this.#size
  }

  #of(share: string): Lines<T> {
    return this.#priorities[priorityOf(share)]!
  }

  sizeOf(share: string): number {
    const { ready, aside } = this.#of(share)
    return (ready.get(share) ?? aside.get(share))?.size ?? 0
  }

  push(delivery: T): void {
    const { share } = delivery
    const { ready, aside } = this.#of(share)
    let line = ready.get(share) ?? aside.get(share)
    if (line === undefined) {
      line = new Fifo()
      ready.set(share, line)
    }
    line.push(delivery)
    this.#size++
  }

  unshift(delivery: T): void {
    this.#first.unshift(delivery)
    this.#size++
  }

  peek(): T | undefined {
    this.#peeked = this.#next()
    return this.#peeked
  }

  #next(): T | undefined {
    const first = this.#first.find(({ share, isLet }) => isLet === true || this.#mayTry(share))
    if (first !== undefined) return first
    let highest: T | undefined
    for (const lines of this.#priorities) {
      const next = lines.peek(this.#mayTry)
      if (next !== undefined && lines.passed >= HIGHER_MAX) return next
      highest ??= next
    }
    return highest
  }

  /** Sending it may have used up the limit of its share. */
  shift(): T | undefined {
    const next = this.#peeked
    this.#peeked = undefined
    if (next === undefined) return undefined
    if (this.#first.takeIf((each) => each === next).length > 0) {
      this.#size--
      return next
    }
    const { ready } = this.#of(next.share)
    const line = ready.get(next.share)
    if (line?.peek() !== next) return undefined
    this.#size--
    line.shift()
    // Its turn is over.
    ready.delete(next.share)
    if (line.size > 0) ready.set(next.share, line)
    this.#passes(priorityOf(next.share))
    return next
  }

  #passes(priority: number): void {
    for (const [n, lines] of this.#priorities.entries()) {
      if (n === priority) lines.passed = 0
      else if (n > priority && lines.ready.size > 0) lines.passed++
    }
  }

  /** Its limit may not be used up any more. */
  mayTryAgain(share: string): void {
    const { ready, aside } = this.#of(share)
    const line = aside.get(share)
    if (line === undefined) return
    aside.delete(share)
    ready.set(share, line)
  }

  allMayTryAgain(): void {
    for (const { aside } of this.#priorities) for (const share of aside.keys()) this.mayTryAgain(share)
  }

  takeIf(isWanted: (delivery: T) => boolean): T[] {
    const taken = this.#first.takeIf(isWanted)
    for (const lines of this.#lines)
      for (const [share, line] of lines) {
        taken.push(...line.takeIf(isWanted))
        if (line.size === 0) lines.delete(share)
      }
    this.#size -= taken.length
    return taken
  }

  get #lines(): Map<string, Fifo<T>>[] {
    return this.#priorities.flatMap(({ ready, aside }) => [ready, aside])
  }

  *[Symbol.iterator](): Generator<T> {
    yield* this.#first
    for (const lines of this.#lines) for (const line of lines.values()) yield* line
  }
}

/** How many wait of some shares, where these take turns. @param shares null: of all */
export function waitingOf<T extends Shared>(line: WaitingLine<T>, shares: Iterable<string> | null): number {
  if (shares === null || !(line instanceof ShareLine)) return line.size
  let waiting = 0
  for (const share of shares) waiting += line.sizeOf(share)
  return waiting
}
