// Transactions that the runtime begins for plugins.

import type { Queryable, TransactionCompanion, Tx } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { type LogDatabase, logDatabaseOf } from '../event-log/log-database.ts'

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

/** What `heddle_inbox` knows an event by, and whose it is. */
interface HandledEvent {
  eventId: string
  /** The group that gets the event once. */
  group: string
  plugin: string
  /** The subscriber's function. */
  handler: unknown
}

type Transact = Pick<LogDatabase, 'transaction'>

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
  run<T>(plugin: string, handler: unknown, work: PluginWork<T>): Promise<T> {
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
    )
  }

  /**
   * Runs a subscriber in a transaction, once for an event: the row that says so is written by that transaction. It is written first, so that of
   * two deliveries at a time one waits for the other, and no statement has to ask for it. It may be run again, as the function of any transaction.
   * @returns what `handle` has returned; undefined when it has not run
   */
  async handleOnce({ eventId, group, plugin, handler }: HandledEvent, handle: (tx: Tx) => unknown): Promise<unknown> {
    // Where the tables are missing, all of the transaction would fail.
    await this.database()
    return this.run(plugin, handler, async (tx, own) => {
      const { rowCount } = await own.execute(HANDLED, [eventId, group, Date.now()])
      return rowCount === 0 ? undefined : await handle(tx)
    })
  }

  /** For statements of the runtime by themselves. @throws TOOL_MISSING, EVENT_BUS_UNAVAILABLE while the runtime's tables are not there */
  async database(): Promise<LogDatabase> {
    const database = this.#database
    await this.#opened()
    return database
  }

  get #transact(): Transact {
    if (this.#metered !== null) return this.#metered
    const database = this.#database
    const transaction: LogDatabase['transaction'] = (...args) => database.transaction(...args)
    this.#metered = this.#toolbox.instrument('db', { transaction })
    return this.#metered
  }

  get #database(): LogDatabase {
    const database = logDatabaseOf(this.#toolbox.get('db'))
    if (database !== null) return database
    throw new HeddleError('TOOL_MISSING', 'Missing tool: db')
  }
}

const HANDLED =
  'INSERT INTO heddle_inbox (event_id, grp, at_ms) VALUES ($1, $2, $3) ON CONFLICT (event_id, grp) DO NOTHING'
