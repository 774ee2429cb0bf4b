// What the database knows of events that are followed.
import type { FollowState } from '../../contracts/event-bus.ts'
import { appClockMs, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { keyIn, lineageIn } from '../../runtime/event-store/event-columns.ts'
import { progressIn } from '../../runtime/event-store/report-rows.ts'
import { uniqueIn } from '../../runtime/event-store/unique-rows.ts'
import type { Meant } from '../../runtime/events/cancelling.ts'

type Subscriber = FollowState['subscribers'][number]

/** Ids are a list in JSON. */
const LIST = {
  sqlite: 'SELECT value FROM json_each($1)',
  postgres: 'SELECT json_array_elements_text($1::json)',
} as const
/** Rows before one that waits, at most. */
const PLACES = 1000
/** A handler that is at work has reported in this time, as far as is known, milliseconds. */
const SILENT_MS = 60_000
/** Groups whose places are read at a time. */
const PLACED_GROUPS = 16

interface Row {
  event_id: string
  event: string
  envelope: string
  key: string | null
  uniq: string | null
  grp: number
  name: string | null
  seq: number
  due_ms: number
  retry_ms: number
  attempt: number
  error: string
}

interface ReportRow {
  event_id: string
  grp: string
  attempt: number
  generation: number
  progress: string
  result: string | null
  last_n: number
  outcome: 'done' | 'cancelled' | null
  age_ms: number
}

interface DeadRow {
  event_id: string
  grp: string
  attempts: number
  error: string
}

export interface Found {
  /** By event and subscriber. */
  readonly subscribers: Map<string, Map<string, Subscriber>>
  /** Of those with rows: by what they may be taken back. */
  readonly meant: Map<string, Meant & { seq: number }>
}

/** How it stands with events. Whether a handler is at work is not known here. */
export async function readFollowed(db: StoreDatabase, ids: readonly string[]): Promise<Found> {
  const list = LIST[db.dialect]
  const params = [JSON.stringify(ids)]
  // First: what has left the table had its result or its dead letter before.
  const rows = await db.query<Row & Record<string, never>>(
    `SELECT d.event_id, d.event, d.envelope, d.key, d.uniq, d.grp, g.grp AS name, d.seq, d.due_ms, d.retry_ms, d.attempt, d.error
     FROM heddle_delivery AS d LEFT JOIN heddle_group AS g ON g.id = d.grp WHERE d.event_id IN (${list})`,
    params,
  )
  const reports = await db.query<ReportRow & Record<string, never>>(
    `SELECT event_id, grp, attempt, generation, progress, result, last_n, outcome, ${appClockMs(db.dialect)} - at_ms AS age_ms FROM heddle_report WHERE event_id IN (${list})`,
    params,
  )
  const dead = await db.query<DeadRow & Record<string, never>>(
    `SELECT event_id, grp, attempts, error FROM heddle_dead WHERE replay = '' AND event_id IN (${list})`,
    params,
  )
  const places = await placesOf(db, rows)
  const found: Found['subscribers'] = new Map(ids.map((id) => [id, new Map()]))
  for (const report of reports) found.get(report.event_id)!.set(report.grp, ofReport(report))
  for (const { event_id, grp, attempts, error } of dead)
    found.get(event_id)!.set(grp, {
      ...(found.get(event_id)!.get(grp) ?? { lastN: 0 }),
      subscriber: grp,
      state: 'dead',
      attempt: Number(attempts),
      error,
    })
  for (const row of rows) {
    const name = row.name ?? ''
    const report = found.get(row.event_id)!.get(name)
    found.get(row.event_id)!.set(name, waiting(row, name, report, places))
  }
  const meant = new Map(
    rows.map(({ event_id, event, envelope, key, uniq, seq }) => [
      event_id,
      { id: event_id, event, ...lineageIn(envelope), key: keyIn(key), unique: uniqueIn(uniq), seq: Number(seq) },
    ]),
  )
  return { subscribers: found, meant }
}

function ofReport({ grp, attempt, generation, progress, result, last_n, outcome, age_ms }: ReportRow): Subscriber {
  // Without a row, and without an end: something else than the event store carries it, or it was deleted.
  const state = outcome ?? (Number(age_ms) < SILENT_MS ? 'running' : 'cancelled')
  return {
    subscriber: grp,
    state,
    attempt: Number(attempt),
    // Who takes it back counts once, and begins nothing.
    run: Number(generation) - (outcome === 'cancelled' ? 1 : 0),
    ...progressIn(progress),
    ...(outcome === 'done' && result !== null ? { result: JSON.parse(result) as unknown } : {}),
    lastN: Number(last_n),
  }
}

function waiting(row: Row, name: string, report: Subscriber | undefined, places: Map<number, number>): Subscriber {
  const { state: _, ...reported } = report ?? ({ lastN: 0 } as Subscriber)
  const atMs = Number(row.due_ms) || Number(row.retry_ms)
  // Another process has it: its handler has reported in this attempt.
  if (atMs === 0 && report !== undefined && report.attempt === Number(row.attempt))
    return { ...reported, subscriber: name, state: 'running', attempt: report.attempt }
  return {
    ...reported,
    subscriber: name,
    state: 'waiting',
    attempt: Number(row.attempt),
    ...(atMs > 0 ? { at: new Date(atMs).toISOString() } : { place: places.get(Number(row.seq)) ?? null }),
    ...(row.error === '' ? {} : { error: row.error }),
  }
}

/** How many rows of their groups go before ready rows. */
async function placesOf(db: StoreDatabase, rows: readonly Row[]): Promise<Map<number, number>> {
  const groups = new Set(rows.flatMap(({ grp, due_ms }) => (Number(due_ms) === 0 && grp > 0 ? [Number(grp)] : [])))
  const places = new Map<number, number>()
  for (const group of [...groups].slice(0, PLACED_GROUPS)) {
    const first = await db.query<{ seq: number }>(
      `SELECT seq FROM heddle_delivery WHERE grp = $1 AND due_ms = 0 ORDER BY coalesce(place, seq) LIMIT ${PLACES + 1}`,
      [group],
    )
    for (const [place, { seq }] of first.entries()) places.set(Number(seq), place)
  }
  return places
}
