// Counts and lists the stored deliveries of subscribers, each by an index.

import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { DeliveryPageOptions, QueuedDelivery } from '../../contracts/event-bus.ts'
import { ownTransaction, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { type EventColumns, frameOf, keyColumnOf, keyIn } from '../../runtime/event-store/event-columns.ts'
import { SLOTS } from '../../runtime/event-store/server-tables.ts'
import { splitKeys } from '../../runtime/events/publication.ts'

/** Rows that are counted for a queue, and for all queues together. */
const COUNTED_MAX = 10_000
const COUNTED_IN_ALL = 200_000
const COUNTED_MIN = 100
/** Rows that one call looks at for what no index has. */
const EXAMINED_MAX = 5000

const ORDER = 'coalesce(d.place, d.seq)'
/** Numbers in a parameter that is a JSON array. */
const NUMBERS = {
  sqlite: (param: string): string => `(SELECT value FROM json_each(${param}))`,
  postgres: (param: string): string =>
    `(SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(${param} AS json)))`,
} as const
const CONTAINS = { sqlite: 'instr', postgres: 'strpos' } as const

/** A queue as its rows show it. */
export interface StoredQueue {
  readonly event: string
  readonly group: string
  /** A process has the subscriber. */
  readonly isElsewhere: boolean
  /** Up to `counted` + 1 each. */
  readonly ready: number
  /** Of the rows that wait for a time, those between two attempts too. */
  readonly due: number
  readonly retrying: number
  readonly blockedKeys: number
  /** The first one that no thread has. */
  readonly oldest: { readonly id: string; readonly seq: number } | null
}

export interface StoredQueues {
  readonly queues: StoredQueue[]
  /** Rows up to which each was counted. */
  readonly counted: number
  /** Dead letters, by event and group. */
  readonly dead: { readonly event: string; readonly group: string; readonly count: number }[]
}

/**
 * What a queue has changes faster than the server's statistics, and by them it would read all of a long one, or compile the statement for
 * longer than it runs.
 */
const BY_INDEX =
  "SELECT set_config('jit', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)"

/** Where statements read by an index alone. */
interface IndexReader extends Pick<Queryable, 'query' | 'queryOne'> {
  readonly dialect: StoreDatabase['dialect']
}

function byIndex<T>(db: StoreDatabase, read: (from: IndexReader) => Promise<T>): Promise<T> {
  if (db.dialect === 'sqlite') return read(db)
  return ownTransaction(db, async (tx) => {
    await tx.query(BY_INDEX)
    return read({ dialect: db.dialect, query: (...of) => tx.query(...of), queryOne: (...of) => tx.queryOne(...of) })
  })
}

/** @param running numbers of rows that threads have */
export const readQueues = (db: StoreDatabase, running: readonly number[]): Promise<StoredQueues> =>
  byIndex(db, (from) => queuesIn(from, running))

async function queuesIn(db: IndexReader, running: readonly number[]): Promise<StoredQueues> {
  const isServer = db.dialect === 'postgres'
  const total = Number((await db.queryOne<{ n: number }>('SELECT count(*) AS n FROM heddle_group'))!.n)
  const counted = Math.max(COUNTED_MIN, Math.min(COUNTED_MAX, Math.floor(COUNTED_IN_ALL / Math.max(1, total))))
  const countOf = (from: string): string =>
    `(SELECT count(*) FROM (SELECT 1 AS one ${from} LIMIT ${counted + 1}) AS counted)`
  const rows = await db.query<{
    event: string
    grp: string
    is_elsewhere: boolean | number
    ready: number
    due: number
    retrying: number
    blocked: number
    oldest: string | null
  }>(
    `SELECT g.event, g.grp, ${isServer ? 'EXISTS (SELECT 1 FROM heddle_member_group AS m WHERE m.grp = g.id) OR g.member > 0' : '0'} AS is_elsewhere,
       ${countOf('FROM heddle_delivery AS d WHERE d.grp = g.id AND d.due_ms = 0')} AS ready,
       ${countOf('FROM heddle_delivery AS d WHERE d.grp = g.id AND d.due_ms > 0')} AS due,
       ${countOf('FROM heddle_delivery AS d WHERE d.grp = g.id AND d.due_ms > 0 AND d.attempt > 1')} AS retrying,
       ${countOf('FROM heddle_parked AS p WHERE p.grp = g.id GROUP BY p.key')} AS blocked,
       (SELECT CAST(d.seq AS text) || ' ' || d.event_id FROM heddle_delivery AS d
         WHERE d.grp = g.id AND d.due_ms = 0 AND d.seq NOT IN ${NUMBERS[db.dialect]('$1')} ORDER BY ${ORDER} LIMIT 1) AS oldest
     FROM heddle_group AS g WHERE g.kind <> 'temporary'`,
    [JSON.stringify(running)],
  )
  const dead = await db.query<{ event: string; grp: string; count: number }>(
    "SELECT event, grp, count(*) AS count FROM heddle_dead WHERE replay = '' GROUP BY event, grp",
  )
  return {
    counted,
    queues: rows.map((row) => ({
      event: row.event,
      group: row.grp,
      isElsewhere: Boolean(row.is_elsewhere),
      ready: Number(row.ready),
      due: Number(row.due),
      retrying: Number(row.retrying),
      blockedKeys: Number(row.blocked),
      oldest: row.oldest === null ? null : oldestIn(row.oldest),
    })),
    dead: dead.map(({ event, grp, count }) => ({ event, group: grp, count: Number(count) })),
  }
}

function oldestIn(text: string): { id: string; seq: number } {
  const [seq, id] = text.split(' ') as [string, string]
  return { id, seq: Number(seq) }
}

// ── pages ───────────────────────────────────────────────────────────────────

interface Row extends EventColumns {
  place: number
  due_ms: number
  retry_ms: number
  attempt: number
  error: string
  is_blocked: boolean | number
}

/** A delivery, its row and its place in the list. */
export interface ListedRow {
  readonly seq: number
  readonly cursor: string
  readonly delivery: QueuedDelivery
  readonly payload: string
}

export interface RowPage {
  readonly rows: ListedRow[]
  readonly next: string | null
}

const COLUMNS = `d.seq, ${ORDER} AS place, d.event_id AS id, d.event, d.envelope, d.payload, d.key, d.due_ms, d.retry_ms, d.attempt, d.error,
  d.key IS NOT NULL AND EXISTS (SELECT 1 FROM heddle_parked AS p WHERE p.grp = d.grp AND p.key = d.key) AS is_blocked`

export interface RowsWanted extends Omit<DeliveryPageOptions, 'state'> {
  state: Exclude<QueuedDelivery['state'], 'running'>
  limit: number
  /** Rows that threads have: they are left out. */
  running: readonly number[]
}

const groupsOf = async (db: IndexReader, event: string, group: string): Promise<number[]> =>
  (
    await db.query<{ id: number }>(
      "SELECT id FROM heddle_group WHERE event = $1 AND grp = $2 AND kind <> 'temporary'",
      [event, group],
    )
  ).map(({ id }) => Number(id))

/** A page of one queue. Of a broadcast on a server each process has rows of its own: they follow each other. */
export const readPage = (db: StoreDatabase, wanted: RowsWanted): Promise<RowPage> =>
  byIndex(db, (from) => pageIn(from, wanted))

async function pageIn(db: IndexReader, wanted: RowsWanted): Promise<RowPage> {
  const groups = (await groupsOf(db, wanted.event, wanted.subscriber)).sort((a, b) => a - b)
  const [from, ...place] = (wanted.after ?? '').split('.')
  const rows: ListedRow[] = []
  for (const group of groups) {
    if (group < Number(from)) continue
    const after = group === Number(from) ? place.map(Number) : []
    const page = await readGroup(db, group, { ...wanted, limit: wanted.limit - rows.length }, after)
    rows.push(...page.rows)
    if (page.next !== null) return { rows, next: page.next }
    if (rows.length === wanted.limit)
      return { rows, next: group === groups.at(-1) ? null : `${group}.${Number.MAX_SAFE_INTEGER}.0` }
  }
  return { rows, next: null }
}

/** @param after its place, or its time and its number */
async function readGroup(
  db: IndexReader,
  group: number,
  { subscriber, state, key, id, search, limit, running }: RowsWanted,
  after: readonly number[],
): Promise<RowPage> {
  const isDue = state === 'later' || state === 'retrying'
  const params: SqlValue[] = [group, after[0] ?? 0, ...(isDue ? [after[1] ?? 0] : [])]
  const param = (value: SqlValue): string => `$${params.push(value)}`
  const inside = [isDue ? 'd.due_ms > 0 AND (d.due_ms, d.seq) > ($2, $3)' : `d.due_ms = 0 AND ${ORDER} > $2`]
  if (state === 'retrying') inside.push('d.attempt > 1')
  if (key !== undefined) inside.push(`d.key = ${param(keyColumnOf(key)!)}`)
  if (id !== undefined) inside.push(`d.event_id = ${param(id)}`)
  const outside: string[] = []
  if (search !== undefined) outside.push(`${CONTAINS[db.dialect]}(found.payload, ${param(search)}) > 0`)
  if (state === 'blocked') outside.push(db.dialect === 'sqlite' ? 'found.is_blocked = 1' : 'found.is_blocked')
  if (!isDue && running.length > 0)
    outside.push(`found.seq NOT IN ${NUMBERS[db.dialect](param(JSON.stringify(running)))}`)
  const isSearched = search !== undefined || state === 'blocked'
  // Rows that threads have may stand before the others.
  const examined = isSearched ? EXAMINED_MAX : limit + 1 + running.length
  const order = isDue ? 'due_ms, seq' : 'place'
  const where = inside.join(' AND ')
  const within = (columns: string): string =>
    state === 'later' && db.dialect === 'postgres'
      ? // Its index has the slot before the time.
        `SELECT one.* FROM generate_series(0, ${SLOTS - 1}) AS s (slot) CROSS JOIN LATERAL (SELECT ${columns} FROM heddle_delivery AS d
           WHERE d.grp = $1 AND d.slot = s.slot AND ${where} ORDER BY d.due_ms, d.seq LIMIT ${examined}) AS one ORDER BY one.due_ms, one.seq LIMIT ${examined}`
      : `SELECT ${columns} FROM heddle_delivery AS d WHERE d.grp = $1 AND ${where} ORDER BY ${isDue ? 'd.due_ms, d.seq' : ORDER} LIMIT ${examined}`
  const found = await db.query<Row & Record<string, SqlValue>>(
    `SELECT * FROM (${within(COLUMNS)}) AS found${outside.length === 0 ? '' : ` WHERE ${outside.join(' AND ')}`} ORDER BY ${order} LIMIT ${limit + 1}`,
    params,
  )
  const cursorOf = (row: Pick<Row, 'seq' | 'place' | 'due_ms'>): string =>
    isDue ? `${group}.${Number(row.due_ms)}.${Number(row.seq)}` : `${group}.${Number(row.place)}`
  const rows = found.slice(0, limit).map((row) => ({
    seq: Number(row.seq),
    cursor: cursorOf(row),
    delivery: deliveryOf(row, subscriber),
    payload: row.payload,
  }))
  if (found.length > limit) return { rows, next: rows.at(-1)!.cursor }
  if (!isSearched) return { rows, next: null }
  const looked = params.slice(0, params.length - outsideParams(search, !isDue && running.length > 0))
  const last = await db.query<Pick<Row, 'seq' | 'place' | 'due_ms'> & Record<string, SqlValue>>(
    `SELECT * FROM (${within(`d.seq, d.due_ms, ${ORDER} AS place`)}) AS found ORDER BY ${order} LIMIT 1 OFFSET ${EXAMINED_MAX - 1}`,
    looked,
  )
  return { rows, next: last.length === 0 ? null : cursorOf(last[0]!) }
}

/** Number of the parameters behind those of the range. */
const outsideParams = (search: string | undefined, hasRunning: boolean): number =>
  Number(search !== undefined) + Number(hasRunning)

/** Rows of one queue by their numbers. */
export async function readRows(db: StoreDatabase, seqs: readonly number[], subscriber: string): Promise<ListedRow[]> {
  const rows = await db.query<Row & Record<string, SqlValue>>(
    `SELECT ${COLUMNS} FROM heddle_delivery AS d WHERE d.seq IN ${NUMBERS[db.dialect]('$1')}`,
    [JSON.stringify(seqs)],
  )
  return rows.map((row) => ({
    seq: Number(row.seq),
    cursor: '',
    delivery: deliveryOf(row, subscriber),
    payload: row.payload,
  }))
}

function deliveryOf(row: Row, subscriber: string): QueuedDelivery {
  const dueMs = Number(row.due_ms) || Number(row.retry_ms)
  const state =
    Number(row.due_ms) === 0 ? (row.is_blocked ? 'blocked' : 'waiting') : Number(row.attempt) > 1 ? 'retrying' : 'later'
  return {
    ...recordOf(row),
    subscriber,
    state,
    key: keyIn(row.key),
    attempt: Number(row.attempt),
    ...(dueMs > 0 ? { at: new Date(dueMs).toISOString() } : {}),
    ...(row.error === '' ? {} : { error: row.error }),
  }
}

/** Others may have written the row: then it has no more than its name. */
function recordOf(
  row: Row,
): Pick<QueuedDelivery, 'id' | 'parent_id' | 'event' | 'emitter' | 'payload_keys' | 'timestamp' | 'request_id'> {
  const { id, event } = row
  try {
    const { parentId, emitter, payloadKeys, timestampMs, requestId } = frameOf({ ...row, payload: '', key: null })
    const timestamp = new Date(timestampMs).toISOString()
    return {
      id,
      parent_id: parentId,
      event,
      emitter,
      payload_keys: splitKeys(payloadKeys),
      timestamp,
      request_id: requestId,
    }
  } catch {
    return {
      id,
      parent_id: null,
      event,
      emitter: '',
      payload_keys: [],
      timestamp: new Date(0).toISOString(),
      request_id: null,
    }
  }
}

// ── run now ─────────────────────────────────────────────────────────────────

/**
 * Rows of an event that wait for a time are due.
 * @param group null: of all groups
 * @returns their numbers
 */
export async function makeDue(db: StoreDatabase, id: string, group: string | null): Promise<number[]> {
  const of = group === null ? '' : ' AND grp IN (SELECT id FROM heddle_group WHERE grp = $2)'
  const { rows } = await db.execute<{ seq: number }>(
    // Odd: a date that has passed, which stays when somebody sets the clock.
    `UPDATE heddle_delivery SET due_ms = CASE WHEN due_ms > 0 THEN 1 ELSE 0 END, retry_ms = 0
     WHERE event_id = $1 AND (due_ms > 0 OR retry_ms > 0)${of} RETURNING seq`,
    group === null ? [id] : [id, group],
  )
  return rows.map(({ seq }) => Number(seq))
}
