// The number up to which no row can become visible any more.
import type { Clock } from '../../core/schedule/clock.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'

/** Shortest time between two queries, milliseconds. */
const REFRESH_MS = 50
/** Maximum number of marks during a long transaction: above it, every second one is dropped. */
const MARKS_MAX = 256

/** The last number drawn, the oldest open transaction, and a new transaction id: whoever has drawn numbers before has a lower id. */
const ASK = `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last, CAST(pg_snapshot_xmin(s) AS text) AS oldest,
  CAST(pg_current_xact_id() AS text) AS next FROM heddle_delivery_seq, pg_current_snapshot() AS s`

/**
 * A row's number is drawn before its commit, so a lower one may become visible after a higher one. An INSERT gets its transaction id before it draws
 * numbers. So once all transactions have ended that were open when a number was the last one drawn, no row up to that number is missing.
 */
export class Horizon {
  readonly #database: () => LogDatabase
  readonly #clock: Clock
  #decided = 0
  #last = 0
  /** Numbers that were the last ones drawn, each with a transaction that began later. */
  #marks: { last: number; next: bigint }[] = []
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(database: () => LogDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Every row up to this number is visible, or never will be. */
  get decided(): number {
    return this.#decided
  }

  async refresh(): Promise<number> {
    const nowMs = this.#clock.steadyMs()
    if (nowMs - this.#askedMs < REFRESH_MS) return this.#decided
    this.#askedMs = nowMs
    const now = await this.#database().queryOne<{ last: number; oldest: string; next: string }>(ASK)
    // Drawn before this query, so before the transaction `next` began.
    if (this.#last > this.#decided) this.#marks.push({ last: this.#last, next: BigInt(now!.next) })
    this.#last = Number(now!.last)
    const oldest = BigInt(now!.oldest)
    for (const { last, next } of this.#marks) if (next <= oldest) this.#decided = Math.max(this.#decided, last)
    this.#marks = this.#marks.filter(({ last }) => last > this.#decided)
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, n) => n % 2 === 0)
    return this.#decided
  }
}
