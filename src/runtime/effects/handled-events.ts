// Events that are handled once, and the trimming of what is known of them.
import type { Queryable, Tx } from '../../contracts/db.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { PluginTransactions } from './transactions.ts'

/** What `heddle_inbox` knows an event by. */
interface InboxEntry {
  eventId: string
  /** The group that gets the event once. */
  group: string
  plugin: string
  /** The subscriber's function. */
  handler: unknown
}

/**
 * Has events handled once: the row that says so is written by the transaction of the handler. It is written first, so that of two deliveries at
 * a time one waits for the other, and no statement has to ask for it.
 */
export class Inbox {
  readonly #transactions: PluginTransactions

  constructor(transactions: PluginTransactions) {
    this.#transactions = transactions
  }

  /**
   * Runs `handle` in a transaction; not at all when the event has been handled. It may be run again, as the function of any transaction.
   * @returns what `handle` has returned; undefined when it has not run
   */
  async handle(entry: InboxEntry, handle: (tx: Tx) => unknown): Promise<unknown> {
    const { eventId, group, plugin, handler } = entry
    // Where the tables are missing, all of the transaction would fail.
    await this.#transactions.database()
    return this.#transactions.run(plugin, handler, async (tx, own) => {
      const { rowCount } = await own.execute(INSERT, [eventId, group, Date.now()])
      return rowCount === 0 ? undefined : await handle(tx)
    })
  }
}

const INSERT =
  'INSERT INTO heddle_inbox (event_id, grp, at_ms) VALUES ($1, $2, $3) ON CONFLICT (event_id, grp) DO NOTHING'

/** Longest pause between two looks for rows whose time is up, milliseconds. */
const TRIM_EVERY_MS = 600_000
/** Rows of one DELETE: it holds up other writes. */
const PAGE_ROWS = 256
/** Hexadecimal digits of the time in the id of an event. */
const TIME_DIGITS = 12

interface TrimmerOptions {
  transactions: PluginTransactions
  /** EVENT_BUS_INBOX_KEEP_MS. */
  inboxKeepMs: number
  log: (message: string) => void
}

/** Removes what is too old to be asked for again. One lane of each process does it; what several do at a time does no harm. */
export class Trimmer {
  readonly #options: TrimmerOptions
  #timer: NodeJS.Timeout | undefined
  #isTrimming = false

  constructor(options: TrimmerOptions) {
    this.#options = options
  }

  start(): void {
    const everyMs = Math.min(TRIM_EVERY_MS, this.#options.inboxKeepMs / 4)
    this.#timer = setInterval(() => void this.#trim(), everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #trim(): Promise<void> {
    if (this.#isTrimming) return
    this.#isTrimming = true
    const { transactions, inboxKeepMs, log } = this.#options
    try {
      const database = await transactions.database()
      await trimInbox(database, Date.now() - inboxKeepMs)
      await dropExpired(database, Date.now())
    } catch (error) {
      log(`Old rows of heddle_inbox and heddle_idempotency were not removed, it is tried again: ${messageOf(error)}`)
    } finally {
      this.#isTrimming = false
    }
  }
}

/**
 * Removes rows of events that were published and handled before a time. One that is still in the log is kept, however old it is: it would
 * be delivered again when the process dies.
 */
async function trimInbox(database: Queryable, beforeMs: number): Promise<void> {
  // Ids begin with their time, and the primary key with the id: this reads no more than what is to go.
  const end = `evt_${Math.max(0, beforeMs).toString(16).padStart(TIME_DIGITS, '0')}`
  let stored: Set<string> | null = null
  for (let after = ''; ; ) {
    const rows = await database.query<{ event_id: string }>(OLD, [after, end, beforeMs])
    if (rows.length === 0) return
    stored ??= new Set((await database.query<{ id: string }>(STORED, [end])).map(({ id }) => id))
    const ids = [...new Set(rows.map(({ event_id }) => event_id))].filter((id) => !stored!.has(id))
    if (ids.length > 0) {
      const list = ids.map((_, n) => `$${n + 2}`).join(', ')
      await database.execute(`DELETE FROM heddle_inbox WHERE at_ms < $1 AND event_id IN (${list})`, [beforeMs, ...ids])
    }
    after = rows.at(-1)!.event_id
    if (rows.length < PAGE_ROWS) return
  }
}

/** Removes answers whose time is up. */
async function dropExpired(database: Queryable, nowMs: number): Promise<void> {
  for (;;) {
    const { rowCount } = await database.execute(DROP_EXPIRED, [nowMs])
    if (rowCount < PAGE_ROWS) return
  }
}

const OLD = `SELECT event_id FROM heddle_inbox WHERE event_id > $1 AND event_id < $2 AND at_ms < $3 ORDER BY event_id LIMIT ${PAGE_ROWS}`
const STORED = 'SELECT id FROM heddle_event WHERE id < $1'
const DROP_EXPIRED = `DELETE FROM heddle_idempotency WHERE expires_ms <= $1 AND (scope, key) IN
  (SELECT scope, key FROM heddle_idempotency WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT ${PAGE_ROWS})`
