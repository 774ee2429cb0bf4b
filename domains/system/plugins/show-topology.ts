import { plugin, type ScannedEvent, scanEvents, type TopologyEntry } from '#heddle'
import { domainsDirsOf } from '../configuration.ts'

const NEVER_FIRED = 'found in source but never fired'

interface NotedEntry extends TopologyEntry {
  note?: string
}

const options = {
  tags: ['system'],
  summary: 'Emitters and subscribers of each event',
  description: 'With how often it fired since the start of the process.',
}

/** The publishers and subscribers of each event: those seen since boot, and those that only the sources name. */
export default plugin(
  ({ http, event_bus, config }) => {
    const domainsDirs = domainsDirsOf(config)
    /** The current scan. Requests that come meanwhile share it. */
    let scan: Promise<ScannedEvent[]> | undefined
    http.get('/system/events', options, async (): Promise<{ topology: Record<string, NotedEntry> }> => {
      scan ??= scanEvents(domainsDirs).finally(() => {
        scan = undefined
      })
      const scanned = await scan
      return { topology: withScanned(await event_bus.getTopology(), scanned) }
    })
  },
  { thread: 'primary' },
)

function withScanned(seen: Record<string, TopologyEntry>, scanned: readonly ScannedEvent[]) {
  const topology: Record<string, NotedEntry> = { ...seen }
  for (const { event, emitters, subscribers } of scanned) {
    const known = topology[event]
    if (known !== undefined && known.fire_count > 0) continue
    topology[event] = {
      emitters: union(known?.emitters, emitters),
      subscribers: union(known?.subscribers, subscribers),
      fire_count: 0,
      note: NEVER_FIRED,
    }
  }
  return Object.fromEntries(Object.entries(topology).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function union(some: readonly string[] = [], more: readonly string[]): string[] {
  return [...new Set([...some, ...more])]
}
