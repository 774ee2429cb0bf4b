// Answers from the file of the history.
import type BetterSqlite3 from 'better-sqlite3'
import type {
  HandlerFigures,
  RequestDetail,
  RequestFilter,
  RequestPart,
  RequestSummary,
  WorkReport,
  WorkSpan,
} from '../contracts/requests.ts'
import { DEAD_MS, failureKindOf, rootFinder } from './store.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 1000
/** Parts of one request that are shown: the first ones. */
const PARTS_MAX = 1000

/** A request as the file has it. */
interface Row extends Omit<RequestSummary, 'duration_ms' | 'state' | 'failed' | 'began_with'> {
  ms: number | null
  failed: number
  run: string
  /** When its process gave its last sign of life. */
  seen_ms: number | null
}

const SELECT =
  "SELECT request.*, coalesce(run.replica, '') AS replica, nullif(run.release, '') AS release, run.seen_ms FROM request LEFT JOIN run ON run.id = request.run"

/** What comes by the clock and went well. */
const IS_NOISE = `(request.failed = 0 AND (request.kind = 'job' OR request.route LIKE '/system/%'
  OR (request.method IN ('GET', 'HEAD') AND request.path IN ('/health', '/healthz', '/livez', '/readyz', '/ping', '/metrics', '/favicon.ico'))
  OR request.path LIKE '/health/%'))`

/** All parts of a request: what names it, and what belongs to events that its parts have published. */
const PARTS = `
WITH RECURSIVE own (id) AS (
  SELECT id FROM part WHERE request_id = @id
  UNION
  SELECT part.id FROM own
  JOIN published ON published.part_id = own.id
  JOIN part ON part.event_id = published.event_id
)
SELECT part.json, run.replica FROM own JOIN part ON part.id = own.id LEFT JOIN run ON run.id = part.run
ORDER BY part.at_ms LIMIT ${PARTS_MAX}`

const TRACE_ID = /^[0-9a-f]{32}$/

/** Answers questions about what is kept. */
export class Questions {
  readonly #database: BetterSqlite3.Database
  readonly #rootOf: (eventId: string) => string | null

  constructor(database: BetterSqlite3.Database) {
    this.#database = database
    this.#rootOf = rootFinder(database)
  }

  answer(query: HistoryQuery): unknown {
    switch (query.kind) {
      case 'list':
        return this.#list(query.filter)
      case 'one':
        return this.#one(query.id)
      case 'figures':
        return handlerFigures(this.#database, query.span)
    }
  }

  #list(filter: RequestFilter): RequestSummary[] {
    const { where, values } = conditionsOf(filter)
    const limit = Math.min(LIMIT_MAX, Math.max(1, Math.trunc(numberIn(filter.limit) ?? LIMIT_DEFAULT)))
    const rows = this.#database
      .prepare(`${SELECT}${where === '' ? '' : ` WHERE ${where}`} ORDER BY request.at_ms DESC LIMIT ${limit}`)
      .all(values) as Row[]
    return this.#summaries(rows)
  }

  /** @returns null where nothing is kept of it */
  #one(id: string): RequestDetail | null {
    const row =
      this.#row(id) ?? this.#chosen(id) ?? this.#row(id.startsWith('evt_') ? this.#causeOf(id) : this.#firstOf(id))
    if (row === undefined) return null
    const [summary] = this.#summaries([row])
    const parts = this.#database.prepare(PARTS).all({ id: row.id }) as { json: string; replica: string | null }[]
    return { ...summary!, parts: parts.map(({ json, replica }) => partOf(json, replica, row.replica)) }
  }

  #summaries(rows: readonly Row[]): RequestSummary[] {
    const beganWith = this.#database.prepare('SELECT began_with FROM failure WHERE kind = ?').pluck()
    const known = new Map<string, string | null>()
    return rows.map((row) => {
      if (row.failed !== 1) return summaryOf(row, null)
      const kind = failureKindOf(row)
      if (!known.has(kind)) known.set(kind, (beganWith.get(kind) as string | null | undefined) ?? null)
      return summaryOf(row, known.get(kind)!)
    })
  }

  #row(id: string | null): Row | undefined {
    if (id === null) return undefined
    return this.#database.prepare(`${SELECT} WHERE request.id = ?`).get(id) as Row | undefined
  }

  /** The last request whose client has chosen this id. */
  #chosen(id: string): Row | undefined {
    return this.#database
      .prepare(`${SELECT} WHERE request.client_id = ? ORDER BY request.at_ms DESC LIMIT 1`)
      .get(id) as Row | undefined
  }

  /** The request, or the run of a job, that has caused an event. Where its publisher is not kept, what the event says of it. */
  #causeOf(eventId: string): string | null {
    return this.#rootOf(eventId) ?? this.#requestWhere('event_id', eventId)
  }

  /** The first request of a trace. */
  #firstOf(traceId: string): string | null {
    return TRACE_ID.test(traceId) ? this.#requestWhere('trace_id', traceId) : null
  }

  #requestWhere(column: 'trace_id' | 'event_id', value: string): string | null {
    const found = this.#database
      .prepare(`SELECT request_id FROM part WHERE ${column} = ? AND request_id IS NOT NULL ORDER BY at_ms LIMIT 1`)
      .get(value) as { request_id: string } | undefined
    return found?.request_id ?? null
  }
}

/** Says where it ran, if that was elsewhere. */
function partOf(json: string, replica: string | null, ofRequest: string): RequestPart {
  const part = JSON.parse(json) as RequestPart
  return replica === null || replica === ofRequest ? part : { ...part, replica }
}

function summaryOf({ ms, seen_ms: seenMs, run, ...row }: Row, beganWith: string | null): RequestSummary {
  const isEnded = ms !== null || (row.kind === 'request' && row.method === '')
  const isAlive = seenMs !== null && Date.now() - seenMs < DEAD_MS
  return {
    ...row,
    duration_ms: ms,
    began_with: beganWith,
    state: isEnded ? 'ended' : isAlive ? 'open' : 'unfinished',
    failed: row.failed === 1 || (!isEnded && !isAlive),
    error:
      row.error ??
      (isEnded || isAlive
        ? null
        : `The process ended before ${row.kind === 'job' ? 'the run did' : 'it was answered'}`),
  }
}

/** A plugin may have computed it wrongly: what is no number does not filter. */
const numberIn = (value: number | undefined): number | undefined => (Number.isFinite(value) ? value : undefined)

function conditionsOf(filter: RequestFilter): { where: string; values: Record<string, unknown> } {
  const { user, status, method, route, plugin, job, kind, noise, replica, text } = filter
  const [before, since, minMs] = [filter.before, filter.since, filter.min_ms].map(numberIn)
  const conditions: string[] = []
  const values: Record<string, unknown> = {}
  const add = (condition: string, name: string, value: unknown): void => {
    conditions.push(condition)
    values[name] = value
  }
  if (before !== undefined) add('request.at_ms < @before', 'before', before)
  if (since !== undefined) add('request.at_ms >= @since', 'since', since)
  if (method !== undefined) add('request.method = @method', 'method', method.toUpperCase())
  if (route !== undefined) add('(request.path LIKE @route OR request.route LIKE @route)', 'route', `%${route}%`)
  if (plugin !== undefined) add('request.plugin LIKE @plugin', 'plugin', `%${plugin.replaceAll('*', '%')}%`)
  if (job !== undefined) {
    // The name of a plugin has no slash.
    const at = job.indexOf('/')
    add("request.kind = 'job' AND request.plugin = @ofPlugin", 'ofPlugin', job.slice(0, at))
    add('request.route = @job', 'job', job.slice(at + 1))
  }
  if (kind !== undefined) add('request.kind = @kind', 'kind', kind)
  if (noise === 'without') conditions.push(`NOT ${IS_NOISE}`)
  if (noise === 'only') conditions.push(IS_NOISE)
  if (user !== undefined) add('request.user = @user', 'user', user)
  if (replica !== undefined) add('run.replica = @replica', 'replica', replica)
  if (minMs !== undefined) add('request.ms >= @minMs', 'minMs', minMs)
  if (text !== undefined && text !== '') {
    const inParts = 'EXISTS (SELECT 1 FROM part WHERE part.request_id = request.id AND part.json LIKE @text)'
    add(
      `(request.id LIKE @text OR request.client_id LIKE @text OR request.path LIKE @text OR request.error LIKE @text OR ${inParts})`,
      'text',
      `%${text}%`,
    )
  }
  const deadMs = Date.now() - DEAD_MS
  const isOpen = "request.ms IS NULL AND NOT (request.kind = 'request' AND request.method = '')"
  if (status === 'failed')
    add(`(request.failed = 1 OR (${isOpen} AND coalesce(run.seen_ms, 0) < @deadMs))`, 'deadMs', deadMs)
  else if (status === 'open') add(`${isOpen} AND run.seen_ms >= @deadMs`, 'deadMs', deadMs)
  else if (status === 'unfinished') add(`${isOpen} AND coalesce(run.seen_ms, 0) < @deadMs`, 'deadMs', deadMs)
  else if (status !== undefined && /^[1-5]xx$/.test(status))
    add('request.status / 100 = @class', 'class', Number(status[0]))
  else if (status !== undefined) add('request.status = @status', 'status', Number(status))
  return { where: conditions.join(' AND '), values }
}

/** A question to the history's thread. */
export type HistoryQuery =
  | { kind: 'list'; filter: RequestFilter }
  /** By the id of a request, a job's run or an event. */
  | { kind: 'one'; id: string }
  | { kind: 'figures'; span: WorkSpan }

/** Pieces of work of each kind that are looked at: the newest. */
const ROWS_MAX = 50_000

interface WorkRow {
  kind: HandlerFigures['kind']
  plugin: string
  name: string
  at_ms: number
  /** Null: its thread died before it ended. */
  ms: number | null
  failed: number
}

interface HandlerWork {
  of: WorkRow
  calls: number
  durations: number[]
  errors: number
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

/** Attempts that ended with their thread: of these there is no work. */
const ENDED_BY_DEATH = `
SELECT 'event' AS kind, step.value ->> '$.plugin' AS plugin, part.json ->> '$.event' AS name, part.at_ms, NULL AS ms, 1 AS failed
FROM part, json_each(part.json, '$.steps') AS step
WHERE part.at_ms >= @sinceMs AND part.at_ms < @untilMs AND part.json LIKE '{"type":"delivery"%'
  AND step.value ->> '$.name' = 'thread_death' AND step.value ->> '$.plugin' IS NOT NULL
ORDER BY part.at_ms DESC LIMIT ${ROWS_MAX}`

/** What each handler did in a span of time. Of much work only the newest is counted: the report says since when. */
function handlerFigures(database: BetterSqlite3.Database, { sinceMs, untilMs }: WorkSpan): WorkReport {
  const handlers = new Map<string, HandlerWork>()
  let fromMs = sinceMs
  for (const statement of [REQUESTS, ATTEMPTS, ENDED_BY_DEATH]) {
    const rows = database.prepare(statement).all({ sinceMs, untilMs }) as WorkRow[]
    if (rows.length === ROWS_MAX) fromMs = Math.max(fromMs, rows.at(-1)!.at_ms)
    for (const row of rows) {
      const key = `${row.kind} ${row.plugin} ${row.name}`
      let handler = handlers.get(key)
      if (handler === undefined) {
        handler = { of: row, calls: 0, durations: [], errors: 0 }
        handlers.set(key, handler)
      }
      handler.calls++
      if (row.ms !== null) handler.durations.push(row.ms)
      handler.errors += row.failed
    }
  }
  return { from_ms: fromMs, handlers: [...handlers.values()].map(figuresOf) }
}

function figuresOf({ of, calls, durations, errors }: HandlerWork): HandlerFigures {
  const sorted = Float64Array.from(durations).sort()
  const percentile = (share: number): number | null => sorted[Math.ceil(sorted.length * share) - 1] ?? null
  return {
    plugin: of.plugin,
    kind: of.kind,
    name: of.name,
    calls,
    errors,
    p50_ms: percentile(0.5),
    p95_ms: percentile(0.95),
    p99_ms: percentile(0.99),
  }
}
