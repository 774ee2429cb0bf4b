import { HeddleError, plugin, type SystemDump, type WorkReport } from '#heddle'
import { isProduction } from '../configuration.ts'
import { type PluginRow, pluginTable } from '../plugin-figures/plugin-table.ts'
import { WatchedRoutes } from '../plugin-figures/watched-routes.ts'

/** The span that is shown at most, of the present code and of the code before, milliseconds. */
const SPAN_MS = 15 * 60_000

const SINCE_ASKED = 'Routes are measured from the first look on, while somebody looks'
const NO_HISTORY = `No history is kept (HISTORY_ENABLED): subscribers and jobs are not measured. ${SINCE_ASKED}.`
const SAMPLE = `The history keeps a sample: of subscribers and jobs it shows what failed, what was slow, and a part of the rest. ${SINCE_ASKED}.`

/** Of the present code, and of the code before. */
interface Work {
  now: WorkReport
  before: WorkReport | null
  /** Sentences about what is not measured. */
  missing: string[]
}

interface PluginReport {
  /** ISO 8601 UTC, as all times. */
  from: string
  to: string
  /** Since when the present code runs. */
  changed: { at: string; kind: 'reload' | 'start' }
  /** The span of the code before; null: nothing is known of it. */
  before: { from: string; to: string } | null
  missing: string[]
  plugins: PluginRow[]
}

const options = {
  tags: ['system'],
  summary: 'Routes, subscribers and jobs of each plugin',
  description: 'The slowest first, now and before the last reload or start.',
}

/** What the routes, subscribers and jobs of each plugin take, now and before the code was changed. */
export default plugin(
  ({ http, event_bus, registry, scheduler, config }) => {
    const isSample = config.get('HISTORY_SAMPLE', { type: 'number', default: isProduction(config) ? 0.01 : 1 }) < 1
    const watched = new WatchedRoutes(registry)

    http.get('/system/plugins', options, async (): Promise<PluginReport> => {
      const nowMs = Date.now()
      const { changedMs, kind } = changeOf(registry.getSystemDump())
      const [routes, topology, jobs] = await Promise.all([
        registry.getRoutes(),
        event_bus.getTopology(),
        scheduler.list(),
      ])
      const { now, before, missing } = (await exact(changedMs, nowMs)) ?? (await watch(changedMs, nowMs))
      const isKnown = before !== null && before.handlers.length > 0
      return {
        from: iso(now.from_ms),
        to: iso(nowMs),
        changed: { at: iso(changedMs), kind },
        before: isKnown ? { from: iso(before.from_ms), to: iso(changedMs) } : null,
        missing,
        plugins: pluginTable({ routes, topology, jobs }, now.handlers, before?.handlers ?? []),
      }
    })
    return { onStop: () => watched.stop() }

    /** @returns null where the history does not keep everything */
    async function exact(changedMs: number, nowMs: number): Promise<Work | null> {
      if (isSample) return null
      const now = await kept(Math.max(changedMs, nowMs - SPAN_MS), nowMs + 1)
      return now === null ? null : { now, before: await kept(changedMs - SPAN_MS, changedMs), missing: [] }
    }

    /** Routes are measured here, the rest comes from what the history keeps. */
    async function watch(changedMs: number, nowMs: number): Promise<Work> {
      const { now, before } = watched.look(changedMs, nowMs)
      const keptNow = await kept(now.from_ms, nowMs + 1)
      const keptBefore = before === null ? null : await kept(before.from_ms, changedMs)
      return {
        now: joined(now, keptNow),
        before: before === null ? null : joined(before, keptBefore),
        missing: [keptNow === null ? NO_HISTORY : SAMPLE],
      }
    }

    /** @returns null where no history is kept */
    async function kept(sinceMs: number, untilMs: number): Promise<WorkReport | null> {
      try {
        return await registry.getWorkReport({ sinceMs, untilMs })
      } catch (error) {
        if (error instanceof HeddleError && error.code === 'HISTORY_OFF') return null
        throw error
      }
    }
  },
  { thread: 'primary' },
)

/** Routes as they were watched, and the rest as it was kept. */
function joined(watched: WorkReport, kept: WorkReport | null): WorkReport {
  const others = kept?.handlers.filter((handler) => handler.kind !== 'request') ?? []
  return { from_ms: watched.from_ms, handlers: [...watched.handlers, ...others] }
}

const iso = (ms: number) => new Date(ms).toISOString()

/** Since when the present code runs: a reload that failed has left the old one. */
function changeOf({ reload }: SystemDump): { changedMs: number; kind: 'reload' | 'start' } {
  if (reload?.ok === true) return { changedMs: Date.parse(reload.at), kind: 'reload' }
  return { changedMs: Math.round(performance.timeOrigin), kind: 'start' }
}
