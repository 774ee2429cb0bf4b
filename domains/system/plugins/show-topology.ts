import { Plugin, type ScannedEvent, scanEvents, type Tools, type TopologyEntry } from '#heddle'
import { domainsDirsOf } from '../configuration.ts'

const NEVER_FIRED = 'found in source but never fired'

interface NotedEntry extends TopologyEntry {
  note?: string
}

/** The publishers and subscribers of each event: those seen since boot, and those that only the sources name. */
export default class ShowTopology extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus
  #domainsDirs: string[]
  /** The current scan. Requests that come meanwhile share it. */
  #scan: Promise<ScannedEvent[]> | undefined

  constructor({ http, event_bus, config }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
    this.#domainsDirs = domainsDirsOf(config)
  }

  override onBoot() {
    this.#http.addEndpoint('/system/events', 'GET', this.show, {
      tags: ['system'],
      summary: 'Emitters and subscribers of each event',
      description: 'With how often it fired since the start of the process.',
    })
  }

  async show(): Promise<{ topology: Record<string, NotedEntry> }> {
    this.#scan ??= scanEvents(this.#domainsDirs).finally(() => {
      this.#scan = undefined
    })
    const scanned = await this.#scan
    const topology: Record<string, NotedEntry> = { ...(await this.#bus.getTopology()) }
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
    return { topology: Object.fromEntries(Object.entries(topology).sort(([a], [b]) => (a < b ? -1 : 1))) }
  }
}

function union(some: readonly string[] = [], more: readonly string[]): string[] {
  return [...new Set([...some, ...more])]
}
