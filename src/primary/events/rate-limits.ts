// Limits of the rate at which handlers begin, in this process or in all of them.
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { Consumer } from './consumer.ts'
import { leftIn, putDown, type RateLimit, type RateState } from './rate-window.ts'

/** A grant that is not used is void after this time: what begins later would count too early, milliseconds. */
const GRANT_MS = 50
/** Pause after the limits could not be asked, milliseconds. */
const RETRY_MS = 250

export interface Grant {
  granted: number
  waitMs: number
}

/** Asks the limits that processes share. Null while this process alone counts. */
export type AskShared = (limits: readonly RateLimit[], wanted: number) => Promise<Grant> | null

interface Asking {
  /** Deliveries that may begin. */
  granted: number
  /** Until when, by the steady clock. */
  untilMs: number
  /** idle ──► asking ──► idle | waiting ──► idle */
  state: 'idle' | 'asking' | 'waiting'
}

export interface RateLimitsParts {
  clock: Clock
  askShared: AskShared
  /** How many deliveries could begin now: those that wait, as far as there is room. At least one: that which asks. */
  roomOf: (consumer: Consumer) => number
  /** A consumer may have room again. */
  changed: () => void
}

export class RateLimits {
  readonly #parts: RateLimitsParts
  /** By limit: what has begun, where this process alone counts. */
  readonly #states = new Map<string, RateState>()
  readonly #asking = new WeakMap<Consumer, Asking>()
  readonly #timers = new Set<Timer>()

  constructor(parts: RateLimitsParts) {
    this.#parts = parts
  }

  /** A delivery begins. @returns false if it must wait: `changed` is called when it may try again */
  take(consumer: Consumer): boolean {
    const asking = this.#of(consumer)
    if (asking.granted > 0 && this.#parts.clock.steadyMs() <= asking.untilMs) {
      asking.granted--
      return true
    }
    asking.granted = 0
    if (asking.state !== 'idle') return false
    this.#ask(consumer, asking)
    if (asking.granted === 0) return false
    asking.granted--
    return true
  }

  /** It has not begun after all. */
  back(consumer: Consumer): void {
    this.#of(consumer).granted++
  }

  #of(consumer: Consumer): Asking {
    let asking = this.#asking.get(consumer)
    if (asking === undefined) {
      asking = { granted: 0, untilMs: 0, state: 'idle' }
      this.#asking.set(consumer, asking)
    }
    return asking
  }

  #ask(consumer: Consumer, asking: Asking): void {
    const { limits } = consumer
    const wanted = this.#parts.roomOf(consumer)
    const shared = this.#parts.askShared(limits, wanted)
    if (shared === null) return this.#granted(asking, this.#askOwn(limits, wanted))
    asking.state = 'asking'
    shared
      .catch((): Grant => ({ granted: 0, waitMs: RETRY_MS }))
      .then((grant) => {
        asking.state = 'idle'
        this.#granted(asking, grant)
        if (grant.granted > 0) this.#parts.changed()
      })
  }

  #askOwn(limits: readonly RateLimit[], wanted: number): Grant {
    const states = new Map(limits.map((limit) => [limit, this.#states.get(limit.name) ?? []]))
    const grant = grantOf(states, this.#parts.clock.steadyMs(), wanted)
    for (const [{ name }, state] of states) this.#states.set(name, state)
    return grant
  }

  #granted(asking: Asking, { granted, waitMs }: Grant): void {
    const { clock, changed } = this.#parts
    asking.granted = granted
    asking.untilMs = clock.steadyMs() + GRANT_MS
    if (granted > 0) return
    asking.state = 'waiting'
    const timer = clock.after(waitMs, () => {
      this.#timers.delete(timer)
      asking.state = 'idle'
      changed()
    })
    this.#timers.add(timer)
  }

  close(): void {
    for (const timer of this.#timers) this.#parts.clock.cancel(timer)
  }
}

/** Takes as many from all of them as each has, and puts down what is taken. */
export function grantOf(states: ReadonlyMap<RateLimit, RateState>, nowMs: number, wanted: number): Grant {
  let granted = wanted
  for (const [limit, state] of states) {
    const { left, waitMs } = leftIn(state, limit, nowMs)
    if (left === 0) return { granted: 0, waitMs }
    granted = Math.min(granted, left)
  }
  for (const [limit, state] of states) putDown(state, limit, nowMs, granted)
  return { granted, waitMs: 0 }
}
