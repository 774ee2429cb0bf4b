// The indexes of stored events by their id, and by the events that have caused them.
import { type Chance, type Clock, pause } from '../../core/schedule/clock.ts'
import { CAUSED_INDEX } from '../../runtime/event-store/caused-rows.ts'
import { CLOCK_MS, type StoreDatabase } from '../../runtime/event-store/database.ts'

interface Index {
  name: string
  /** What it is of. */
  rows: string
}

const BY_ID: Index = { name: 'heddle_delivery_event', rows: '(event_id)' }

/** Time after which another process may make indexes, if the one that does so is gone, milliseconds. */
const LEASE_MS = 15_000
const RENEW_MS = LEASE_MS / 3
const NOW = CLOCK_MS.postgres
/** Two processes that make indexes of one table wait for each other: the server ends one of them, and its index is not valid. */
const TAKE = `INSERT INTO heddle_lease (name, holder, identity, fence, expires_ms) VALUES ('index', $1, '', 1, ${NOW} + ${LEASE_MS})
  ON CONFLICT (name) DO UPDATE SET holder = $1, fence = heddle_lease.fence + 1, expires_ms = ${NOW} + ${LEASE_MS}
  WHERE heddle_lease.holder = $1 OR heddle_lease.expires_ms <= ${NOW}`
const GIVE_BACK = "UPDATE heddle_lease SET expires_ms = 0 WHERE name = 'index' AND holder = $1"
const STATE = 'SELECT i.indisvalid AS is_valid FROM pg_index AS i WHERE i.indexrelid = to_regclass($1)'
/** The server may still make one for a process that is gone. */
const IS_MAKING =
  "SELECT 1 AS found FROM pg_stat_progress_create_index WHERE relid = to_regclass('heddle_delivery') LIMIT 1"
const IS_ON_FILE = 'SELECT 1 AS found FROM sqlite_master WHERE name = $1'
const SCHEMA = 'SELECT quote_ident(current_schema()) AS name'

/** Interval at which is looked whether another process has made an index, milliseconds. */
const MADE_ELSEWHERE_MS = 1000

/**
 * Makes an index when an event is first asked for by its id, beside everything else: until it is there, all rows are read for each id. An application
 * that asks for none does not pay for it with each event: a tenth of their number on SQLite.
 */
export class EventIndex {
  readonly #database: () => StoreDatabase
  readonly #clock: Clock
  readonly #holder: string
  /** After a failure the next request tries again. */
  readonly #making = new Map<Index, Promise<void>>()
  #last: Promise<void> = Promise.resolve()

  constructor(database: () => StoreDatabase, clock: Clock, chance: Chance) {
    this.#holder = chance.id()
    this.#database = database
    this.#clock = clock
  }

  /** On a file it resolves when the index is there, or cannot be made: this thread would read all rows. A server reads them itself. */
  async want(): Promise<void> {
    const made = this.#want(BY_ID)
    if (this.#database().dialect === 'sqlite') await made
  }

  /** The one by the events that have caused them: on a server. */
  wantCaused(): void {
    if (this.#database().dialect === 'postgres') void this.#want(CAUSED_INDEX)
  }

  /** One after another: each waits for the transactions of all others. */
  #want(index: Index): Promise<void> {
    let made = this.#making.get(index)
    if (made === undefined) {
      made = this.#last.then(async () => {
        try {
          while (!(await this.#isMade(index))) await pause(this.#clock, MADE_ELSEWHERE_MS)
        } catch {
          this.#making.delete(index)
        }
      })
      this.#making.set(index, made)
      this.#last = made
    }
    return made
  }

  /** @returns false while another process makes indexes */
  async #isMade(index: Index): Promise<boolean> {
    const db = this.#database()
    if (db.dialect === 'postgres') return this.#isMadeOnServer(db, index)
    // That of a long table is made in a process for heavy statements.
    if ((await db.queryOne(IS_ON_FILE, [index.name])) === null)
      await db.execute(`CREATE INDEX IF NOT EXISTS ${index.name} ON heddle_delivery ${index.rows}`)
    return true
  }

  async #isMadeOnServer(db: StoreDatabase, index: Index): Promise<boolean> {
    if ((await stateOf(db, index)) === 'valid') return true
    const take = () => db.execute(TAKE, [this.#holder])
    if ((await take()).rowCount === 0) return false
    const renewing = this.#clock.every(RENEW_MS, () => void take().catch(() => {})).unref()
    try {
      return await makeOnServer(db, index)
    } finally {
      this.#clock.cancel(renewing)
      // It lapses by itself.
      await db.execute(GIVE_BACK, [this.#holder]).catch(() => {})
    }
  }
}

async function stateOf(db: StoreDatabase, { name }: Index): Promise<'valid' | 'invalid' | 'missing'> {
  const found = await db.queryOne<{ is_valid: boolean }>(STATE, [name])
  if (found === null) return 'missing'
  return found.is_valid ? 'valid' : 'invalid'
}

/** @returns false while somebody else makes one of the same table */
async function makeOnServer(db: StoreDatabase, index: Index): Promise<boolean> {
  // In this order: one that has been made since is valid.
  if ((await db.queryOne(IS_MAKING)) !== null) return false
  const state = await stateOf(db, index)
  if (state === 'valid') return true
  const schema = (await db.queryOne<{ name: string }>(SCHEMA))!.name
  if (state === 'invalid') await db.apart!(`DROP INDEX CONCURRENTLY IF EXISTS ${schema}.${index.name}`)
  // Waits for all transactions that have published, and holds up no publisher.
  await db.apart!(`CREATE INDEX CONCURRENTLY IF NOT EXISTS ${index.name} ON ${schema}.heddle_delivery ${index.rows}`)
  return (await stateOf(db, index)) === 'valid'
}
