// `state.cached`: a value that one makes and all others wait for.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Namespaced, State } from '../../contracts/state.ts'
import { checkKey, checkNamespace, checkTtl, toJson } from './input.ts'

/** A maker that has not renewed its claim for this long is taken for dead, milliseconds: another one may begin then. */
const CLAIM_MS = 10_000
const RENEW_MS = 3_000
/** How often those look who wait for a maker in another thread, milliseconds: at first, and at last. */
const FIRST_LOOK_MS = 10
const LAST_LOOK_MS = 200
const CLAIMS: Namespaced = { namespace: 'heddle:making' }

/** Who makes a value. A type, so that it is JSON. */
type Making = { by: string; untilMs: number }

/** Adds `cached` to an implementation, made of its other calls: so it holds across whatever shares the store. */
export function withCached(state: Omit<State, 'cached'>): State {
  /** What this thread waits for: it asks the store once. */
  const waiting = new Map<string, Promise<unknown>>()
  return {
    ...state,
    cached: async <T>(key: string, ttlMs: number, make: () => T | Promise<T>, options?: Namespaced): Promise<T> => {
      const namespace = checkNamespace(options)
      checkKey(key)
      // Unlike elsewhere it may not be left out.
      checkTtl({ ttlMs: ttlMs ?? null })
      const found = await state.get<T>(key, { namespace })
      if (found !== null) return found
      const name = `${namespace}\0${key}`
      let value = waiting.get(name) as Promise<T> | undefined
      if (value === undefined) {
        value = new CachedValue(state, { namespace, key, ttlMs }).make(make)
        waiting.set(name, value)
        const forget = () => waiting.delete(name)
        value.then(forget, forget)
      }
      return value
    },
  }
}

/** One value that is to be there. */
class CachedValue {
  readonly #state: Omit<State, 'cached'>
  readonly #key: string
  readonly #ttlMs: number
  readonly #in: Namespaced
  readonly #claimKey: string

  constructor(state: Omit<State, 'cached'>, of: { namespace: string; key: string; ttlMs: number }) {
    this.#state = state
    this.#key = of.key
    this.#ttlMs = of.ttlMs
    this.#in = { namespace: of.namespace }
    this.#claimKey = claimKeyOf(of.namespace, of.key)
  }

  async make<T>(make: () => T | Promise<T>): Promise<T> {
    for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(lookMs * 2, LAST_LOOK_MS)) {
      const held = await this.#state.get<Making>(this.#claimKey, CLAIMS)
      // Read after the claim: a maker stores first, and gives its claim up then.
      const found = await this.#find<T>()
      if (found !== null) return found.value
      if (held === null || held.untilMs <= Date.now()) {
        const mine = nextClaim(randomUUID())
        if (await this.#state.compareAndSet(this.#claimKey, held, mine, CLAIMS)) return this.#makeAs(mine, make)
      }
      await delay(lookMs)
    }
  }

  async #makeAs<T>(mine: Making, make: () => T | Promise<T>): Promise<T> {
    let claim = mine
    const renewal = setInterval(() => {
      const next = nextClaim(claim.by)
      const renewed = this.#state.compareAndSet(this.#claimKey, claim, next, CLAIMS)
      renewed.then(
        (isMine) => {
          if (isMine) claim = next
        },
        () => {}, // The next renewal, or the end of the claim, tells.
      )
    }, RENEW_MS)
    renewal.unref()
    try {
      const found = await this.#find<T>()
      if (found !== null) return found.value
      // As everybody gets it who does not make it.
      const value = JSON.parse(toJson(await make())) as T
      await this.#state.set(this.#key, value, { ...this.#in, ttlMs: this.#ttlMs })
      return value
    } finally {
      clearInterval(renewal)
      // Past its end it may be somebody else's.
      if (Date.now() < claim.untilMs) await this.#state.delete(this.#claimKey, CLAIMS)
    }
  }

  /** A value may be null. */
  async #find<T>(): Promise<{ value: T } | null> {
    const value = await this.#state.get<T>(this.#key, this.#in)
    return value !== null || (await this.#state.has(this.#key, this.#in)) ? { value: value as T } : null
  }
}

const nextClaim = (by: string): Making => ({ by, untilMs: Date.now() + CLAIM_MS })

/** A key of any length has one that is not too long. */
export const claimKeyOf = (namespace: string, key: string): string =>
  createHash('sha256').update(`${namespace}\0${key}`).digest('base64url')
