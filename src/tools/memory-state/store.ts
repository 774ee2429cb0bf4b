import { isDeepStrictEqual } from 'node:util'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { integerIn, notANumber, outOfRange } from '../../stores/state/input.ts'

/** Most bytes of keys and values together, estimated. */
export const STATE_MAX_BYTES = 256 * 1024 * 1024
const ENTRY_OVERHEAD_BYTES = 200

const SWEEP_SLICE = 1000
const SWEEP_PAUSE_MS = 1000
// After a sweep that took t, none for at least 20 t: sweeping takes at most five percent of the thread's time.
const SWEEP_PAUSE_FACTOR = 20

interface Entry {
  namespace: string
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
  #bytes = 0
  readonly #maxBytes: number

  /** @param maxBytes calls that would make the store larger are refused with STATE_FULL */
  constructor(maxBytes = STATE_MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Entries in memory, including expired ones that were not swept yet. */
  get size(): number {
    return [...this.#namespaces.values()].reduce((sum, entries) => sum + entries.size, 0)
  }

  get(namespace: string, key: string): string | null {
    return this.#live(namespace, key)?.text ?? null
  }

  set(namespace: string, key: string, text: string, ttlMs: number | null): void {
    const known = this.#namespaces.get(namespace)?.get(key)
    this.#reserve(text, known)
    if (known) this.#remove(known)
    this.#put({ namespace, key, text, expiresAtMs: expiryOf(ttlMs) })
  }

  has(namespace: string, key: string): boolean {
    return this.#live(namespace, key) !== undefined
  }

  delete(namespace: string, key: string): boolean {
    const entry = this.#live(namespace, key)
    if (entry) this.#remove(entry)
    return entry !== undefined
  }

  increment(namespace: string, key: string, by: number, ttlMs: number | null): number {
    const entry = this.#live(namespace, key)
    if (!entry) {
      this.#reserve('', undefined)
      this.#put({ namespace, key, text: JSON.stringify(by), expiresAtMs: expiryOf(ttlMs) })
      return by
    }
    const value = integerIn(entry.text)
    if (value === undefined) throw notANumber(key)
    const sum = value + by
    if (!Number.isSafeInteger(sum)) throw outOfRange(key)
    this.#rewrite(entry, JSON.stringify(sum))
    return sum
  }

  /** `null` as expected text matches a missing value and a stored null, because `get` returns null for both. */
  compareAndSet(namespace: string, key: string, expected: string, next: string): boolean {
    const entry = this.#live(namespace, key)
    const current = entry?.text ?? 'null'
    if (current !== expected && !isDeepStrictEqual(JSON.parse(current), JSON.parse(expected))) return false
    this.#reserve(next, entry)
    if (entry) this.#rewrite(entry, next)
    else this.#put({ namespace, key, text: next, expiresAtMs: Number.POSITIVE_INFINITY })
    return true
  }

  keys(namespace: string): string[] {
    const nowMs = performance.now()
    const entries = [...(this.#namespaces.get(namespace)?.values() ?? [])]
    return entries.filter((entry) => entry.expiresAtMs > nowMs).map((entry) => entry.key)
  }

  clear(namespace: string): void {
    for (const entry of this.#namespaces.get(namespace)?.values() ?? []) {
      this.#expiring.delete(entry)
      this.#bytes -= bytesOf(entry)
    }
    this.#namespaces.delete(namespace)
  }

  /** Deletes everything. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#namespaces.clear()
    this.#bytes = 0
    this.#expiring.clear()
  }

  #live(namespace: string, key: string): Entry | undefined {
    const entry = this.#namespaces.get(namespace)?.get(key)
    if (entry === undefined || entry.expiresAtMs > performance.now()) return entry
    this.#remove(entry)
    return undefined
  }

  /** @throws STATE_FULL when there is no room to replace `known` by `text` */
  #reserve(text: string, known: Entry | undefined): void {
    const freed = known === undefined ? 0 : bytesOf(known)
    if (this.#bytes - freed + ENTRY_OVERHEAD_BYTES + text.length * 2 <= this.#maxBytes) return
    throw new HeddleError(
      'STATE_FULL',
      `The in-memory state holds ${this.#maxBytes} bytes; delete keys or give them a ttlMs`,
    )
  }

  #rewrite(entry: Entry, text: string): void {
    this.#bytes += (text.length - entry.text.length) * 2
    entry.text = text
  }

  #put(entry: Entry): void {
    this.#bytes += bytesOf(entry)
    const entries = this.#namespaces.get(entry.namespace) ?? new Map<string, Entry>()
    this.#namespaces.set(entry.namespace, entries.set(entry.key, entry))
    if (entry.expiresAtMs === Number.POSITIVE_INFINITY) return
    this.#expiring.add(entry)
    if (this.#timer === undefined) this.#sweepIn(SWEEP_PAUSE_MS)
  }

  #remove(entry: Entry): void {
    this.#bytes -= bytesOf(entry)
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
    for (let seen = 0; seen < SWEEP_SLICE; seen++) {
      const { value, done } = entries.next()
      if (done) {
        const passMs = spentMs + performance.now() - startedMs
        this.#timer = undefined
        if (this.#expiring.size > 0) this.#sweepIn(Math.max(SWEEP_PAUSE_MS, passMs * SWEEP_PAUSE_FACTOR))
        return
      }
      if (value.expiresAtMs <= startedMs) this.#remove(value)
    }
    const sliceMs = performance.now() - startedMs
    this.#timer = setTimeout(() => this.#sweep(entries, spentMs + sliceMs), 0).unref()
  }
}

function bytesOf({ namespace, key, text }: Entry): number {
  return ENTRY_OVERHEAD_BYTES + (namespace.length + key.length + text.length) * 2
}

function expiryOf(ttlMs: number | null): number {
  return ttlMs === null ? Number.POSITIVE_INFINITY : performance.now() + ttlMs
}
