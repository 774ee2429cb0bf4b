// How many handlers of a subscriber run at a time, in this process or in all of them.

import type { Clock, Timer } from '../../core/schedule/clock.ts'
import { valueIn } from '../../runtime/events/shares.ts'
import type { Consumer, Delivery } from './consumer.ts'
import type { PermitLimit } from './rate-window.ts'
import { ShareLine, waitingOf } from './share-line.ts'

/** Permits that are not used are given back after this time, milliseconds. */
const UNUSED_MS = 50
/** Permits are given back after this time, so that other processes get some, milliseconds. */
const KEPT_MS = 1000
/** Pause between two asks while all permits are in use, and after the database could not be asked, milliseconds. */
const ASK_AGAIN_MS = 100
/** Names that are asked for together. */
const ASKS_MAX = 64

/** Permits of one name, as this process has them. */
export interface HeldPermits {
  readonly name: string
  /** In use, or about to be. */
  readonly held: number
  /** True while it waits for more. */
  readonly isWaiting: boolean
}

export interface PermitAsk extends HeldPermits {
  readonly max: number
  readonly wanted: number
}

/** The permits that processes share. Both say what this process has: an answer that is lost counts nothing twice. */
export interface SharedPermits {
  /** False while this process alone counts. */
  isShared(): boolean
  /** @returns how many more of each it got */
  ask(asks: readonly PermitAsk[]): Promise<number[]>
  tell(permits: readonly HeldPermits[]): Promise<void>
}

/** The permits of one name. */
interface Pool {
  readonly name: string
  max: number
  consumer: Consumer
  inUse: number
  /** Over all processes: those that are not used. */
  granted: number
  /** When the first of them was got, by the steady clock. */
  gotMs: number
  /** Shares that wait for it. */
  readonly refused: Set<string>
  /** idle ──► asking ──► idle | waiting ──► idle */
  state: 'idle' | 'asking' | 'waiting'
}

export interface PermitsParts {
  clock: Clock
  /** Null: this process alone counts. */
  shared: SharedPermits | null
  /** How many deliveries could begin now: at least one, that which asks. */
  roomOf: (consumer: Consumer) => number
  /** A consumer may have room again. */
  changed: () => void
}

export class Permits {
  readonly #parts: PermitsParts
  readonly #pools = new Map<string, Pool>()
  readonly #timers = new Set<Timer>()
  #asked: Pool[] = []
  /** All their permits are in use: they ask again together. */
  readonly #waiting = new Set<Pool>()
  /** Some of their permits are given back. */
  readonly #given = new Set<Pool>()
  #isTelling = false

  constructor(parts: PermitsParts) {
    this.#parts = parts
  }

  get #isShared(): boolean {
    return this.#parts.shared?.isShared() === true
  }

  /** False while all permits of a share are in use. */
  mayTry(consumer: Consumer, share: string): boolean {
    // One for all: no share goes before another.
    if (consumer.permits === null || consumer.permits.by === null) return true
    const pool = this.#pools.get(nameOf(consumer, consumer.permits, share))
    if (pool === undefined) return true
    isOf(pool, consumer)
    if (this.#isFree(pool)) return true
    pool.refused.add(share)
    return false
  }

  #isFree({ inUse, granted, state, max }: Pool): boolean {
    return this.#isShared ? granted > 0 || state === 'idle' : inUse < max
  }

  /** A delivery begins. @returns false if it must wait: `changed` is called when it may try again */
  take(delivery: Delivery): boolean {
    const { consumer, share } = delivery
    const pool = this.#of(consumer, share)
    const isFree = this.#isShared ? pool.granted > 0 : pool.inUse < pool.max
    if (isFree) {
      if (this.#isShared) pool.granted--
      pool.inUse++
      delivery.permit = pool.name
      return true
    }
    pool.refused.add(share)
    if (this.#isShared && pool.state === 'idle') this.#ask(pool)
    return false
  }

  /** It has not begun after all, or it has ended. */
  back(delivery: Delivery): void {
    const pool = this.#pools.get(delivery.permit)
    if (pool === undefined) return
    delivery.permit = ''
    pool.inUse--
    const { clock } = this.#parts
    if (this.#isShared) {
      pool.granted++
      if (clock.steadyMs() - pool.gotMs > KEPT_MS) this.#giveBack(pool, 1)
      else this.#later(UNUSED_MS, () => this.#giveBack(pool, pool.granted))
    }
    this.#mayTryAgain(pool)
    this.#forget(pool)
  }

  #forget(pool: Pool): void {
    const isUnused = pool.inUse === 0 && pool.granted === 0 && pool.state === 'idle' && !this.#given.has(pool)
    if (isUnused) this.#pools.delete(pool.name)
  }

  #of(consumer: Consumer, share: string): Pool {
    const limit = consumer.permits!
    const name = nameOf(consumer, limit, share)
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = { name, max: limit.max, consumer, inUse: 0, granted: 0, gotMs: 0, refused: new Set(), state: 'idle' }
      this.#pools.set(name, pool)
    }
    isOf(pool, consumer)
    return pool
  }

  #mayTryAgain({ consumer, refused }: Pool): void {
    const { waiting } = consumer.queue
    if (waiting instanceof ShareLine) for (const share of refused) waiting.mayTryAgain(share)
    refused.clear()
  }

  #later(ms: number, run: () => void): void {
    const timer = this.#parts.clock.after(ms, () => {
      this.#timers.delete(timer)
      run()
    })
    this.#timers.add(timer)
  }

  // ── over all processes ────────────────────────────────────────────────────

  #ask(pool: Pool): void {
    pool.state = 'asking'
    this.#asked.push(pool)
    this.#tell()
  }

  #giveBack(pool: Pool, count: number): void {
    if (count === 0) return
    pool.granted -= count
    this.#given.add(pool)
    this.#tell()
  }

  #tell(): void {
    if (this.#isTelling) return
    this.#isTelling = true
    this.#parts.clock.turn(() => void this.#tellAll())
  }

  /** One after another: each says what this process has at that time. */
  async #tellAll(): Promise<void> {
    const { shared, changed } = this.#parts
    while (this.#given.size > 0 || this.#asked.length > 0) {
      if (this.#given.size > 0) await this.#tellGiven(shared!)
      const pools = this.#asked.splice(0, ASKS_MAX)
      if (pools.length === 0) continue
      const asks = pools.map((pool) => ({
        ...heldOf(pool),
        isWaiting: true,
        max: pool.max,
        wanted: this.#wantedBy(pool),
      }))
      const granted = await shared!.ask(asks).catch(() => pools.map(() => 0))
      for (const [n, pool] of pools.entries()) this.#got(pool, granted[n]!)
      changed()
    }
    this.#isTelling = false
  }

  /** No more than could begin: permits that are not used are missing elsewhere. */
  #wantedBy({ consumer, refused, max }: Pool): number {
    const waiting = waitingOf(consumer.queue.waiting, refused.size === 0 ? null : refused)
    return Math.max(1, Math.min(max, waiting, this.#parts.roomOf(consumer)))
  }

  async #tellGiven(shared: SharedPermits): Promise<void> {
    const pools = [...this.#given].slice(0, ASKS_MAX)
    const permits = pools.map(heldOf)
    for (const pool of pools) this.#given.delete(pool)
    try {
      await shared.tell(permits)
      for (const pool of pools) this.#forget(pool)
    } catch {
      for (const pool of pools) this.#given.add(pool)
      await new Promise<void>((resolve) => this.#later(ASK_AGAIN_MS, resolve))
    }
  }

  #got(pool: Pool, granted: number): void {
    pool.granted += granted
    pool.state = granted > 0 ? 'idle' : 'waiting'
    if (granted > 0) {
      pool.gotMs = this.#parts.clock.steadyMs()
      this.#mayTryAgain(pool)
      this.#later(UNUSED_MS, () => this.#giveBack(pool, pool.granted))
    } else {
      if (this.#waiting.size === 0) this.#later(ASK_AGAIN_MS, () => this.#askAgain())
      this.#waiting.add(pool)
    }
  }

  #askAgain(): void {
    const pools = [...this.#waiting]
    this.#waiting.clear()
    for (const pool of pools) {
      pool.state = 'idle'
      this.#mayTryAgain(pool)
    }
    this.#parts.changed()
    for (const pool of pools) {
      if (pool.state !== 'idle') continue
      // Nobody waits any more.
      this.#given.add(pool)
      this.#tell()
    }
  }

  close(): void {
    for (const timer of this.#timers) this.#parts.clock.cancel(timer)
  }
}

/** New code may have another subscriber, and another maximum. */
function isOf(pool: Pool, consumer: Consumer): void {
  pool.consumer = consumer
  pool.max = consumer.permits!.max
}

const heldOf = ({ name, inUse, granted, state }: Pool): HeldPermits => ({
  name,
  held: inUse + granted,
  isWaiting: state !== 'idle',
})

const nameOf = ({ event, group }: Consumer, { by }: PermitLimit, share: string): string =>
  by === null ? `${event} ${group}` : `${event} ${group} ${valueIn(share, by)}`
