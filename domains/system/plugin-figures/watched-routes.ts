import type { HandlerFigures, Registry, RequestRecord, WorkReport } from '#heddle'
import { Tally } from '../dashboard/minute-window.ts'

/** Routes are measured for so long after somebody has asked, milliseconds. */
const WATCHED_MS = 30_000

/** What one version of the code does. */
interface Generation {
  readonly fromMs: number
  readonly routes: Map<string, { plugin: string; name: string; tally: Tally }>
}

/** Measures all routes while somebody asks for it: where the history keeps nothing, or a sample. */
export class WatchedRoutes {
  readonly #registry: Pick<Registry, 'addRequestSink'>
  #stop: (() => void) | null = null
  #timer: NodeJS.Timeout | undefined
  #changedMs = 0
  #now: Generation = generation(0)
  #before: Generation | null = null

  constructor(registry: Pick<Registry, 'addRequestSink'>) {
    this.#registry = registry
  }

  /** @param changedMs since when the present code runs */
  look(changedMs: number, nowMs: number): { now: WorkReport; before: WorkReport | null } {
    if (this.#stop === null) {
      this.#changedMs = changedMs
      this.#now = generation(nowMs)
      this.#before = null
      this.#stop = this.#registry.addRequestSink((record) => add(this.#now, record))
    } else if (changedMs > this.#changedMs) {
      this.#changedMs = changedMs
      this.#before = this.#now
      this.#now = generation(nowMs)
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.stop(), WATCHED_MS).unref()
    return { now: reportOf(this.#now), before: this.#before === null ? null : reportOf(this.#before) }
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#stop?.()
    this.#stop = null
  }
}

const generation = (fromMs: number): Generation => ({ fromMs, routes: new Map() })

function add({ routes }: Generation, { method, route, plugin, status, duration_ms: ms }: RequestRecord): void {
  if (plugin === '') return
  const name = `${method} ${route}`
  let handler = routes.get(name)
  if (handler === undefined) {
    handler = { plugin, name, tally: new Tally() }
    routes.set(name, handler)
  }
  handler.tally.add(ms, status >= 500 ? 'failed' : 'succeeded')
}

function reportOf({ fromMs, routes }: Generation): WorkReport {
  const handlers = [...routes.values()].map(
    ({ plugin, name, tally }): HandlerFigures => ({
      plugin,
      kind: 'request',
      name,
      calls: tally.calls,
      errors: tally.errors,
      p50_ms: tally.percentile(0.5),
      p95_ms: tally.percentile(0.95),
      p99_ms: tally.percentile(0.99),
    }),
  )
  return { from_ms: fromMs, handlers }
}
