// The tool `state` over a store of texts: `cached` is made of the store's calls, and what it is given is checked.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { State } from '../../contracts/state.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'

/** What an implementation does itself. Values are texts of JSON; a time to live is in milliseconds, null: none is given. */
export interface StateStore {
  /** Null where there is no such key. */
  get(namespace: string, key: string): Promise<string | null>
  set(namespace: string, key: string, text: string, ttlMs: number | null): Promise<unknown>
  delete(namespace: string, key: string): Promise<boolean>
  has(namespace: string, key: string): Promise<boolean>
  increment(namespace: string, key: string, by: number, ttlMs: number | null): Promise<number>
  /** By the texts; `null` as the expected one matches a missing key, too. True, or the text that stands there instead: null for none. */
  compareAndSet(
    namespace: string,
    key: string,
    expected: string,
    next: string,
    ttlMs: number | null,
  ): Promise<true | string | null>
  keys(namespace: string): Promise<string[]>
  clear(namespace: string): Promise<unknown>
}

/** Arguments are checked in the thread of the caller: its stack names it. A call reaches the store before it returns, so calls keep their order. */
export function stateOf(store: StateStore): State {
  /** What this thread waits for: it asks the store once. */
  const waiting = new Map<string, Promise<unknown>>()
  return {
    get: async <T>(key: string, options?: object) => {
      const text = await store.get(checkNamespace(options), checkKey(key))
      return text === null ? null : (parsed(text, 'get', key) as T)
    },
    set: async (key, value, options) => {
      await store.set(checkNamespace(options), checkKey(key), toJson(value), checkTtl(options))
    },
    delete: async (key, options) => store.delete(checkNamespace(options), checkKey(key)),
    has: async (key, options) => store.has(checkNamespace(options), checkKey(key)),
    increment: (key, by = 1, options) => {
      // Not async: many counters share a message to the store, and each costs little more than its promise.
      try {
        return store.increment(checkNamespace(options), checkKey(key), checkStep(by), checkTtl(options))
      } catch (refused) {
        return Promise.reject(refused)
      }
    },
    compareAndSet: async (key, expected, next, options) => {
      const [namespace, name] = [checkNamespace(options), checkKey(key)]
      return compareAndSet(store, namespace, name, toJson(expected), toJson(next), checkTtl(options))
    },
    cached: async <T>(key: string, ttlMs: number, make: () => T | Promise<T>, options?: object): Promise<T> => {
      const namespace = checkNamespace(options)
      checkKey(key)
      // Unlike elsewhere it may not be left out.
      checkTtl({ ttlMs: ttlMs ?? null })
      const found = await store.get(namespace, key)
      if (found !== null) return parsed(found, 'cached', key) as T
      const name = `${namespace}\0${key}`
      let value = waiting.get(name) as Promise<T> | undefined
      if (value === undefined) {
        value = madeOnce(store, namespace, key, ttlMs, make)
        waiting.set(name, value)
        const forget = () => waiting.delete(name)
        value.then(forget, forget)
      }
      return value
    },
    keys: async (options) => store.keys(checkNamespace(options)),
    clear: async (options) => {
      await store.clear(checkNamespace(options))
    },
  }
}

/**
 * The store compares texts, but this compares values, in the thread of the caller: a large value takes long. If the stored text is another one of
 * the same value, it is tried again as the expected text. A third attempt is needed only when the text was replaced by yet another one of
 * the same value meanwhile.
 */
async function compareAndSet(
  store: StateStore,
  namespace: string,
  key: string,
  expected: string,
  next: string,
  ttlMs: number | null,
): Promise<boolean> {
  for (let expectedText = expected; ; ) {
    const held = await store.compareAndSet(namespace, key, expectedText, next, ttlMs)
    if (held === true) return true
    expectedText = held ?? 'null'
    if (!isDeepStrictEqual(parsed(expectedText, 'compareAndSet', key), JSON.parse(expected))) return false
  }
}

/** @throws STATE_VALUE_INVALID when the text is not JSON, because another program has written it */
export function parsed(text: string, call: string, key: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HeddleError(
      'STATE_VALUE_INVALID',
      `state.${call}: the key ${JSON.stringify(key)} is not JSON: another program writes to the same database`,
    )
  }
}

/** A maker that has not renewed its claim for this long is taken for dead, milliseconds: another one may begin then. */
const CLAIM_MS = 10_000
const RENEW_MS = 3_000
/** How often those look who wait for a maker in another thread, milliseconds: at first, and at last. */
const FIRST_LOOK_MS = 10
const LAST_LOOK_MS = 200
/** The namespace of the claims. */
const CLAIMS = 'heddle:making'

/** Who makes a value. */
interface Making {
  by: string
  untilMs: number
}

/** A value that is to be there: one makes it, and all others wait for it. */
async function madeOnce<T>(
  store: StateStore,
  namespace: string,
  key: string,
  ttlMs: number,
  make: () => T | Promise<T>,
): Promise<T> {
  const claimKey = claimKeyOf(namespace, key)
  const valueIn = (text: string): T => parsed(text, 'cached', key) as T
  const claim = (held: string, next: Making): Promise<boolean> =>
    compareAndSet(store, CLAIMS, claimKey, held, JSON.stringify(next), null)

  const makeAs = async (mine: Making): Promise<T> => {
    let held = mine
    const renewal = setInterval(() => {
      const next = nextClaim(held.by)
      claim(JSON.stringify(held), next).then(
        (isMine) => {
          if (isMine) held = next
        },
        () => {}, // The next renewal, or the end of the claim, tells.
      )
    }, RENEW_MS)
    renewal.unref()
    try {
      const found = await store.get(namespace, key)
      if (found !== null) return valueIn(found)
      const text = toJson(await make())
      await store.set(namespace, key, text, ttlMs)
      // As everybody gets it who does not make it.
      return valueIn(text)
    } finally {
      clearInterval(renewal)
      // Past its end it may be somebody else's.
      if (Date.now() < held.untilMs) await store.delete(CLAIMS, claimKey)
    }
  }

  for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(lookMs * 2, LAST_LOOK_MS)) {
    const held = await store.get(CLAIMS, claimKey)
    // Read after the claim: a maker stores first, and gives its claim up then.
    const found = await store.get(namespace, key)
    if (found !== null) return valueIn(found)
    if (held === null || (JSON.parse(held) as Making).untilMs <= Date.now()) {
      const mine = nextClaim(randomUUID())
      if (await claim(held ?? 'null', mine)) return makeAs(mine)
    }
    await delay(lookMs)
  }
}

const nextClaim = (by: string): Making => ({ by, untilMs: Date.now() + CLAIM_MS })

/** A key of any length has one that is not too long. */
export const claimKeyOf = (namespace: string, key: string): string =>
  createHash('sha256').update(`${namespace}\0${key}`).digest('base64url')

/**
 * Checks of keys, namespaces, times to live and values, for every implementation of `state`. They run in the thread of the caller.
 * So all implementations refuse the same input with the same codes.
 */

const MAX_KEY_CHARS = 512
const MAX_TTL_MS = 100 * 365 * 86_400_000
const DEFAULT_NAMESPACE = 'default'

/** @throws STATE_OPTIONS_INVALID unless it is a string of 1 to 512 characters of well-formed Unicode */
function checkKey(key: unknown): string {
  return checkName('key', key)
}

/** @throws STATE_OPTIONS_INVALID */
function checkNamespace(options: unknown): string {
  if (options === undefined) return DEFAULT_NAMESPACE
  if (typeof options !== 'object' || options === null) throw invalid('options must be an object', options)
  const { namespace } = options as { namespace?: unknown }
  return namespace === undefined ? DEFAULT_NAMESPACE : checkName('namespace', namespace)
}

/**
 * Call it after `checkNamespace`, which checks that options are an object.
 * @returns the time to live in milliseconds, null for none
 */
function checkTtl(options: { ttlMs?: unknown } | undefined): number | null {
  const ttlMs = options?.ttlMs
  if (ttlMs === undefined) return null
  if (Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 1 && Number(ttlMs) <= MAX_TTL_MS) return Number(ttlMs)
  throw invalid(`ttlMs must be a whole number of milliseconds from 1 to ${MAX_TTL_MS}`, ttlMs)
}

/** @throws STATE_OPTIONS_INVALID unless it is a safe integer */
function checkStep(by: unknown): number {
  if (Number.isSafeInteger(by)) return Number(by) + 0 // -0 becomes 0, as in JSON
  throw invalid('increment wants a safe integer', by)
}

/**
 * The JSON of a value. A store keeps this text, so no caller can change a stored value.
 * As always in JSON, properties that are undefined are left out and dates become strings.
 * @throws STATE_VALUE_INVALID for values that JSON cannot represent: undefined, functions, symbols, NaN, infinities, bigints, cycles
 */
export function toJson(value: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value, refuseLoss)
  } catch (error) {
    if (isInstance(error, HeddleError)) throw error
    // A cycle, a bigint, a toJSON that throws, or a value that is nested too deeply.
    throw new HeddleError('STATE_VALUE_INVALID', 'A state value must be JSON: it cannot be serialized', {
      cause: error,
    })
  }
  if (text === undefined) throw lossy('undefined')
  return text
}

/** The safe integer that a JSON text holds, undefined for anything else. */
export function integerIn(text: string): number | undefined {
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

const incrementFault = (key: string, why: string): HeddleError =>
  new HeddleError('STATE_NOT_A_NUMBER', `state.increment: the key ${JSON.stringify(key)} ${why}`)

export const notANumber = (key: string): HeddleError => incrementFault(key, 'does not hold an integer')
export const outOfRange = (key: string): HeddleError => incrementFault(key, 'would leave the range of safe integers')

function refuseLoss(this: unknown, _key: string, value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw lossy(`a ${typeof value}`)
  if (typeof value === 'number' && !Number.isFinite(value)) throw lossy(String(value))
  if (value === undefined && Array.isArray(this)) throw lossy('undefined in an array')
  return value
}

function lossy(what: string): HeddleError {
  return new HeddleError('STATE_VALUE_INVALID', `A state value must be JSON, got ${what}`)
}

function checkName(what: string, name: unknown): string {
  if (typeof name !== 'string' || name.length < 1 || name.length > MAX_KEY_CHARS) {
    throw invalid(`${what} must be a string of 1 to ${MAX_KEY_CHARS} characters`, name)
  }
  // UTF-8 cannot encode half of a surrogate pair: two such keys would become one in a store of bytes.
  if (/\p{Surrogate}/u.test(name)) throw invalid(`${what} must be well-formed Unicode`, name)
  return name
}

function invalid(wanted: string, got: unknown): HeddleError {
  const shown =
    typeof got === 'string' ? `${got.length} characters` : typeof got === 'number' ? String(got) : typeof got
  return new HeddleError('STATE_OPTIONS_INVALID', `state: ${wanted}, got ${shown}`)
}
