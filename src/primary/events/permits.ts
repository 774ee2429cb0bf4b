// How many handlers of a subscriber run at a time, in this process or in all of them.

import type { Clock, Timer } from '../../core/schedule/clock.ts'
import { valueIn } from '../../runtime/events/shares.ts'
import type { Consumer, Delivery } from './consumer.ts'
import type { PermitLimit } from './rate-window.ts'
import { ShareLine } from './share-line.ts'

/** Permits that are not used are given back after this time, milliseconds. */
const UNUSED_MS = 50
/** Permits are given back after this time, so that other processes get some, milliseconds. */
const KEPT_MS = 1000
/** Pause between two asks while all permits are in use, and after the database could not be asked, milliseconds. */
const ASK_AGAIN_MS = 100
/** Names that are asked for together. */
const ASKS_MAX = 64

export interface PermitAsk {
  readonly name: string
  readonly max: number
  readonly wanted: number
}

/** The permits that processes share. */
export interface SharedPermits {
  /** False while this process alone counts. */
  isShared(): boolean
  /** @returns how many of each it got */
  ask(asks: readonly PermitAsk[]): Promise<number[]>
  giveBack(permits: readonly { readonly name: string; readonly count: number }[]): Promise<void>
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
  /** A consumer may have room again. */
  changed: () => void
}

export class Permits {
  readonly #parts: PermitsParts
  readonly #pools = new Map<string, Pool>()
  readonly #timers = new Set<Timer>()
  #asked: Pool[] = []
  readonly #back = new Map<string, number>()
  #isGiving = false

  constructor(parts: PermitsParts) {
    this.#parts = parts
  }

  get #isShared(): boolean {
    return this.#parts.shared?.isShared() === true
  }

  /** False while all permits of a share are in use. */
  mayTry(consumer: Consumer, share: string): boolean {
    if (consumer.permits === null) return true
    const pool = this.#pools.get(nameOf(consumer, consumer.permits, share))
    if (pool === undefined || this.#isFree(pool)) return true
    if (share !== '') pool.refused.add(share)
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
    if (share !== '') pool.refused.add(share)
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
    if (!this.#isShared) {
      if (pool.inUse === 0 && pool.refused.size === 0) this.#pools.delete(pool.name)
    } else {
      pool.granted++
      if (clock.steadyMs() - pool.gotMs > KEPT_MS) this.#giveBack(pool, 1)
      else this.#later(UNUSED_MS, () => this.#giveBack(pool, pool.granted))
    }
    this.#mayTryAgain(pool)
  }

  #of(consumer: Consumer, share: string): Pool {
    const limit = consumer.permits!
    const name = nameOf(consumer, limit, share)
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = { name, max: 0, consumer, inUse: 0, granted: 0, gotMs: 0, refused: new Set(), state: 'idle' }
      this.#pools.set(name, pool)
    }
    // New code may have another.
    Object.assign(pool, { max: limit.max, consumer })
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
    if (this.#asked.length === 1) this.#parts.clock.turn(() => void this.#askAll())
  }

  async #askAll(): Promise<void> {
    const { shared, clock, changed } = this.#parts
    for (let pools = this.#asked.splice(0, ASKS_MAX); pools.length > 0; pools = this.#asked.splice(0, ASKS_MAX)) {
      const asks = pools.map((pool) => ({ name: pool.name, max: pool.max, wanted: wantedBy(pool) }))
      const granted = await shared!.ask(asks).catch(() => pools.map(() => 0))
      for (const [n, pool] of pools.entries()) {
        pool.granted += granted[n]!
        pool.state = granted[n]! > 0 ? 'idle' : 'waiting'
        if (granted[n]! > 0) {
          pool.gotMs = clock.steadyMs()
          this.#mayTryAgain(pool)
          this.#later(UNUSED_MS, () => this.#giveBack(pool, pool.granted))
        } else
          this.#later(ASK_AGAIN_MS, () => {
            pool.state = 'idle'
            this.#mayTryAgain(pool)
            changed()
          })
      }
      changed()
    }
  }

  #giveBack(pool: Pool, count: number): void {
    if (count === 0) return
    pool.granted -= count
    this.#back.set(pool.name, (this.#back.get(pool.name) ?? 0) + count)
    if (!this.#isGiving) void this.#giveAll()
  }

  async #giveAll(): Promise<void> {
    const { shared, clock } = this.#parts
    this.#isGiving = true
    while (this.#back.size > 0) {
      const permits = [...this.#back].map(([name, count]) => ({ name, count }))
      this.#back.clear()
      try {
        await shared!.giveBack(permits)
      } catch {
        for (const { name, count } of permits) this.#back.set(name, (this.#back.get(name) ?? 0) + count)
        await new Promise<void>((resolve) => clock.after(ASK_AGAIN_MS, resolve))
      }
    }
    this.#isGiving = false
  }

  close(): void {
    for (const timer of this.#timers) this.#parts.clock.cancel(timer)
  }
}

const nameOf = ({ event, group }: Consumer, { by }: PermitLimit, share: string): string =>
  by === null ? `${event} ${group}` : `${event} ${group} ${valueIn(share, by)}`

/** No more than wait: permits that are not used are missing elsewhere. */
function wantedBy({ consumer, refused, max }: Pool): number {
  const { waiting } = consumer.queue
  if (!(waiting instanceof ShareLine) || refused.size === 0) return Math.max(1, Math.min(max, waiting.size))
  let wanted = 0
  for (const share of refused) wanted += waiting.sizeOf(share)
  return Math.max(1, Math.min(max, wanted))
}
