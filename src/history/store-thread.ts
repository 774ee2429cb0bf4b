/** Entry of the history's thread, of which a process has one: it fetches the entries of all threads, stores them, and answers questions. */
import { messageOf } from '../core/errors/description.ts'
import { watchGuardian } from '../core/modules/guardian-watch.ts'
import { RecordReader } from '../recording/ring.ts'
import type { ThreadRing } from '../recording/side-thread.ts'
import { type RingsReader, serveSideThread } from '../recording/side-thread-entry.ts'
import { letGo } from '../transport/memory/garbage.ts'
import { type HistoryQuery, Questions } from './questions.ts'
import { type HistoryEntry, HistoryStore, type StoreInit } from './store.ts'

/** Milliseconds between two looks into the rings. */
const LOOK_MS = 50
/** Most entries of one thread that are stored at a time. */
const ENTRIES_PER_LOOK = 2000
/**
 * The thread rests so many times as long as it worked: it takes at most a fifth of a core. What comes faster fills the rings, and is dropped
 * there: the history must not slow requests down.
 */
const REST_PER_WORK = 4

class Collector implements RingsReader {
  readonly #store: HistoryStore
  readonly #questions: Questions
  readonly #tellTrouble: (why: string) => void
  readonly #rings = new Map<number, RecordReader>()

  /** @param tellTrouble told why entries could not be stored */
  constructor({ settings, guardian }: StoreInit, tellTrouble: (why: string) => void) {
    if (guardian !== null) watchGuardian(guardian, settings.shutdownDelayMs + settings.shutdownTimeoutMs)
    this.#store = new HistoryStore(settings)
    this.#questions = new Questions(this.#store.database)
    this.#tellTrouble = tellTrouble
  }

  add({ id, ring }: ThreadRing): void {
    this.#rings.set(id, new RecordReader(ring))
  }

  remove(id: number): void {
    this.#collect()
    const ring = this.#rings.get(id)
    if (ring !== undefined) letGo(ring.memory)
    this.#rings.delete(id)
  }

  start(): void {
    const startedMs = performance.now()
    this.#collect()
    const tookMs = performance.now() - startedMs
    setTimeout(() => this.start(), Math.max(LOOK_MS, tookMs * REST_PER_WORK))
  }

  #collect(): void {
    const entries: HistoryEntry[] = []
    for (const ring of this.#rings.values()) {
      ring.read(ENTRIES_PER_LOOK, (json) => entries.push(JSON.parse(json) as HistoryEntry))
    }
    // The first failure is the one that is told.
    entries.sort((a, b) => endOf(a) - endOf(b))
    try {
      this.#store.write(entries)
    } catch (thrown) {
      this.#tellTrouble(messageOf(thrown))
    }
  }

  answer(query: unknown): unknown {
    // What has happened before the question belongs into the answer.
    this.#collect()
    return this.#questions.answer(query as HistoryQuery)
  }

  flush(): number {
    this.#collect()
    this.#store.close()
    return 0
  }
}

const endOf = (entry: HistoryEntry): number => entry.atMs + ('ms' in entry ? (entry.ms ?? 0) : 0)

serveSideThread<StoreInit, string>((init, tell) => new Collector(init, tell))
