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

/** What this needs of its thread. */
export interface PluginTransactionsOptions {
  toolbox: {
    get(name: string): object | undefined
    /** Measures the calls of `target` as those of the tool. */
    instrument<T extends object>(name: string, target: T): T
  }
  /** Makes what goes with each run. @param plugin who publishes in it */
  accompany: (plugin: string) => TransactionCompanion
  /** Resolves when the runtime's tables are there. */
  opened: () => Promise<void>
}

type Transact = Pick<LogDatabase, 'transaction'>

/** Transactions of the tool `db` that the runtime begins for plugins. They count as calls of the tool, as those that plugins begin do. */
export class PluginTransactions {
  readonly #options: PluginTransactionsOptions
  #metered: Transact | null = null

  constructor(options: PluginTransactionsOptions) {
    this.#options = options
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
        companion = this.#options.accompany(plugin)
        return companion
      },
      handler,
    )
  }

  /** For statements of the runtime by themselves. @throws TOOL_MISSING, EVENT_BUS_UNAVAILABLE while the runtime's tables are not there */
  async database(): Promise<LogDatabase> {
    const database = this.#database
    await this.#options.opened()
    return database
  }

  get #transact(): Transact {
    if (this.#metered !== null) return this.#metered
    const database = this.#database
    const transaction: LogDatabase['transaction'] = (...args) => database.transaction(...args)
    this.#metered = this.#options.toolbox.instrument('db', { transaction })
    return this.#metered
  }

  get #database(): LogDatabase {
    const database = logDatabaseOf(this.#options.toolbox.get('db'))
    if (database !== null) return database
    throw new HeddleError('TOOL_MISSING', 'Missing tool: db')
  }
}
