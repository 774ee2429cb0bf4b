// Transactions that the runtime begins for plugins, and what is trimmed of what they remember.

import type { Queryable, TransactionCompanion, TransactionOptions, Tx } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { type StoreDatabase, storeDatabaseOf } from '../event-store/database.ts'

/**
 * The function of a transaction that the runtime begins for a plugin.
 * @param tx for the plugin: measured, and able to publish
 * @param own for the runtime's own statements in the same transaction: not measured
 */
type PluginWork<T> = (tx: Tx, own: Queryable) => Promise<T>

/** The tools of the thread. */
interface Toolbox {
  get(name: string): object | undefined
  /** Measures the calls of `target` as those of the tool. */
  instrument<T extends object>(name: string, target: T): T
}

type Transact = Pick<StoreDatabase, 'transaction'>

/** Transactions of the tool `db` that the runtime begins for plugins. They count as calls of the tool, as those that plugins begin do. */
export class PluginTransactions {
  readonly #toolbox: Toolbox
  readonly #accompany: (plugin: string) => TransactionCompanion
  readonly #opened: () => Promise<void>
  #metered: Transact | null = null

  /**
   * @param accompany makes what goes with each run, by who publishes in it
   * @param opened resolves when the runtime's tables are there
   */
  constructor(toolbox: Toolbox, accompany: (plugin: string) => TransactionCompanion, opened: () => Promise<void>) {
    this.#toolbox = toolbox
    this.#accompany = accompany
    this.#opened = opened
  }

  /**
   * The same as `transaction` of the tool.
   * @param handler the plugin's function that `work` calls, or its route: what it is known to wait for decides how the transaction is committed
   * @throws TOOL_MISSING, and whatever `transaction` rejects with
   */
  run<T>(plugin: string, handler: unknown, work: PluginWork<T>, options?: TransactionOptions): Promise<T> {
    let companion: TransactionCompanion
    // Functions without names of their own: the transpiler's naming costs more than the call.
    return this.#transact.transaction(
      // The companion is that of this run: the tool makes it right before it calls the function.
      (tx) => work(tx as Tx, companion.own!),
      () => {
        companion = this.#accompany(plugin)
        return companion
      },
      handler,
      options,
    )
  }

  /**
   * Runs a subscriber in a transaction, once for an event: the row that says so is written by that transaction. It is written first, so that of
   * two deliveries at a time one waits for the other, and no statement has to ask for it. It may be run again, as the function of any transaction.
   * @param group which gets the event once @param handler the subscriber's function
   * @returns what `handle` has returned; undefined when it has not run
   */
  async handleOnce(
    eventId: string,
    group: string,
    plugin: string,
    handler: unknown,
    handle: (tx: Tx) => unknown,
  ): Promise<unknown> {
    // Where the tables are missing, all of the transaction would fail.
    await this.database()
    return this.run(plugin, handler, async (tx, own) => {
      const { rowCount } = await own.execute(HANDLED, [eventId, group, Date.now()])
      return rowCount === 0 ? undefined : await handle(tx)
    })
  }

  /** For statements of the runtime by themselves. @throws TOOL_MISSING, EVENT_BUS_UNAVAILABLE while the runtime's tables are not there */
  async database(): Promise<StoreDatabase> {
    const database = this.#database
    await this.#opened()
    return database
  }

  get #transact(): Transact {
    if (this.#metered !== null) return this.#metered
    const database = this.#database
    const transaction: StoreDatabase['transaction'] = (...args) => database.transaction(...args)
    this.#metered = this.#toolbox.instrument('db', { transaction })
    return this.#metered
  }

  get #database(): StoreDatabase {
    const database = storeDatabaseOf(this.#toolbox.get('db'))
    if (database !== null) return database
    throw new HeddleError('TOOL_MISSING', 'Missing tool: db')
  }
}

const HANDLED =
  'INSERT INTO heddle_inbox (event_id, grp, at_ms) VALUES ($1, $2, $3) ON CONFLICT (event_id, grp) DO NOTHING'

/** Longest pause between two looks for rows whose time is up, milliseconds. */
const TRIM_EVERY_MS = 600_000
/** Rows of one DELETE: it holds up other writes. */
const PAGE_ROWS = 256
/** Hexadecimal digits of the time in the id of an event. */
const TIME_DIGITS = 12

/**
 * Removes from now on what is too old to be asked for again. One lane of each process does it; what several do at a time does no harm.
 * @param inboxKeepMs EVENT_BUS_INBOX_KEEP_MS
 * @returns ends it
 */
export function keepTrimmed(
  transactions: PluginTransactions,
  inboxKeepMs: number,
  log: (message: string) => void,
): () => void {
  let isTrimming = false
  const trim = async (): Promise<void> => {
    if (isTrimming) return
    isTrimming = true
    try {
      const database = await transactions.database()
      await trimInbox(database, Date.now() - inboxKeepMs)
      await dropExpired(database, Date.now())
    } catch (error) {
      log(`Old rows of heddle_inbox and heddle_idempotency were not removed, it is tried again: ${messageOf(error)}`)
    } finally {
      isTrimming = false
    }
  }
  const timer = setInterval(() => void trim(), Math.min(TRIM_EVERY_MS, inboxKeepMs / 4)).unref()
  return () => clearInterval(timer)
}

/**
 * Removes rows of events that were published and handled before a time. One that is still in the store, or a dead letter, is kept, however old
 * it is: it may be delivered again.
 */
async function trimInbox(database: StoreDatabase, beforeMs: number): Promise<void> {
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
const STORED =
  'SELECT event_id AS id FROM heddle_delivery WHERE event_id < $1 UNION SELECT event_id FROM heddle_dead WHERE event_id < $1'
const DROP_EXPIRED = `DELETE FROM heddle_idempotency WHERE expires_ms <= $1 AND (scope, key) IN
  (SELECT scope, key FROM heddle_idempotency WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT ${PAGE_ROWS})`
