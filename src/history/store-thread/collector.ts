import { messageOf } from '../../core/errors/description.ts'
import { letGo } from '../../transport/memory/garbage.ts'
import { RingConsumer } from '../../transport/memory/spsc-ring.ts'
import type { HistoryEntry } from '../entries.ts'
import type { HistorySource } from '../messages.ts'
import type { HistoryStore } from './store.ts'

/** Milliseconds between two looks into the rings. */
const LOOK_MS = 50
/** Most entries of one thread that are stored at a time. */
const ENTRIES_PER_LOOK = 2000
/**
 * The thread rests so many times as long as it worked: it takes at most a fifth of a core. What comes faster fills the rings, and is dropped
 * there: the history must not slow requests down.
 */
const REST_PER_WORK = 4

/** Fetches the entries of all threads and stores them. */
export class Collector {
  readonly #store: HistoryStore
  readonly #onTrouble: (why: string) => void
  readonly #rings = new Map<number, RingConsumer>()
  #timer: NodeJS.Timeout | undefined

  constructor(store: HistoryStore, onTrouble: (why: string) => void) {
    this.#store = store
    this.#onTrouble = onTrouble
  }

  add({ id, ring }: HistorySource): void {
    this.#rings.set(id, new RingConsumer(ring))
  }

  remove(id: number): void {
    this.collect()
    const ring = this.#rings.get(id)
    if (ring !== undefined) letGo(ring.bytes)
    this.#rings.delete(id)
  }

  start(): void {
    const startedMs = performance.now()
    this.collect()
    const tookMs = performance.now() - startedMs
    this.#timer = setTimeout(() => this.start(), Math.max(LOOK_MS, tookMs * REST_PER_WORK))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  collect(): void {
    const entries: HistoryEntry[] = []
    for (const ring of this.#rings.values()) {
      if (!ring.pending) continue
      ring.drain((_kind, _dropped, at, length) => {
        entries.push(JSON.parse(ring.bytes.utf8Slice(at, at + length)) as HistoryEntry)
      }, ENTRIES_PER_LOOK)
    }
    // The first failure is the one that is told.
    entries.sort((a, b) => endOf(a) - endOf(b))
    try {
      this.#store.write(entries)
    } catch (thrown) {
      this.#onTrouble(messageOf(thrown))
    }
  }
}

const endOf = (entry: HistoryEntry): number => entry.atMs + ('ms' in entry ? entry.ms : 0)
