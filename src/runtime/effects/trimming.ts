// The trimming of what is known of events that were handled, and of requests that were answered.
import type { Queryable } from '../../contracts/db.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { PluginTransactions } from './transactions.ts'

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
