import type { Tx } from '../../contracts/db.ts'
import type { PluginTransactions } from './plugin-transactions.ts'

/** What `heddle_inbox` knows an event by. */
export interface InboxEntry {
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
