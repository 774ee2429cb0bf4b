import {
  causalForest,
  type Data,
  type EventRecord,
  Plugin,
  type ScannedEvent,
  type SseStream,
  scanEvents,
  type Tools,
  type TopologyEntry,
  type TreeNode,
} from '#heddle'
import { domainsDirsOf } from '../configuration.ts'

const NEVER_FIRED = 'found in source but never fired'

interface NotedEntry extends TopologyEntry {
  note?: string
}

/** The events of the process: who publishes and who handles each, and the last 500 records, as a list, as causal trees and live. */
export default class ShowEvents extends Plugin {
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
    const tags = ['system']
    this.#http.addEndpoint('/system/events', 'GET', this.showTopology, {
      tags,
      summary: 'Emitters and subscribers of each event',
      description: 'With how often it fired since the start of the process.',
    })
    this.#http.addStream('/system/events/stream', this.streamEvents, {
      tags,
      summary: 'Each event as it happens',
      description: 'From now on, whatever thread publishes it, except for those whose names begin with `_`.',
    })
    this.#http.addEndpoint('/system/traces/flat', 'GET', this.listTraces, {
      tags,
      summary: 'The last 500 events, oldest first',
      description: 'Each with its emitter and the event that caused it.',
    })
    this.#http.addEndpoint('/system/traces/tree', 'GET', this.showTree, {
      tags,
      summary: 'The last 500 events by causality',
      description: 'Each event below the one that caused it.',
    })
    this.#http.addStream('/system/traces/stream', this.streamTraces, {
      tags,
      summary: 'The last 500 events, then each new one',
      description: 'As server-sent events, each with what caused it.',
    })
  }

  /** Those seen since boot, and those that only the sources name. */
  async showTopology(): Promise<{ topology: Record<string, NotedEntry> }> {
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

  streamEvents(_data: Data, stream: SseStream) {
    const stop = this.#bus.addListener((record) => {
      if (!record.event.startsWith('_')) stream.send(record)
    })
    stream.signal.addEventListener('abort', stop)
  }

  async listTraces(): Promise<EventRecord[]> {
    return this.#bus.getTraceHistory()
  }

  async showTree(): Promise<TreeNode[]> {
    return causalForest(await this.#bus.getTraceHistory())
  }

  async streamTraces(_data: Data, stream: SseStream) {
    // Listens before it reads the history, so that no record is missed. A record that is in both is sent once.
    const early: EventRecord[] = []
    let take = (record: EventRecord): unknown => early.push(record)
    const stop = this.#bus.addListener((record) => take(record))
    stream.signal.addEventListener('abort', stop)

    const records = await this.#bus.getTraceHistory()
    stream.send({ snapshot: true, records })
    const sent = new Set(records.map(({ id }) => id))
    for (const record of early) if (!sent.has(record.id)) stream.send(record)
    take = (record) => stream.send(record)
  }
}

function union(some: readonly string[] = [], more: readonly string[]): string[] {
  return [...new Set([...some, ...more])]
}
