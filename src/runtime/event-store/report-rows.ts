// What handlers report of their events, and what they return: rows that outlive the delivery.
import type { Queryable } from '../../contracts/db.ts'
import { movedMs } from '../../core/schedule/moved-time.ts'
import { appClockMs, type StoreDatabase } from './database.ts'

type Dialect = StoreDatabase['dialect']

/**
 * - `heddle_report`: one row for an event and a subscriber that has reported, or whose result is kept. `grp`: the group. `generation` grows with each
 *   attempt that reports: what an earlier one writes late is skipped. `outcome`: `done` or `cancelled`; null: it has not ended. `progress`: JSON
 *   `[done, of, note]`; empty: none. `result`: JSON; null: none. `last_n`: number of the last chunk. Times are milliseconds since the epoch by the
 *   clock of the database; `until_ms`: when it is deleted; 0: the event has not ended.
 * - `heddle_chunk`: what `emit` was given, as JSON. `n` begins with 1 and goes on over attempts; those of earlier attempts are deleted.
 */
export const REPORT_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_report (
    event_id TEXT NOT NULL, grp TEXT NOT NULL, attempt INTEGER NOT NULL, generation BIGINT NOT NULL, outcome TEXT, progress TEXT NOT NULL DEFAULT '', result TEXT,
    last_n BIGINT NOT NULL DEFAULT 0, at_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (event_id, grp))`,
  `CREATE TABLE IF NOT EXISTS heddle_chunk (
    event_id TEXT NOT NULL, grp TEXT NOT NULL, n BIGINT NOT NULL, attempt INTEGER NOT NULL, chunk TEXT NOT NULL, PRIMARY KEY (event_id, grp, n))`,
  'CREATE INDEX IF NOT EXISTS heddle_report_until ON heddle_report (until_ms, at_ms)',
]

/** Chunks kept of an event and a subscriber, and the characters of them all. */
export const CHUNKS_MAX = 1000
export const CHUNKS_MAX_LENGTH = 1 << 20
/** Reports of events that have not ended are kept so long after the last one: an event may be put off for 30 days, milliseconds. */
const LOST_MS = 32 * 86_400_000
/** Reports of events that were taken back are kept so long, milliseconds. */
const CANCELLED_KEPT_MS = 3_600_000

export interface ReportPlace {
  readonly eventId: string
  readonly group: string
  readonly attempt: number
}

export interface ReportUpdate {
  progress: string
  lastN: number
  generation: number
  /** Only when it has ended. */
  result: string | null
  /** How long it is kept after the end; 0: it has not ended. */
  keptMs: number
}

const upsertText = (
  dialect: Dialect,
): string => `INSERT INTO heddle_report (event_id, grp, attempt, progress, result, last_n, generation, outcome, at_ms, until_ms)
  VALUES ($1, $2, $3, $4, $5, $6, $8, CASE WHEN CAST($7 AS BIGINT) > 0 THEN 'done' END, ${appClockMs(dialect)}, CASE WHEN CAST($7 AS BIGINT) = 0 THEN 0 ELSE ${appClockMs(dialect)} + CAST($7 AS BIGINT) END)
  ON CONFLICT (event_id, grp) DO UPDATE SET attempt = excluded.attempt, progress = excluded.progress, result = excluded.result,
    last_n = excluded.last_n, generation = excluded.generation, outcome = excluded.outcome, at_ms = excluded.at_ms, until_ms = excluded.until_ms
  WHERE heddle_report.generation <= excluded.generation`
const UPSERT = { sqlite: upsertText('sqlite'), postgres: upsertText('postgres') }

/** @returns false if a later handler has begun: nothing was written */
export async function writeReport(
  to: Queryable,
  dialect: Dialect,
  { eventId, group, attempt }: ReportPlace,
  { progress, lastN, generation, result, keptMs }: ReportUpdate,
): Promise<boolean> {
  const sql = movedMs() === 0 ? UPSERT[dialect] : upsertText(dialect)
  const params = [eventId, group, attempt, progress, result, lastN, keptMs, generation]
  return (await to.execute(sql, params)).rowCount > 0
}

/**
 * Number of the last chunk of all handlers so far, and their generation. When a new one begins, the chunks of earlier ones are deleted.
 * @param generation of the handler; null: it has none yet
 */
export async function beginChunks(
  tx: Queryable,
  { eventId, group, attempt }: ReportPlace,
  generation: number | null,
): Promise<{ lastN: number; generation: number }> {
  const row = await tx.queryOne<{ last_n: number; generation: number }>(
    'SELECT last_n, generation FROM heddle_report WHERE event_id = $1 AND grp = $2',
    [eventId, group],
  )
  const last = Number(row?.generation ?? 0)
  if (row !== null && (generation === null || last < generation))
    await tx.execute('DELETE FROM heddle_chunk WHERE event_id = $1 AND grp = $2 AND attempt <= $3', [
      eventId,
      group,
      attempt,
    ])
  return { lastN: Number(row?.last_n ?? 0), generation: last }
}

/** Events that were taken back are so for those who follow them. */
export async function cancelReports(tx: Queryable, dialect: Dialect, eventIds: readonly string[]): Promise<void> {
  const list = dialect === 'sqlite' ? 'SELECT value FROM json_each($1)' : 'SELECT json_array_elements_text($1::json)'
  await tx.execute(
    `UPDATE heddle_report SET outcome = 'cancelled', generation = generation + 1, until_ms = ${appClockMs(dialect)} + ${CANCELLED_KEPT_MS}
     WHERE outcome IS NULL AND event_id IN (${list})`,
    [JSON.stringify(eventIds)],
  )
}

/** @param first number of the first of these chunks @param keptFrom chunks with lower numbers are deleted */
export async function writeChunks(
  tx: Queryable,
  { eventId, group, attempt }: ReportPlace,
  chunks: readonly string[],
  first: number,
  keptFrom: number,
): Promise<void> {
  for (const [at, chunk] of chunks.entries())
    await tx.execute('INSERT INTO heddle_chunk (event_id, grp, n, attempt, chunk) VALUES ($1, $2, $3, $4, $5)', [
      eventId,
      group,
      first + at,
      attempt,
      chunk,
    ])
  if (keptFrom > 1)
    await tx.execute('DELETE FROM heddle_chunk WHERE event_id = $1 AND grp = $2 AND n < $3', [eventId, group, keptFrom])
}

/** The next chunks behind a number. */
export async function readChunks(
  from: Queryable,
  eventId: string,
  group: string,
  after: number,
  limit: number,
): Promise<{ n: number; chunk: string }[]> {
  const rows = await from.query<{ n: number; chunk: string }>(
    `SELECT n, chunk FROM heddle_chunk WHERE event_id = $1 AND grp = $2 AND n > $3 ORDER BY n LIMIT +$4`,
    [eventId, group, after, limit],
  )
  return rows.map(({ n, chunk }) => ({ n: Number(n), chunk }))
}

/** The last progress that a subscriber has told of some events. */
export async function readProgress(
  db: StoreDatabase,
  group: string,
  ids: readonly string[],
): Promise<Map<string, { attempt: number; progress: { done?: number; of?: number; note?: string } }>> {
  const list = db.dialect === 'sqlite' ? 'SELECT value FROM json_each($2)' : 'SELECT json_array_elements_text($2::json)'
  const rows = await db.query<{ event_id: string; attempt: number; progress: string }>(
    `SELECT event_id, attempt, progress FROM heddle_report WHERE grp = $1 AND event_id IN (${list})`,
    [group, JSON.stringify(ids)],
  )
  return new Map(
    rows.map(({ event_id, attempt, progress }) => [
      event_id,
      { attempt: Number(attempt), progress: progressIn(progress) },
    ]),
  )
}

/** @param column JSON `[done, of, note]`; empty: none */
export function progressIn(column: string): { done?: number; of?: number; note?: string } {
  if (column === '') return {}
  const [done, of, note] = JSON.parse(column) as [number, number, string | null]
  return { done, of, ...(typeof note === 'string' ? { note } : {}) }
}

/** Deletes what is no longer kept. */
export async function pruneReports(tx: Queryable, dialect: Dialect): Promise<void> {
  const now = appClockMs(dialect)
  const isOver = `(until_ms > 0 AND until_ms < ${now}) OR (until_ms = 0 AND at_ms < ${now} - ${LOST_MS})`
  await tx.execute(
    `DELETE FROM heddle_chunk WHERE (event_id, grp) IN (SELECT event_id, grp FROM heddle_report WHERE ${isOver})`,
  )
  await tx.execute(`DELETE FROM heddle_report WHERE ${isOver}`)
}
