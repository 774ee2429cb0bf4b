import { HeddleError, plugin, type SystemDump, type WorkReport } from '#heddle'
import { isSampleKept } from '../configuration.ts'
import { type Counted, type PluginRow, pluginTable } from '../plugin-figures/plugin-table.ts'
import { WatchedRoutes } from '../plugin-figures/watched-routes.ts'

/** The span that is shown at most, of the present code and of the code before, milliseconds. */
const SPAN_MS = 15 * 60_000

const SINCE_ASKED = 'Routes are measured from the first look on, while somebody looks; jobs are counted since the start'
const NO_HISTORY = `No history is kept (HISTORY_ENABLED): subscribers are not measured. ${SINCE_ASKED}.`
const SAMPLE = `The history keeps a sample (HISTORY_SAMPLE): of subscribers only the failures are counted. ${SINCE_ASKED}.`
const ELSEWHERE = 'Some jobs run in another process on this database, which counts them.'

/** Of the present code, and of the code before. */
interface Work {
  now: WorkReport
  before: (WorkReport & { untilMs: number }) | null
  counted: Counted
  /** Sentences about what is not measured. */
  missing: string[]
  beforeMissing: string
}

interface PluginReport {
  /** ISO 8601 UTC, as all times. */
  from: string
  to: string
  /** Since when the present code runs. */
  changed: { at: string; kind: 'reload' | 'start' }
  /** The span of the code before; null: nothing is known of it, and `before_missing` says why. */
  before: { from: string; to: string } | null
  before_missing: string | null
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
    const isSample = isSampleKept(config)
    const watched = new WatchedRoutes(registry)

    http.get('/system/plugins', options, async (): Promise<PluginReport> => {
      const nowMs = Date.now()
      const { changedMs, kind } = changeOf(registry.getSystemDump())
      const [routes, topology, jobs] = await Promise.all([
        registry.getRoutes(),
        event_bus.getTopology(),
        scheduler.list(),
      ])
      const work = (await exact(changedMs, nowMs)) ?? (await watch(changedMs, nowMs))
      const { now, counted } = work
      const before = work.before !== null && work.before.handlers.length > 0 ? work.before : null
      const isElsewhere = jobs.some(({ plugin, fires_here }) => !fires_here && !plugin.startsWith('system.'))
      return {
        from: iso(now.from_ms),
        to: iso(nowMs),
        changed: { at: iso(changedMs), kind },
        before: before === null ? null : { from: iso(before.from_ms), to: iso(before.untilMs) },
        before_missing: before === null ? work.beforeMissing : null,
        missing: isElsewhere ? [...work.missing, ELSEWHERE] : work.missing,
        plugins: pluginTable({ routes, topology, jobs }, now.handlers, before?.handlers ?? [], counted, startedMs),
      }
    })
    return { onStop: () => watched.stop() }

    /** @returns null where the history does not keep everything */
    async function exact(changedMs: number, nowMs: number): Promise<Work | null> {
      if (isSample) return null
      const now = await kept(Math.max(changedMs, nowMs - SPAN_MS), nowMs + 1)
      if (now === null) return null
      // The service may have been down for longer than a span.
      const [last] = await registry.getRequests({ before: changedMs, limit: 1 })
      const untilMs = Math.min(changedMs, (last?.at_ms ?? changedMs) + 1)
      const before = await kept(untilMs - SPAN_MS, untilMs)
      const count = { what: 'all', fromMs: now.from_ms } as const
      return {
        now,
        before: before && { ...before, untilMs },
        counted: { request: count, event: count, job: count },
        missing: [],
        beforeMissing: 'The history has nothing of the code before',
      }
    }

    /** Routes are measured here; what failed else comes from what the history keeps. */
    async function watch(changedMs: number, nowMs: number): Promise<Work> {
      const { now, before } = watched.look(changedMs, nowMs)
      const keptNow = await kept(Math.max(changedMs, nowMs - SPAN_MS), nowMs + 1)
      const others = keptNow?.handlers.filter(({ kind }) => kind !== 'request') ?? []
      const count = { what: keptNow === null ? 'none' : 'errors', fromMs: keptNow?.from_ms ?? nowMs } as const
      return {
        now: { from_ms: now.from_ms, handlers: [...now.handlers, ...others] },
        before: before && { ...before, untilMs: changedMs },
        counted: { request: { what: 'all', fromMs: now.from_ms }, event: count, job: count },
        missing: [keptNow === null ? NO_HISTORY : SAMPLE],
        beforeMissing: 'The code before was not measured, since nobody looked',
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

/** Since when the process counts the runs of its jobs. */
const startedMs = Math.round(performance.timeOrigin)
const iso = (ms: number) => new Date(ms).toISOString()

/** Since when the present code runs: a reload that failed has left the old one. */
function changeOf({ reload }: SystemDump): { changedMs: number; kind: 'reload' | 'start' } {
  if (reload?.ok === true) return { changedMs: Date.parse(reload.at), kind: 'reload' }
  return { changedMs: startedMs, kind: 'start' }
}
