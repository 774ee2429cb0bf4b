// Limits of the rate at which handlers begin, in this process or in all of them.
import { type Clock, machineMs, type Timer } from '../../core/schedule/clock.ts'
import { valueIn } from '../../runtime/events/shares.ts'
import type { Consumer, Delivery } from './consumer.ts'
import {
  GIVES_BACK_FROM_MS,
  isKept,
  LATE_MAX_MS,
  LATE_MS,
  leftIn,
  putDown,
  RateAllowance,
  type RateLimit,
  type RateState,
} from './rate-window.ts'
import { ShareLine, waitingOf } from './share-line.ts'

/** After this time without one that was late, the next may be half as late, milliseconds. */
const ON_TIME_MS = 10_000
/** Pause after the limits could not be asked, milliseconds. */
const RETRY_MS = 250
/** With a longer wait, deliveries go back to their store, milliseconds. */
const ASIDE_MS = 1000
/** Asks of one transaction. */
const ASKS_MAX = 64
/** States of limits by share that this process keeps, where it alone counts. */
const STATES_MAX = 100_000
/** Above so many shares of a subscriber, those that nobody waits for are forgotten. */
const SHARES_KEPT = 10_000

/** Some deliveries that want to begin. */
export interface Ask {
  readonly limits: readonly RateLimit[]
  readonly wanted: number
  /** How much later they may begin, milliseconds. */
  readonly lateMs: number
}

export interface Grant {
  granted: number
  waitMs: number
}

/** The limits that processes share. */
export interface SharedLimits {
  /** False while this process alone counts. */
  isShared(): boolean
  ask(asks: readonly Ask[]): Promise<Grant[]>
  /** One of each was let begin, and has not. */
  giveBack(limits: readonly RateLimit[]): Promise<void>
}

/** What a subscriber may begin, of one share where it has limits by share. */
interface Asking {
  readonly consumer: Consumer
  readonly share: string
  /** The limits of the subscriber: new code may have others. */
  readonly of: readonly unknown[]
  readonly limits: readonly RateLimit[]
  /** Deliveries that may begin. */
  granted: number
  /** Until when, by `appMs`: what begins later would count too early. */
  untilMs: number
  /** How much later than asked for. */
  lateMs: number
  /** idle ──► asking ──► idle | waiting ──► idle */
  state: 'idle' | 'asking' | 'waiting'
}

/** What the shares of a subscriber may begin. */
interface Askings {
  readonly byShare: Map<string, Asking>
  /** Those whose questions have no answer yet. */
  asked: number
  /** Number of shares at which those that nobody waits for are forgotten. */
  sweepAt: number
}

/** How much later than let the next may begin, milliseconds. */
interface Lateness {
  readonly lateMs: number
  /** By the steady clock. */
  readonly sinceMs: number
  /** Those that were let before had at most until then, by `machineMs`: they are late together. */
  readonly knownBy: number
}
const ON_TIME: Lateness = { lateMs: LATE_MS, sinceMs: 0, knownBy: 0 }

export interface RateLimitsParts {
  clock: Clock
  /** Null: this process alone counts. */
  shared: SharedLimits | null
  /** How many deliveries could begin now: at least one, that which asks. */
  roomOf: (consumer: Consumer) => number
  /** The limit of a share has room again. */
  freed: (consumer: Consumer, share: string) => void
  /** The limit of a share is used up for some time. */
  aside: (consumer: Consumer, share: string) => void
  /** A consumer may have room again. */
  changed: () => void
}

export class RateLimits {
  readonly #parts: RateLimitsParts
  /** By limit, where this process alone counts. */
  readonly #allowances = new Map<string, RateAllowance>()
  readonly #askings = new WeakMap<Consumer, Askings>()
  /** Consumers whose threads have lately begun too late. */
  readonly #late = new WeakMap<Consumer, Lateness>()
  readonly #timers = new Set<Timer>()
  /** They are asked for together. */
  #due: Asking[] = []
  /** Questions to the limits that processes share. */
  #questions = 0

  constructor(parts: RateLimitsParts) {
    this.#parts = parts
  }

  /** False while the limit of a share is known to be used up. */
  mayTry(consumer: Consumer, share: string): boolean {
    const key = keyOf(consumer, share)
    // One for all: no share goes before another.
    if (key === '') return true
    const asking = this.#askings.get(consumer)?.byShare.get(key)
    // New code may have other limits.
    return asking === undefined || asking.of !== consumer.limits || asking.state === 'idle' || this.#isGranted(asking)
  }

  /** A delivery begins. @returns false if it must wait: `changed` is called when it may try again */
  take(delivery: Delivery): boolean {
    const { consumer, share } = delivery
    const asking = this.#of(consumer, share)
    if (!this.#isGranted(asking)) {
      asking.granted = 0
      if (asking.state === 'idle' && this.#mayAsk(consumer)) this.#ask(asking)
      if (asking.granted === 0) return false
    }
    asking.granted--
    const leftMs = asking.untilMs - this.#parts.clock.appMs()
    delivery.beginBy = asking.limits.every(isKept) ? machineMs() + leftMs : 0
    return true
  }

  /** No more shares ask than there is room for: what is granted and not used counts all the same. `changed` follows the answers to the others. */
  #mayAsk(consumer: Consumer): boolean {
    const { asked } = this.#askings.get(consumer)!
    return asked === 0 || asked < this.#parts.roomOf(consumer)
  }

  /** A thread has given it back. */
  unbegun(delivery: Delivery): void {
    const { beginBy, consumer, share } = delivery
    if (beginBy === 0) return
    delivery.beginBy = 0
    const nowMs = machineMs()
    if (nowMs >= beginBy && beginBy > this.#lateness(consumer).knownBy) this.#isLate(consumer)
    // It still counts there.
    const isCounted = ({ perMs }: RateLimit): boolean =>
      perMs > GIVES_BACK_FROM_MS && nowMs < beginBy + perMs - LATE_MAX_MS
    this.#giveBack(this.#of(consumer, share).limits.filter(isCounted))
  }

  #giveBack(limits: readonly RateLimit[]): void {
    const { shared, clock } = this.#parts
    if (limits.length === 0) return
    // What cannot be given back counts until its time is over.
    if (shared?.isShared() === true) void shared.giveBack(limits).catch(() => {})
    else for (const { name } of limits) this.#allowances.get(name)?.takeBack(clock.appMs())
  }

  #isLate(consumer: Consumer): void {
    const { lateMs } = this.#lateness(consumer)
    const knownBy = machineMs() + lateMs
    this.#late.set(consumer, {
      lateMs: Math.min(LATE_MAX_MS, 2 * lateMs),
      sinceMs: this.#parts.clock.steadyMs(),
      knownBy,
    })
  }

  #lateness(consumer: Consumer): Lateness {
    const late = this.#late.get(consumer)
    if (late === undefined) return ON_TIME
    const halves = Math.floor((this.#parts.clock.steadyMs() - late.sinceMs) / ON_TIME_MS)
    if (halves === 0) return late
    const lateMs = late.lateMs / 2 ** halves
    if (lateMs <= LATE_MS) {
      this.#late.delete(consumer)
      return ON_TIME
    }
    const next = { ...late, lateMs, sinceMs: late.sinceMs + halves * ON_TIME_MS }
    this.#late.set(consumer, next)
    return next
  }

  /** True while the limits that processes share are asked. */
  get isAsking(): boolean {
    return this.#due.length > 0 || this.#questions > 0
  }

  /** True while it waits for its time. */
  waits({ consumer, share }: Delivery): boolean {
    return this.#askings.get(consumer)?.byShare.get(keyOf(consumer, share))?.state === 'waiting'
  }

  /** It has not begun after all. */
  back({ consumer, share }: Delivery): void {
    this.#of(consumer, share).granted++
  }

  #isGranted({ granted, untilMs }: Asking): boolean {
    return granted > 0 && this.#parts.clock.appMs() <= untilMs
  }

  #of(consumer: Consumer, share: string): Asking {
    let all = this.#askings.get(consumer)
    if (all === undefined) {
      all = { byShare: new Map(), asked: 0, sweepAt: SHARES_KEPT }
      this.#askings.set(consumer, all)
    }
    const key = keyOf(consumer, share)
    let asking = all.byShare.get(key)
    if (asking === undefined && all.byShare.size >= all.sweepAt) this.#sweep(consumer, all)
    if (asking === undefined || asking.of !== consumer.limits) {
      asking = {
        consumer,
        share: key,
        of: consumer.limits,
        limits: limitsFor(consumer, key),
        granted: 0,
        untilMs: 0,
        lateMs: LATE_MS,
        state: 'idle',
      }
      all.byShare.set(key, asking)
    }
    return asking
  }

  #sweep({ queue: { waiting } }: Consumer, all: Askings): void {
    const { byShare } = all
    for (const [share, asking] of byShare)
      if (asking.state === 'idle' && !this.#isGranted(asking) && waitingOf(waiting, [share]) === 0)
        byShare.delete(share)
    // Where all are wanted, each new one would look at all others in vain.
    all.sweepAt = Math.max(SHARES_KEPT, 2 * byShare.size)
  }

  #ask(asking: Asking): void {
    asking.state = 'asking'
    this.#askings.get(asking.consumer)!.asked++
    asking.lateMs = this.#lateness(asking.consumer).lateMs
    asking.untilMs = this.#parts.clock.appMs() + asking.lateMs
    this.#due.push(asking)
    const { shared, clock } = this.#parts
    if (shared?.isShared() !== true) {
      const due = this.#due.splice(0)
      // After one delivery the turn of a share is over, and asking again costs little.
      const wanted = (ask: Ask, n: number): Ask => (due[n]!.share === '' ? ask : { ...ask, wanted: 1 })
      return this.#granted(
        due,
        this.#asksOf(due).map((ask, n) => this.#askOwn(wanted(ask, n))),
      )
    }
    if (this.#due.length === 1) clock.turn(() => void this.#askShared(shared))
  }

  async #askShared(shared: SharedLimits): Promise<void> {
    this.#questions++
    for (let due = this.#due.splice(0, ASKS_MAX); due.length > 0; due = this.#due.splice(0, ASKS_MAX)) {
      const asks = this.#asksOf(due)
      const grants = await shared.ask(asks).catch(() => asks.map(() => ({ granted: 0, waitMs: RETRY_MS })))
      this.#granted(due, grants)
      this.#parts.changed()
    }
    this.#questions--
  }

  /** Together they ask for no more than could begin. */
  #asksOf(all: readonly Asking[]): Ask[] {
    return all.map(({ consumer, share, limits, lateMs }) => {
      const behind = waitingOf(consumer.queue.waiting, share === '' ? null : [share])
      const room = Math.floor(this.#parts.roomOf(consumer) / this.#askings.get(consumer)!.asked)
      return { limits, wanted: Math.max(1, Math.min(behind, room)), lateMs }
    })
  }

  #askOwn({ limits, wanted, lateMs }: Ask): Grant {
    const nowMs = this.#parts.clock.appMs()
    const allowances = limits.map(({ name }) => this.#allowances.get(name) ?? new RateAllowance())
    if (wanted === 1 && limits.every((limit, n) => allowances[n]!.isLeft(limit, nowMs))) {
      for (const [n, limit] of limits.entries()) allowances[n]!.putDown(limit, nowMs, lateMs)
      return { granted: 1, waitMs: 0 }
    }
    const grant = grantOf(new Map(limits.map((limit, n) => [limit, allowances[n]!.state])), nowMs, wanted, lateMs)
    for (const [n, limit] of limits.entries()) {
      allowances[n]!.count(limit, nowMs)
      // The one that was used last is the last.
      this.#allowances.delete(limit.name)
      this.#allowances.set(limit.name, allowances[n]!)
    }
    if (this.#allowances.size > STATES_MAX) {
      const [oldest] = this.#allowances.keys()
      this.#allowances.delete(oldest!)
    }
    return grant
  }

  #granted(all: readonly Asking[], grants: readonly Grant[]): void {
    const nowMs = this.#parts.clock.appMs()
    // The answer came too late.
    const late = new Set(
      all.flatMap(({ consumer, untilMs }, n) => (grants[n]!.granted > 0 && nowMs > untilMs ? consumer : [])),
    )
    for (const consumer of late) this.#isLate(consumer)
    for (const [n, asking] of all.entries()) this.#told(asking, grants[n]!)
  }

  #told(asking: Asking, { granted, waitMs }: Grant): void {
    const { clock, changed } = this.#parts
    this.#askings.get(asking.consumer)!.asked--
    asking.granted = granted
    asking.state = granted > 0 ? 'idle' : 'waiting'
    if (granted > 0) return this.#mayTryAgain(asking)
    if (asking.share !== '' && waitMs > ASIDE_MS) this.#parts.aside(asking.consumer, asking.share)
    const timer = clock.due(waitMs, () => {
      this.#timers.delete(timer)
      asking.state = 'idle'
      this.#mayTryAgain(asking)
      if (asking.share !== '') this.#parts.freed(asking.consumer, asking.share)
      changed()
    })
    this.#timers.add(timer)
  }

  #mayTryAgain({ consumer, share, granted }: Asking): void {
    const { waiting } = consumer.queue
    if (waiting instanceof ShareLine) waiting.mayTryAgain(share)
    if (share === '' || !(waiting instanceof ShareLine) || waiting.sizeOf(share) > 0) return
    // That which asked may have left meanwhile, and others of its share were left in the store. Or it is in quarantine.
    if (granted > 0) this.#parts.freed(consumer, share)
    // Nobody asks for it: it is made anew.
    else this.#askings.get(consumer)?.byShare.delete(share)
  }

  close(): void {
    for (const timer of this.#timers) this.#parts.clock.cancel(timer)
  }
}

/** Without a limit by share all shares are one. */
const keyOf = ({ limits }: Consumer, share: string): string => (limits.some(({ by }) => by !== null) ? share : '')

const limitsFor = ({ limits }: Consumer, share: string): RateLimit[] =>
  limits.map(({ max, perMs, name, by }) => ({ max, perMs, name: by === null ? name : `${name} ${valueIn(share, by)}` }))

/** Takes as many from all of them as each has, and puts down what is taken. */
export function grantOf(
  states: ReadonlyMap<RateLimit, RateState>,
  nowMs: number,
  wanted: number,
  lateMs = LATE_MS,
): Grant {
  let granted = wanted
  for (const [limit, state] of states) {
    const { left, waitMs } = leftIn(state, limit, nowMs)
    if (left === 0) return { granted: 0, waitMs }
    granted = Math.min(granted, left)
  }
  for (const [limit, state] of states) putDown(state, limit, nowMs, granted, lateMs)
  return { granted, waitMs: 0 }
}
