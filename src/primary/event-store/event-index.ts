// The indexes of stored events by their id, and by the events that have caused them.
import { type Clock, pause } from '../../core/schedule/clock.ts'
import { CAUSED_INDEXES } from '../../runtime/event-store/caused-rows.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'

interface Index {
  name: string
  /** What it is of. */
  rows: string
}

const BY_ID: readonly Index[] = [{ name: 'heddle_delivery_event', rows: '(event_id)' }]
const MAKE = {
  sqlite: 'CREATE INDEX IF NOT EXISTS',
  // Waits for all transactions that have published, and holds up no publisher.
  postgres: 'CREATE INDEX CONCURRENTLY IF NOT EXISTS',
} as const
/** An index that was being made when its process ended is not valid, and nobody makes it. */
const STATE = `SELECT i.indisvalid AS is_valid, p.pid IS NOT NULL AS is_made FROM pg_index AS i
  LEFT JOIN pg_stat_progress_create_index AS p ON p.index_relid = i.indexrelid WHERE i.indexrelid = to_regclass($1)`

/** Interval at which is looked whether another process has made an index, milliseconds. */
const MADE_ELSEWHERE_MS = 1000
/** Pause after an index: on a file others have waited for it, milliseconds. */
const BETWEEN_MS = 50

/**
 * Makes an index when an event is first asked for by its id, beside everything else: until it is there, all rows are read for each id. An application
 * that asks for none does not pay for it with each event: a tenth of their number on SQLite.
 */
export class EventIndex {
  readonly #database: () => StoreDatabase
  readonly #clock: Clock
  /** After a failure the next request tries again. */
  readonly #making = new Set<readonly Index[]>()
  #last: Promise<void> = Promise.resolve()

  constructor(database: () => StoreDatabase, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  want(): void {
    this.#want(BY_ID)
  }

  /** Those by the events that have caused them. */
  wantCaused(): void {
    this.#want(CAUSED_INDEXES[this.#database().dialect])
  }

  /** One after another: on a server each waits for the transactions of all others, and on a file others write in between. */
  #want(indexes: readonly Index[]): void {
    if (this.#making.has(indexes)) return
    this.#making.add(indexes)
    this.#last = this.#last.then(async () => {
      try {
        for (const index of indexes) {
          while (!(await isMade(this.#database(), index))) await pause(this.#clock, MADE_ELSEWHERE_MS)
          await pause(this.#clock, BETWEEN_MS)
        }
      } catch {
        this.#making.delete(indexes)
      }
    })
  }
}

/** @returns false while another process makes it */
async function isMade(db: StoreDatabase, { name, rows }: Index): Promise<boolean> {
  if (db.dialect === 'postgres') {
    const found = await db.queryOne<{ is_valid: boolean; is_made: boolean }>(STATE, [name])
    if (found?.is_valid) return true
    if (found?.is_made) return false
    if (found !== null) await db.execute(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`)
  }
  await db.execute(`${MAKE[db.dialect]} ${name} ON heddle_delivery ${rows}`)
  return true
}
