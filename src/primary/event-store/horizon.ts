// Finds the row number below which no further row can become visible.
import type { Row } from '../../contracts/db.ts'
import type { Clock } from '../../core/schedule/clock.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'
import { DRAWING_TRANSACTIONS } from '../../runtime/event-store/server-tables.ts'

/** Time a number may stay undecided before the open transactions are checked for draws of numbers, milliseconds. */
const HELD_MS = 30
/** Maximum number of marks during a long transaction: above it, every second one is dropped. */
const MARKS_MAX = 256

/** The last number drawn, the oldest open transaction, and a new transaction id: transactions with earlier draws have lower ids. */
export const HORIZON = {
  from: 'pg_current_snapshot() AS s',
  last: "coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0)",
  oldest: 'CAST(pg_snapshot_xmin(s) AS text)',
  next: 'CAST(pg_current_xact_id() AS text)',
} as const
const ASK = `SELECT ${HORIZON.last} AS last, ${HORIZON.oldest} AS oldest, ${HORIZON.next} AS next FROM ${HORIZON.from}`

/** State of the numbers at the snapshot of a statement. */
export interface HorizonView {
  last: number
  oldest: string
  next: string
}

/**
 * A row's number is drawn before its commit, so a lower one may become visible after a higher one. An INSERT gets its transaction id before it draws
 * numbers. Mark the last number drawn: once all transactions open at that time have ended, no row up to that number is missing.
 */
export class Horizon {
  readonly #database: () => StoreDatabase
  readonly #clock: Clock
  #decided = 0
  /** The same, from the results of other statements: for statements that begin now. */
  #found = 0
  #last = 0
  /** Marks: the last number drawn at a time by the steady clock, each with a transaction that began later. */
  #marks: Mark[] = []
  /** True during a long transaction: each statement then checks which open transactions draw numbers. Most have drawn none. */
  #isHeld = false
  #isAsking = false

  constructor(database: () => StoreDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Called before a statement whose view is given to `seen`. */
  begin(): void {
    this.#decided = Math.max(this.#decided, this.#found)
    if (this.#isHeld && !this.#isAsking) void this.#askWhoDraws()
  }

  async refresh(): Promise<number> {
    this.begin()
    return this.seen((await this.#database().queryOne<HorizonView & Row>(ASK))!)
  }

  /** @param view of one statement @returns the number up to which all its rows are visible or never will be */
  seen({ last: lastDrawn, oldest: oldestOpen, next: newest }: HorizonView): number {
    const atMs = this.#clock.steadyMs()
    // Drawn before this statement, so before its transaction began.
    if (this.#last > this.#decided) this.#marks.push({ last: this.#last, next: BigInt(newest), atMs })
    this.#last = Number(lastDrawn)
    const oldest = BigInt(oldestOpen)
    for (const { last, next } of this.#marks) {
      if (next > oldest || last <= this.#decided) continue
      this.#decided = last
      this.#isHeld = false
    }
    this.#marks = this.#marks.filter(({ last }) => last > this.#decided)
    if (this.#marks.length > MARKS_MAX) this.#marks = this.#marks.filter((_, n) => n % 2 === 0)
    const [first] = this.#marks
    if (first !== undefined && atMs - first.atMs >= HELD_MS) this.#isHeld = true
    return this.#decided
  }

  async #askWhoDraws(): Promise<void> {
    this.#isAsking = true
    const marks = [...this.#marks]
    try {
      const drawing = await this.#database().query<{ xid: string | null; is_known: boolean | null }>(
        DRAWING_TRANSACTIONS,
      )
      const isOver = ({ next }: Mark): boolean =>
        drawing.every(({ xid, is_known }) => is_known === true && (xid === null || !isBefore(Number(xid), next)))
      for (const mark of marks) if (isOver(mark)) this.#found = Math.max(this.#found, mark.last)
    } catch {
      // Pages read more rows again meanwhile.
    }
    this.#isAsking = false
  }
}

interface Mark {
  readonly last: number
  readonly next: bigint
  readonly atMs: number
}

/** @param xid the lower half of an id: open ones differ by less than its range */
const isBefore = (xid: number, next: bigint): boolean => ((Number(next & 0xffff_ffffn) - xid) | 0) > 0
