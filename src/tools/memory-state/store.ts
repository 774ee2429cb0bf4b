// The state of the process, with a share for each plugin.

import { HeddleError } from '../../core/errors/catalogue.ts'
import { movedMs } from '../../core/schedule/moved-time.ts'
import { integerIn, notANumber, outOfRange } from '../../stores/state/state.ts'

/** Most bytes of keys and values together, estimated: the default of STATE_MAX_BYTES. */
export const STATE_MAX_BYTES = 256 * 1024 * 1024
/** What one plugin may take of them: others find room, whatever it does. */
const PLUGIN_SHARE = 1 / 2
/** What one namespace may take of them. More than a plugin may: one plugin does not fill a namespace that others use. */
const NAMESPACE_SHARE = 3 / 4
/** Keys of one namespace: a call of `keys` lists them all. */
const NAMESPACE_MAX_KEYS = 500_000

/** Who takes the room of an entry. */
interface Taker {
  readonly namespace: string
  /** The plugin that has set it. */
  readonly owner: string
}

interface Use {
  bytes: number
  keys: number
}

/** What the entries take: all together, by namespace, and by plugin. */
class Quotas {
  readonly #maxBytes: number
  #bytes = 0
  readonly #namespaces = new Map<string, Use>()
  readonly #owners = new Map<string, Use>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Asks for room, and takes none.
   * @param bytes more than before, for the entry of this key
   * @param ownBytes more than before, of the plugin: the entry may have been another's
   * @throws STATE_FULL, STATE_QUOTA
   */
  check({ namespace, owner }: Taker, bytes: number, ownBytes: number, isNewKey: boolean): void {
    const inNamespace = this.#namespaces.get(namespace)
    const ofOwner = this.#owners.get(owner)
    if (ownBytes > 0 && (ofOwner?.bytes ?? 0) + ownBytes > this.#maxBytes * PLUGIN_SHARE)
      throw quotaFault(`The plugin ${owner} has its share of the in-memory state`, this.#maxBytes * PLUGIN_SHARE)
    if (bytes > 0 && (inNamespace?.bytes ?? 0) + bytes > this.#maxBytes * NAMESPACE_SHARE)
      throw quotaFault(
        `The namespace ${namespace} has its share of the in-memory state`,
        this.#maxBytes * NAMESPACE_SHARE,
      )
    if (isNewKey && (inNamespace?.keys ?? 0) >= NAMESPACE_MAX_KEYS)
      throw new HeddleError(
        'STATE_QUOTA',
        `The namespace ${namespace} has ${NAMESPACE_MAX_KEYS} keys; delete keys or give them a ttlMs`,
      )
    if (bytes > 0 && this.#bytes + bytes > this.#maxBytes)
      throw new HeddleError(
        'STATE_FULL',
        `The in-memory state holds ${this.#maxBytes} bytes (STATE_MAX_BYTES); delete keys or give them a ttlMs`,
      )
  }

  /** @param bytes and @param keys negative: they are given back */
  add({ namespace, owner }: Taker, bytes: number, keys: number): void {
    this.#bytes += bytes
    addTo(this.#namespaces, namespace, bytes, keys)
    addTo(this.#owners, owner, bytes, keys)
  }

  clear(): void {
    this.#bytes = 0
    this.#namespaces.clear()
    this.#owners.clear()
  }
}

function addTo(uses: Map<string, Use>, name: string, bytes: number, keys: number): void {
  const use = uses.get(name)
  if (use === undefined) {
    uses.set(name, { bytes, keys })
    return
  }
  use.bytes += bytes
  use.keys += keys
  if (use.keys === 0) uses.delete(name)
}

function quotaFault(what: string, maxBytes: number): HeddleError {
  return new HeddleError(
    'STATE_QUOTA',
    `${what}, ${Math.floor(maxBytes)} bytes; delete keys, give them a ttlMs, or raise STATE_MAX_BYTES`,
  )
}

const ENTRY_OVERHEAD_BYTES = 200

const SWEEP_SLICE = 1000
const SWEEP_PAUSE_MS = 1000
// After a sweep that took t, none for at least 20 t: sweeping takes at most five percent of the thread's time.
const SWEEP_PAUSE_FACTOR = 20

interface Entry extends Taker {
  key: string
  /** JSON text. */
  text: string
  /** By the monotonic clock; Infinity: it does not expire. */
  expiresAtMs: number
}

/**
 * The state of the process: one Map per namespace, in the primary. Values are JSON texts.
 * No read returns an entry that has expired; its memory is freed by the next sweep. Sweeps visit only entries with a time to live,
 * a thousand per turn of the event loop, and run only while there are any.
 */
export class MemoryStore {
  #namespaces = new Map<string, Map<string, Entry>>()
  #expiring = new Set<Entry>()
  #timer: NodeJS.Timeout | undefined
  readonly #quotas: Quotas

  /** @param maxBytes calls that would make the store larger are refused with STATE_FULL, those beyond a share with STATE_QUOTA */
  constructor(maxBytes = STATE_MAX_BYTES) {
    this.#quotas = new Quotas(maxBytes)
  }

  /** Entries in memory, including expired ones that were not swept yet. */
  get size(): number {
    return [...this.#namespaces.values()].reduce((sum, entries) => sum + entries.size, 0)
  }

  get(namespace: string, key: string): string | null {
    return this.#live(namespace, key)?.text ?? null
  }

  /** @param owner the plugin, whose entry it is from now on */
  set(namespace: string, key: string, text: string, ttlMs: number | null, owner = ''): void {
    const known = this.#namespaces.get(namespace)?.get(key)
    const entry = { namespace, key, owner, text, expiresAtMs: expiryOf(ttlMs) }
    this.#reserve(entry, known)
    if (known) this.#remove(known)
    this.#put(entry)
  }

  has(namespace: string, key: string): boolean {
    return this.#live(namespace, key) !== undefined
  }

  delete(namespace: string, key: string): boolean {
    const entry = this.#live(namespace, key)
    if (entry) this.#remove(entry)
    return entry !== undefined
  }

  increment(namespace: string, key: string, by: number, ttlMs: number | null, owner = ''): number {
    const entry = this.#live(namespace, key)
    if (!entry) {
      const first = { namespace, key, owner, text: JSON.stringify(by), expiresAtMs: expiryOf(ttlMs) }
      this.#reserve(first, undefined)
      this.#put(first)
      return by
    }
    const value = integerIn(entry.text)
    if (value === undefined) throw notANumber(key)
    const sum = value + by
    if (!Number.isSafeInteger(sum)) throw outOfRange(key)
    this.#rewrite(entry, JSON.stringify(sum))
    return sum
  }

  /**
   * `null` as expected text matches a missing value and a stored null, because `get` returns null for both.
   * @param ttlMs null: the key keeps its time to live
   * @returns true, or the text that stands there instead, null for none: whoever asks compares the values, because this thread has no time for it
   */
  compareAndSet(
    namespace: string,
    key: string,
    expected: string,
    next: string,
    ttlMs: number | null,
    owner = '',
  ): true | string | null {
    const entry = this.#live(namespace, key)
    if ((entry?.text ?? 'null') !== expected) return entry?.text ?? null
    const changed = { namespace, key, owner: entry?.owner ?? owner, text: next, expiresAtMs: expiryOf(ttlMs) }
    this.#reserve(changed, entry)
    if (entry === undefined) this.#put(changed)
    else if (ttlMs === null) this.#rewrite(entry, next)
    else {
      this.#remove(entry)
      this.#put(changed)
    }
    return true
  }

  keys(namespace: string): string[] {
    const nowMs = ageMs()
    const entries = [...(this.#namespaces.get(namespace)?.values() ?? [])]
    return entries.filter((entry) => entry.expiresAtMs > nowMs).map((entry) => entry.key)
  }

  clear(namespace: string): void {
    for (const entry of this.#namespaces.get(namespace)?.values() ?? []) {
      this.#expiring.delete(entry)
      this.#quotas.add(entry, -bytesOf(entry), -1)
    }
    this.#namespaces.delete(namespace)
  }

  /** Deletes everything. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#namespaces.clear()
    this.#quotas.clear()
    this.#expiring.clear()
  }

  #live(namespace: string, key: string): Entry | undefined {
    const entry = this.#namespaces.get(namespace)?.get(key)
    if (entry === undefined || entry.expiresAtMs > ageMs()) return entry
    this.#remove(entry)
    return undefined
  }

  /** @throws STATE_FULL, STATE_QUOTA when there is no room for `entry` instead of `known` */
  #reserve(entry: Entry, known: Entry | undefined): void {
    const bytes = bytesOf(entry)
    const freed = known === undefined ? 0 : bytesOf(known)
    this.#quotas.check(entry, bytes - freed, known?.owner === entry.owner ? bytes - freed : bytes, known === undefined)
  }

  #rewrite(entry: Entry, text: string): void {
    this.#quotas.add(entry, (text.length - entry.text.length) * 2, 0)
    entry.text = text
  }

  #put(entry: Entry): void {
    this.#quotas.add(entry, bytesOf(entry), 1)
    const entries = this.#namespaces.get(entry.namespace) ?? new Map<string, Entry>()
    this.#namespaces.set(entry.namespace, entries.set(entry.key, entry))
    if (entry.expiresAtMs === Number.POSITIVE_INFINITY) return
    this.#expiring.add(entry)
    if (this.#timer === undefined) this.#sweepIn(SWEEP_PAUSE_MS)
  }

  #remove(entry: Entry): void {
    this.#quotas.add(entry, -bytesOf(entry), -1)
    this.#expiring.delete(entry)
    const entries = this.#namespaces.get(entry.namespace)
    entries?.delete(entry.key)
    if (entries?.size === 0) this.#namespaces.delete(entry.namespace)
  }

  #sweepIn(pauseMs: number): void {
    this.#timer = setTimeout(() => this.#sweep(this.#expiring.values(), 0), pauseMs).unref()
  }

  /** Sweeps one slice. The iterator stays valid while entries are added and removed between slices. */
  #sweep(entries: Iterator<Entry>, spentMs: number): void {
    const startedMs = performance.now()
    const nowMs = ageMs()
    for (let seen = 0; seen < SWEEP_SLICE; seen++) {
      const { value, done } = entries.next()
      if (done) {
        const passMs = spentMs + performance.now() - startedMs
        this.#timer = undefined
        if (this.#expiring.size > 0) this.#sweepIn(Math.max(SWEEP_PAUSE_MS, passMs * SWEEP_PAUSE_FACTOR))
        return
      }
      if (value.expiresAtMs <= nowMs) this.#remove(value)
    }
    const sliceMs = performance.now() - startedMs
    this.#timer = setTimeout(() => this.#sweep(entries, spentMs + sliceMs), 0).unref()
  }
}

/** By the monotonic clock, and by how much a test has moved the time. */
const ageMs = (): number => performance.now() + movedMs()

function bytesOf({ namespace, key, text }: Entry): number {
  return ENTRY_OVERHEAD_BYTES + (namespace.length + key.length + text.length) * 2
}

function expiryOf(ttlMs: number | null): number {
  return ttlMs === null ? Number.POSITIVE_INFINITY : ageMs() + ttlMs
}
