import type { HandlerFigures, JobInfo, RouteInfo, TopologyEntry } from '#heddle'

/** With fewer calls p95 is the slowest of them, which tells little: then p50 says how slow a handler is. */
const CALLS_MIN = 20

/** A handler with its figures of now and of the code before. Null is what nobody has measured; a zero was. */
export interface HandlerRow extends Omit<HandlerFigures, 'calls' | 'errors'> {
  calls: number | null
  errors: number | null
  /** ISO 8601 UTC: since when its calls and errors are counted; null where they are not. */
  from: string | null
  /** By which it is sorted: p95, or p50 with few calls. */
  slow: { at: 'p50' | 'p95'; ms: number | null }
  before: Pick<HandlerFigures, 'calls' | 'errors' | 'p50_ms' | 'p95_ms' | 'p99_ms'> | null
  /** Of a job. */
  job?: Omit<JobInfo, 'plugin' | 'name'>
}

export interface PluginRow {
  plugin: string
  /** Of those handlers that are counted; null where none is. */
  calls: number | null
  errors: number | null
  /** Of its slowest handler. */
  slow_ms: number | null
  handlers: HandlerRow[]
}

/** What there is, whether it was called or not. */
export interface Registered {
  routes: readonly RouteInfo[]
  topology: Record<string, TopologyEntry>
  jobs: readonly JobInfo[]
}

/** What was counted, by kind of work. */
export interface Counted {
  /** `all`: whatever is not among the figures was not called. `errors`: all that failed, and a part of the rest. `none`: nothing. */
  request: Count
  event: Count
  job: Count
}

interface Count {
  what: 'all' | 'errors' | 'none'
  fromMs: number
}

const NOT_MEASURED = { p50_ms: null, p95_ms: null, p99_ms: null }

/**
 * The plugins, the slowest first, and of each the handlers, the slowest first.
 * @param startedMs since when the process counts the runs of its jobs
 */
export function pluginTable(
  registered: Registered,
  now: readonly HandlerFigures[],
  before: readonly HandlerFigures[],
  counted: Counted,
  startedMs: number,
): PluginRow[] {
  const rows = new Map<string, HandlerRow>()
  const figuresOf = new Map(now.map((figures) => [keyOf(figures), figures]))
  const jobs = new Map(registered.jobs.map((job) => [keyOf({ ...job, kind: 'job' }), job]))
  const ids = [...handlersOf(registered), ...now]
  for (const { plugin, kind, name } of ids) {
    const key = keyOf({ plugin, kind, name })
    if (rows.has(key)) continue
    const figures = figuresOf.get(key)
    rows.set(key, rowOf({ plugin, kind, name }, figures, counted[kind], jobs.get(key), startedMs))
  }
  for (const { plugin, kind, name, ...figures } of before) {
    const row = rows.get(keyOf({ plugin, kind, name }))
    // What is gone with the new code has no row.
    if (row !== undefined) row.before = figures
  }
  // The time for which a client listens is no latency.
  for (const { plugin, method, path, is_stream, is_socket } of registered.routes) {
    const row = rows.get(keyOf({ plugin, kind: 'request', name: `${method} ${path}` }))
    if (row === undefined || !(is_stream || is_socket)) continue
    Object.assign(row, { p50_ms: null, p95_ms: null, p99_ms: null, slow: { at: 'p95', ms: null } })
    if (row.before !== null) Object.assign(row.before, { p50_ms: null, p95_ms: null, p99_ms: null })
  }
  const plugins = new Map<string, HandlerRow[]>()
  for (const row of rows.values()) {
    const handlers = plugins.get(row.plugin)
    if (handlers === undefined) plugins.set(row.plugin, [row])
    else handlers.push(row)
  }
  return [...plugins].map(([plugin, handlers]) => pluginRow(plugin, handlers)).sort(slowestFirst)
}

function rowOf(
  id: Pick<HandlerFigures, 'plugin' | 'kind' | 'name'>,
  figures: HandlerFigures | undefined,
  { what, fromMs }: Count,
  given: JobInfo | undefined,
  startedMs: number,
): HandlerRow {
  const { plugin: _plugin, name: _name, ...job } = given ?? {}
  const about = { ...id, ...(given && { job: job as HandlerRow['job'] & object }), before: null }
  const from = new Date(fromMs).toISOString()
  const unknown = { ...NOT_MEASURED, slow: { at: 'p95' as const, ms: null } }
  // The runs of another process are not known here, unless both have one history.
  const isElsewhere = given?.fires_here === false && figures === undefined
  if (what === 'all' && !isElsewhere) {
    if (figures === undefined) return { ...about, ...unknown, calls: 0, errors: 0, from }
    const { calls, errors, p50_ms, p95_ms, p99_ms } = figures
    const slow: HandlerRow['slow'] = calls < CALLS_MIN ? { at: 'p50', ms: p50_ms } : { at: 'p95', ms: p95_ms }
    return { ...about, calls, errors, p50_ms, p95_ms, p99_ms, from, slow }
  }
  if (given?.fires_here) {
    const { runs: calls, failures: errors } = given
    return { ...about, ...unknown, calls, errors, from: new Date(startedMs).toISOString() }
  }
  const isCounted = what === 'errors' && given === undefined
  return {
    ...about,
    ...unknown,
    calls: null,
    errors: isCounted ? (figures?.errors ?? 0) : null,
    from: isCounted ? from : null,
  }
}

function pluginRow(plugin: string, handlers: HandlerRow[]): PluginRow {
  handlers.sort((a, b) => order(a.slow.ms, b.slow.ms) || order(a.calls, b.calls) || byName(a.name, b.name))
  const slow_ms = handlers[0]?.slow.ms ?? null
  return { plugin, calls: sum(handlers, 'calls'), errors: sum(handlers, 'errors'), slow_ms, handlers }
}

/** The slowest first; those without calls last, by name. */
function slowestFirst(a: PluginRow, b: PluginRow): number {
  return order(a.slow_ms, b.slow_ms) || order(a.calls, b.calls) || byName(a.plugin, b.plugin)
}

const order = (a: number | null, b: number | null) => (b ?? -1) - (a ?? -1)
const byName = (a: string, b: string) => (a < b ? -1 : 1)

function sum(rows: readonly HandlerRow[], key: 'calls' | 'errors'): number | null {
  const known = rows.map((row) => row[key]).filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
}

const keyOf = ({ plugin, kind, name }: Pick<HandlerFigures, 'plugin' | 'kind' | 'name'>) => `${plugin} ${kind} ${name}`

/** Without the pages of the runtime, of which no work is kept. */
function* handlersOf({
  routes,
  topology,
  jobs,
}: Registered): Iterable<Pick<HandlerFigures, 'plugin' | 'kind' | 'name'>> {
  for (const { plugin, method, path } of routes)
    if (!path.startsWith('/system/')) yield { plugin, kind: 'request', name: `${method} ${path}` }
  for (const [event, { subscribers }] of Object.entries(topology))
    for (const plugin of subscribers) if (!plugin.startsWith('system.')) yield { plugin, kind: 'event', name: event }
  for (const { plugin, name } of jobs) if (!plugin.startsWith('system.')) yield { plugin, kind: 'job', name }
}
