import type { HandlerFigures, JobInfo, RouteInfo, TopologyEntry } from '#heddle'

/** With fewer calls p95 is the slowest of them, which tells little: then p50 says how slow a handler is. */
const CALLS_MIN = 20

/** A handler with its figures of now and of the code before; null where there are none. */
export interface HandlerRow extends HandlerFigures {
  /** By which it is sorted: p95, or p50 with few calls. */
  slow: { at: 'p50' | 'p95'; ms: number | null }
  before: Pick<HandlerFigures, 'calls' | 'errors' | 'p50_ms' | 'p95_ms' | 'p99_ms'> | null
}

export interface PluginRow {
  plugin: string
  calls: number
  errors: number
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

const NOTHING = { calls: 0, errors: 0, p50_ms: null, p95_ms: null, p99_ms: null }

/** The plugins, the slowest first, and of each the handlers, the slowest first. */
export function pluginTable(
  registered: Registered,
  now: readonly HandlerFigures[],
  before: readonly HandlerFigures[],
): PluginRow[] {
  const rows = new Map<string, HandlerRow>()
  for (const handler of handlersOf(registered)) rows.set(keyOf(handler), rowOf({ ...handler, ...NOTHING }))
  for (const figures of now) rows.set(keyOf(figures), rowOf(figures))
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

function rowOf(figures: HandlerFigures): HandlerRow {
  const slow: HandlerRow['slow'] =
    figures.calls < CALLS_MIN ? { at: 'p50', ms: figures.p50_ms } : { at: 'p95', ms: figures.p95_ms }
  return { ...figures, slow, before: null }
}

function pluginRow(plugin: string, handlers: HandlerRow[]): PluginRow {
  handlers.sort((a, b) => order(a.slow.ms, b.slow.ms) || b.calls - a.calls || byName(a.name, b.name))
  const slow_ms = handlers[0]?.slow.ms ?? null
  return { plugin, calls: sum(handlers, 'calls'), errors: sum(handlers, 'errors'), slow_ms, handlers }
}

/** The slowest first; those without calls last, by name. */
function slowestFirst(a: PluginRow, b: PluginRow): number {
  return order(a.slow_ms, b.slow_ms) || b.calls - a.calls || byName(a.plugin, b.plugin)
}

const order = (a: number | null, b: number | null) => (b ?? -1) - (a ?? -1)
const byName = (a: string, b: string) => (a < b ? -1 : 1)
const sum = (rows: readonly HandlerRow[], key: 'calls' | 'errors') => rows.reduce((total, row) => total + row[key], 0)

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
