import type BetterSqlite3 from 'better-sqlite3'
import type { HandlerFigures, WorkReport, WorkSpan } from '../../contracts/requests.ts'

/** Pieces of work of each kind that are looked at: the newest. */
const ROWS_MAX = 50_000

interface Row {
  kind: HandlerFigures['kind']
  plugin: string
  name: string
  at_ms: number
  ms: number
  failed: number
}

const REQUESTS = `
SELECT kind, plugin, CASE kind WHEN 'job' THEN route ELSE method || ' ' || route END AS name, at_ms, ms,
  CASE kind WHEN 'job' THEN failed ELSE coalesce(status, 0) >= 500 END AS failed
FROM request WHERE at_ms >= @sinceMs AND at_ms < @untilMs AND ms IS NOT NULL AND plugin <> ''
ORDER BY at_ms DESC LIMIT ${ROWS_MAX}`

/** The key words stand in the order in which the work was written. */
const ATTEMPTS = `
SELECT 'event' AS kind, json ->> '$.plugin' AS plugin, json ->> '$.event' AS name, at_ms, json ->> '$.ms' AS ms,
  json -> '$.error' IS NOT NULL AS failed
FROM part WHERE at_ms >= @sinceMs AND at_ms < @untilMs AND json LIKE '{"type":"work","kind":"event"%'
ORDER BY at_ms DESC LIMIT ${ROWS_MAX}`

/** What each handler did in a span of time. Of much work only the newest is counted: the report says since when. */
export function handlerFigures(database: BetterSqlite3.Database, { sinceMs, untilMs }: WorkSpan): WorkReport {
  const handlers = new Map<string, { of: Row; durations: number[]; errors: number }>()
  let fromMs = sinceMs
  for (const statement of [REQUESTS, ATTEMPTS]) {
    const rows = database.prepare(statement).all({ sinceMs, untilMs }) as Row[]
    if (rows.length === ROWS_MAX) fromMs = Math.max(fromMs, rows.at(-1)!.at_ms)
    for (const row of rows) {
      const key = `${row.kind} ${row.plugin} ${row.name}`
      let handler = handlers.get(key)
      if (handler === undefined) {
        handler = { of: row, durations: [], errors: 0 }
        handlers.set(key, handler)
      }
      handler.durations.push(row.ms)
      handler.errors += row.failed
    }
  }
  return { from_ms: fromMs, handlers: [...handlers.values()].map(figuresOf) }
}

function figuresOf({ of, durations, errors }: { of: Row; durations: number[]; errors: number }): HandlerFigures {
  const sorted = Float64Array.from(durations).sort()
  const percentile = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1]!
  return {
    plugin: of.plugin,
    kind: of.kind,
    name: of.name,
    calls: sorted.length,
    errors,
    p50_ms: percentile(0.5),
    p95_ms: percentile(0.95),
    p99_ms: percentile(0.99),
  }
}
