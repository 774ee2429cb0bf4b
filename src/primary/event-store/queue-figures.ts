// How much waits for each subscriber, and for how long, for Prometheus.
import type { Clock } from '../../core/schedule/clock.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import type { Consumer } from '../events/consumer.ts'
import { publishedMs } from './sql-store.ts'

/** Subscribers whose oldest row is looked up. */
const GROUPS_MAX = 1000
/** A database that takes longer gives no ages this time, milliseconds. */
const WAIT_MS = 1000
/** Looks that are remembered: above it, every second one is dropped. */
const MARKS_MAX = 256

/** The first row of each group, by the index of the order: no row is counted. The groups of one process alone end with it. */
const OLDEST = `SELECT event, grp, seq, (SELECT envelope FROM heddle_delivery WHERE seq = f.seq) AS envelope FROM (
  SELECT g.event, g.grp, (SELECT d.seq FROM heddle_delivery AS d WHERE d.grp = g.id AND d.due_ms = 0 ORDER BY coalesce(d.place, d.seq) LIMIT 1) AS seq
  FROM heddle_group AS g WHERE g.kind = 'group' LIMIT ${GROUPS_MAX}) AS f WHERE seq IS NOT NULL`
const LAST = {
  sqlite: "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'heddle_delivery'), 0) AS last",
  postgres: "SELECT coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0) AS last",
} as const

export interface QueueFigure {
  event: string
  subscriber: string
  /** Deliveries in this process, waiting or running: of stored events at most 1,024. */
  depth: number
  /** Since when the oldest is due and not finished, in all processes, milliseconds since the epoch; null: none is. */
  oldestMs: number | null
}

/**
 * Since when rows are due. A delayed row gets a new number when it is due, and its event does not tell when that was; the last number of an
 * earlier look does.
 */
export class RowAges {
  #marks: { atMs: number; last: number }[] = []

  /** @param last the last row number that was drawn */
  mark(last: number, atMs: number): void {
    const before = this.#marks.at(-1)
    if (before?.last === last) return
    this.#marks.push({ atMs, last })
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, n) => n % 2 === 0)
  }

  /**
   * @param publishedMs counts for rows from before the first look
   * @returns since when a row is due at least
   */
  since(seq: number, publishedMs: number, nowMs: number): number {
    const n = this.#marks.findIndex(({ last }) => last >= seq)
    if (n === 0) return Math.min(publishedMs, this.#marks[0]!.atMs)
    // An event cannot wait before it was published.
    return Math.max(publishedMs, n === -1 ? nowMs : this.#marks[n]!.atMs)
  }
}

/** Asked at each scrape: one query by index, and what the hub knows. */
export class QueueFigures {
  readonly #consumers: () => Iterable<Consumer>
  readonly #log: ThreadStore
  readonly #clock: Clock
  readonly #ages = new RowAges()
  #asking: Promise<StoredAges> | null = null

  constructor(consumers: () => Iterable<Consumer>, log: ThreadStore, clock: Clock) {
    this.#consumers = consumers
    this.#log = log
    this.#clock = clock
  }

  /** Rows in the event store, of all processes and delayed ones included; null: it is not open. */
  get stored(): number | null {
    return this.#log.memory.isOpen ? this.#log.memory.stored : null
  }

  async read(): Promise<QueueFigure[]> {
    const found = new Map<string, QueueFigure>()
    const stored = await this.#askStore()
    for (const consumer of this.#consumers()) {
      const { event, group: subscriber, pending: depth } = consumer
      found.set(`${event} ${subscriber}`, { event, subscriber, depth, oldestMs: oldestInMemory(consumer) })
    }
    for (const [key, { event, subscriber, oldestMs }] of stored) {
      const here = found.get(key) ?? { event, subscriber, depth: 0, oldestMs }
      found.set(key, { ...here, oldestMs: Math.min(here.oldestMs ?? oldestMs, oldestMs) })
    }
    return [...found.values()]
  }

  /** A question that takes too long is waited for again at the next scrape, and not asked twice. */
  #askStore(): Promise<StoredAges> {
    if (!this.#log.hasDatabase || !this.#log.memory.isOpen) return Promise.resolve(NONE)
    this.#asking ??= this.#ask()
      .catch(() => NONE)
      .finally(() => {
        this.#asking = null
      })
    const late = new Promise<StoredAges>((resolve) => this.#clock.after(WAIT_MS, () => resolve(NONE)).unref())
    return Promise.race([this.#asking, late])
  }

  async #ask(): Promise<StoredAges> {
    const { database } = this.#log
    const nowMs = this.#clock.nowMs()
    const numbers = await database.queryOne<{ last: number }>(LAST[database.dialect])
    const rows = await database.query<{ event: string; grp: string; seq: number; envelope: string }>(OLDEST)
    this.#ages.mark(Number(numbers!.last), nowMs)
    return new Map(
      rows.map(({ event, grp: subscriber, seq, envelope }) => {
        const oldestMs = this.#ages.since(Number(seq), publishedMs(envelope) || nowMs, nowMs)
        return [`${event} ${subscriber}`, { event, subscriber, oldestMs }]
      }),
    )
  }
}

/** By event and subscriber. */
type StoredAges = ReadonlyMap<string, { event: string; subscriber: string; oldestMs: number }>

const NONE: StoredAges = new Map()

/** Of events that no database has: rows tell of the others. */
function oldestInMemory(consumer: Consumer): number | null {
  const times = consumer.queues().flatMap(({ waiting }) => {
    const event = waiting.peek()?.event
    const isHere = event !== undefined && (event.source === null || event.source.isBroker)
    return isHere ? [event.timestampMs + event.delayMs] : []
  })
  return times.length === 0 ? null : Math.min(...times)
}
