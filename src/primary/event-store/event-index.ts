// The index of stored events by their id.
import type { StoreDatabase } from '../../runtime/event-store/database.ts'

const NAME = 'heddle_delivery_event'
const MAKE = {
  sqlite: `CREATE INDEX IF NOT EXISTS ${NAME} ON heddle_delivery (event_id)`,
  // Waits for all transactions that have published, and holds up no publisher.
  postgres: `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${NAME} ON heddle_delivery (event_id)`,
} as const
/** An index that was being made when its process ended is not valid, and nobody makes it. */
const STATE = `SELECT i.indisvalid AS is_valid, p.pid IS NOT NULL AS is_made FROM pg_index AS i
  LEFT JOIN pg_stat_progress_create_index AS p ON p.index_relid = i.indexrelid WHERE i.indexrelid = to_regclass('${NAME}')`
const DROP = `DROP INDEX CONCURRENTLY IF EXISTS ${NAME}`

/**
 * Makes the index when an event is first asked for by its id, beside everything else: until it is there, all rows are read for each id. An application
 * that asks for none does not pay for it with each event: a tenth of their number on SQLite.
 */
export class EventIndex {
  readonly #database: () => StoreDatabase
  /** After a failure the next request tries again. */
  #making: Promise<void> | null = null

  constructor(database: () => StoreDatabase) {
    this.#database = database
  }

  want(): void {
    this.#making ??= make(this.#database()).catch(() => {
      this.#making = null
    })
  }
}

async function make(db: StoreDatabase): Promise<void> {
  if (db.dialect === 'postgres') {
    const found = await db.queryOne<{ is_valid: boolean; is_made: boolean }>(STATE)
    if (found?.is_valid || found?.is_made) return
    if (found !== null) await db.execute(DROP)
  }
  await db.execute(MAKE[db.dialect])
}
