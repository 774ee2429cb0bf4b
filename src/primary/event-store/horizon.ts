// Up to which number no row becomes visible any more.
import type { Clock } from '../../core/schedule/clock.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'

/** The database is asked no more often than this, milliseconds. */
const REFRESH_MS = 50
/** While a transaction is open for long, this many of the points in time are kept, and then every second one. */
const MARKS_MAX = 256

/** The last number that was drawn, the oldest transaction that is open, and a new one: the end of a snapshot is that of those that have ended. */
const ASK = `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last, CAST(pg_snapshot_xmin(s) AS text) AS oldest,
  CAST(pg_current_xact_id() AS text) AS next FROM heddle_delivery_seq, pg_current_snapshot() AS s`

/**
 * Numbers are drawn before their rows are committed, so a lower one may become visible after a higher one. A transaction has its number before it
 * draws one for a row: once all transactions have ended that were there when a number was the last one, no row up to that number is missing.
 */
export class Horizon {
  readonly #database: () => LogDatabase
  readonly #clock: Clock
  #decided = 0
  #last = 0
  /** Numbers that were the last ones, and a transaction that began later. */
  #marks: { last: number; next: bigint }[] = []
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(database: () => LogDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** All rows up to here are visible, or never will be. */
  get decided(): number {
    return this.#decided
  }

  async refresh(): Promise<number> {
    const nowMs = this.#clock.steadyMs()
    if (nowMs - this.#askedMs < REFRESH_MS) return this.#decided
    this.#askedMs = nowMs
    const now = await this.#database().queryOne<{ last: number; oldest: string; next: string }>(ASK)
    // The number was the last one before this was asked.
    if (this.#last > this.#decided) this.#marks.push({ last: this.#last, next: BigInt(now!.next) })
    this.#last = Number(now!.last)
    const oldest = BigInt(now!.oldest)
    for (const { last, next } of this.#marks) if (next <= oldest) this.#decided = Math.max(this.#decided, last)
    this.#marks = this.#marks.filter(({ last }) => last > this.#decided)
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, n) => n % 2 === 0)
    return this.#decided
  }
}
