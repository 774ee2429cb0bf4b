// The indexes of stored events by their id, and by the events that have caused them.
import { CAUSED_INDEXES } from '../../runtime/event-store/caused-rows.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'

interface Index {
  name: string
  /** What it is of. */
  rows: string
}

const BY_ID: Index = { name: 'heddle_delivery_event', rows: '(event_id)' }
const MAKE = {
  sqlite: 'CREATE INDEX IF NOT EXISTS',
  // Waits for all transactions that have published, and holds up no publisher.
  postgres: 'CREATE INDEX CONCURRENTLY IF NOT EXISTS',
} as const
/** An index that was being made when its process ended is not valid, and nobody makes it. */
const STATE = `SELECT i.indisvalid AS is_valid, p.pid IS NOT NULL AS is_made FROM pg_index AS i
  LEFT JOIN pg_stat_progress_create_index AS p ON p.index_relid = i.indexrelid WHERE i.indexrelid = to_regclass($1)`

/**
 * Makes an index when an event is first asked for by its id, beside everything else: until it is there, all rows are read for each id. An application
 * that asks for none does not pay for it with each event: a tenth of their number on SQLite.
 */
export class EventIndex {
  readonly #database: () => StoreDatabase
  /** After a failure the next request tries again. */
  #making: Promise<void> | null = null
  #makingCaused: Promise<void> | null = null

  constructor(database: () => StoreDatabase) {
    this.#database = database
  }

  want(): void {
    this.#making ??= make(this.#database(), BY_ID).catch(() => {
      this.#making = null
    })
  }

  /** Those by the events that have caused them. */
  wantCaused(): void {
    this.#makingCaused ??= makeCaused(this.#database()).catch(() => {
      this.#makingCaused = null
    })
  }
}

async function makeCaused(db: StoreDatabase): Promise<void> {
  // One by one: on a file others write in between.
  for (const index of CAUSED_INDEXES[db.dialect]) await make(db, index)
}

async function make(db: StoreDatabase, { name, rows }: Index): Promise<void> {
  if (db.dialect === 'postgres') {
    const found = await db.queryOne<{ is_valid: boolean; is_made: boolean }>(STATE, [name])
    if (found?.is_valid || found?.is_made) return
    if (found !== null) await db.execute(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`)
  }
  await db.execute(`${MAKE[db.dialect]} ${name} ON heddle_delivery ${rows}`)
}
