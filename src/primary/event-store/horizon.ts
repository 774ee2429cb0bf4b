// The number up to which no row can become visible any more.
import type { Row } from '../../contracts/db.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'

/** Maximum number of marks during a long transaction: above it, every second one is dropped. */
const MARKS_MAX = 256

/** The last number drawn, the oldest open transaction, and a new transaction id: whoever has drawn numbers before has a lower id. */
export const HORIZON = {
  from: 'pg_current_snapshot() AS s',
  last: "coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0)",
  oldest: 'CAST(pg_snapshot_xmin(s) AS text)',
  next: 'CAST(pg_current_xact_id() AS text)',
} as const
const ASK = `SELECT ${HORIZON.last} AS last, ${HORIZON.oldest} AS oldest, ${HORIZON.next} AS next FROM ${HORIZON.from}`

/** What a statement says of the numbers at its snapshot. */
export interface HorizonView {
  last: number
  oldest: string
  next: string
}

/**
 * A row's number is drawn before its commit, so a lower one may become visible after a higher one. An INSERT gets its transaction id before it draws
 * numbers. So once all transactions have ended that were open when a number was the last one drawn, no row up to that number is missing.
 */
export class Horizon {
  readonly #database: () => LogDatabase
  #decided = 0
  #last = 0
  /** Numbers that were the last ones drawn, each with a transaction that began later. */
  #marks: { last: number; next: bigint }[] = []

  constructor(database: () => LogDatabase) {
    this.#database = database
  }

  /** Every row up to this number is visible, or never will be. */
  get decided(): number {
    return this.#decided
  }

  async refresh(): Promise<number> {
    return this.seen((await this.#database().queryOne<HorizonView & Row>(ASK))!)
  }

  /** @param view of one statement @returns `decided`, as the snapshot of that statement has it */
  seen({ last: lastDrawn, oldest: oldestOpen, next: newest }: HorizonView): number {
    // Drawn before this statement, so before its transaction began.
    if (this.#last > this.#decided) this.#marks.push({ last: this.#last, next: BigInt(newest) })
    this.#last = Number(lastDrawn)
    const oldest = BigInt(oldestOpen)
    for (const { last, next } of this.#marks) if (next <= oldest) this.#decided = Math.max(this.#decided, last)
    this.#marks = this.#marks.filter(({ last }) => last > this.#decided)
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, n) => n % 2 === 0)
    return this.#decided
  }
}
