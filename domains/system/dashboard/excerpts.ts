import type { EventRecord, LaneInfo, RouteInfo, TopologyEntry } from '#heddle'
import type { LaneSummary, SingleRoutes } from './frames.ts'

/** Longer texts are cut. */
const TEXT_MAX_CHARS = 2000
/** Most keys of a payload that are sent. */
const KEYS_MAX = 50

/** Events since the start of the process. */
export function firedIn(topology: Record<string, TopologyEntry>): number {
  return Object.values(topology).reduce((sum, { fire_count }) => sum + fire_count, 0)
}

export function excerptOf(record: EventRecord): EventRecord {
  if (record.payload_keys.length <= KEYS_MAX) return record
  return { ...record, payload_keys: record.payload_keys.slice(0, KEYS_MAX) }
}

export function singleRoutes(routes: readonly RouteInfo[]): SingleRoutes {
  const single: SingleRoutes = {}
  const several = new Set<string>()
  for (const { plugin, method, path } of routes) {
    if (single[plugin] !== undefined || several.has(plugin)) several.add(plugin)
    else single[plugin] = `${method} ${path}`
  }
  for (const plugin of several) delete single[plugin]
  return single
}

/** A lane without stacks and steps, which may be a hundred kilobytes. */
export function summaryOf({ deaths, ...lane }: LaneInfo): LaneSummary {
  return { ...lane, deaths: deaths.map(({ at }) => ({ at })) }
}

export function cut(text: string): string {
  return text.length <= TEXT_MAX_CHARS ? text : `${text.slice(0, TEXT_MAX_CHARS)}…`
}
