import { randomUUID } from 'node:crypto'
import type { EventRecord, LaneInfo, Readiness, RouteInfo, SseStream, SystemDump, Tools, TopologyEntry } from '#heddle'
import { CallWindows } from './call-windows.ts'
import type {
  DashboardFrame,
  FailureEntry,
  LaneSummary,
  LogEntry,
  ProcessFigures,
  SecondFrame,
  SingleRoutes,
} from './frames.ts'
import { TreeSample } from './tree-sample.ts'

/** How long what happens may wait for the frame that tells it, milliseconds. */
const LIVE_MS = 100
const SECOND_MS = 1000
const LOGS_MAX_RECORDS = 100
const FAILURES_MAX_RECORDS = 100
/** Longer texts are cut. */
const TEXT_MAX_CHARS = 2000
/** Further keys of a payload are not told. */
const KEYS_MAX = 50

type Sources = Pick<Tools, 'event_bus' | 'logger' | 'registry'>

/**
 * What all open dashboards are told, gathered once for all of them. It listens and computes only while there is one:
 * without, it holds no sink and no timer.
 */
export class LiveFeed {
  readonly #bus: Tools['event_bus']
  readonly #logger: Tools['logger']
  readonly #registry: Tools['registry']
  readonly #boot = randomUUID()
  readonly #startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString()
  readonly #clients = new Set<SseStream>()
  #watch: Watch | null = null

  constructor({ event_bus, logger, registry }: Sources) {
    this.#bus = event_bus
    this.#logger = logger
    this.#registry = registry
  }

  async open(stream: SseStream): Promise<void> {
    this.#clients.add(stream)
    stream.signal.addEventListener('abort', () => this.#leave(stream))
    this.#watch ??= this.#begin()
    const watch = this.#watch
    // Before the first wait: what comes after this point is in the frames that follow, and may be in the history too.
    const heardBefore = watch.heard
    const [records, topology, lanes, readiness, routes] = await Promise.all([
      this.#bus.getTraceHistory(),
      this.#bus.getTopology(),
      this.#registry.getLanes(),
      this.#registry.getReadiness(),
      this.#registry.getRoutes(),
    ])
    const eventsTotal = sumOf(topology)
    watch.total ??= eventsTotal + (watch.heard - heardBefore)
    stream.send({
      type: 'hello',
      boot: this.#boot,
      started_at: this.#startedAt,
      events_total: eventsTotal,
      records: records.map(shown),
      topology,
      status: this.#registry.getSystemDump(),
      readiness,
      lanes: lanes.map(summaryOf),
      routes: singleRoutes(routes),
    } satisfies DashboardFrame)
    watch.clients.add(stream)
  }

  #leave(stream: SseStream): void {
    this.#clients.delete(stream)
    this.#watch?.clients.delete(stream)
    if (this.#clients.size > 0) return
    this.#watch?.end()
    this.#watch = null
  }

  #begin(): Watch {
    return new Watch({ event_bus: this.#bus, logger: this.#logger, registry: this.#registry })
  }

  close(): void {
    this.#watch?.end()
    this.#watch = null
  }
}

/** One time during which somebody looks. */
class Watch {
  /** Those who have had their `hello`. */
  readonly clients = new Set<SseStream>()
  /** Events since it began. */
  heard = 0
  /** Events since the start of the process; null until it is known. */
  total: number | null = null
  readonly #sources: Sources
  readonly #stops: (() => void)[]
  readonly #sample = new TreeSample()
  readonly #calls = new CallWindows()
  #records: EventRecord[] = []
  #logs: LogEntry[] = []
  #logsLeftOut = 0
  #failures: FailureEntry[] = []
  /** The total that was told last. */
  #told: number | null = null
  #topology = new Map<string, string>()
  #status = ''
  #readiness = ''
  #cpu = process.cpuUsage()
  #loop = performance.eventLoopUtilization()
  #secondMs = performance.now()

  constructor(sources: Sources) {
    this.#sources = sources
    const { event_bus, logger, registry } = sources
    this.#calls.addPast(registry.getMetrics(), Date.now())
    const live = setInterval(() => this.#tellLive(), LIVE_MS).unref()
    const second = setInterval(() => void this.#tellSecond(), SECOND_MS).unref()
    this.#stops = [
      event_bus.addListener((record) => this.#hear(record)),
      event_bus.addFailureListener(({ event, event_id, subscriber, error, attempts }) => {
        if (this.#failures.length < FAILURES_MAX_RECORDS)
          this.#failures.push({ event, event_id, subscriber, error: cut(error), attempts })
      }),
      // Logs nothing itself: such a record would come back to the sink.
      logger.addSink((level, message, timestamp, identity) => {
        if (this.#logs.length < LOGS_MAX_RECORDS) this.#logs.push({ level, message: cut(message), timestamp, identity })
        else this.#logsLeftOut++
      }),
      registry.addMetricsSink((record) => this.#calls.add(record)),
      () => clearInterval(live),
      () => clearInterval(second),
    ]
  }

  end(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  #hear(record: EventRecord): void {
    this.heard++
    if (this.total !== null) this.total++
    if (this.#sample.takes(record)) this.#records.push(shown(record))
  }

  #send(frame: DashboardFrame): void {
    for (const client of this.clients) client.send(frame)
  }

  #tellLive(): void {
    if (this.total === null) return
    this.#sample.next()
    const isNews = this.#told !== this.total || this.#logs.length > 0 || this.#failures.length > 0
    if (!isNews) return
    this.#told = this.total
    this.#send({
      type: 'live',
      events_total: this.total,
      records: this.#records,
      logs: this.#logs,
      logs_left_out: this.#logsLeftOut,
      failures: this.#failures,
    })
    this.#records = []
    this.#logs = []
    this.#logsLeftOut = 0
    this.#failures = []
  }

  async #tellSecond(): Promise<void> {
    const { event_bus, registry } = this.#sources
    const calls = this.#calls.turn()
    const [topology, lanes, readiness] = await Promise.all([
      event_bus.getTopology(),
      registry.getLanes(),
      registry.getReadiness(),
    ])
    const health = this.#health(registry.getSystemDump(), readiness)
    if (health.status !== undefined) health.routes = singleRoutes(await registry.getRoutes())
    if (this.total === null) return
    this.#send({
      type: 'second',
      events_total: this.total,
      topology: this.#changed(topology),
      calls,
      lanes: lanes.map(summaryOf),
      process: this.#process(),
      ...health,
    })
  }

  #changed(topology: Record<string, TopologyEntry>): Record<string, TopologyEntry> {
    const changed: Record<string, TopologyEntry> = {}
    for (const [event, entry] of Object.entries(topology)) {
      const text = JSON.stringify(entry)
      if (this.#topology.get(event) === text) continue
      this.#topology.set(event, text)
      changed[event] = entry
    }
    return changed
  }

  #health(status: SystemDump, readiness: Readiness): Pick<SecondFrame, 'status' | 'readiness' | 'routes'> {
    const news: Pick<SecondFrame, 'status' | 'readiness' | 'routes'> = {}
    const statusText = JSON.stringify(status)
    if (statusText !== this.#status) news.status = status
    this.#status = statusText
    const readinessText = JSON.stringify(readiness)
    if (readinessText !== this.#readiness) news.readiness = readiness
    this.#readiness = readinessText
    return news
  }

  #process(): ProcessFigures {
    const cpu = process.cpuUsage()
    const loop = performance.eventLoopUtilization()
    const nowMs = performance.now()
    const cpuMs = (cpu.user + cpu.system - this.#cpu.user - this.#cpu.system) / 1000
    const figures = {
      rss_bytes: process.memoryUsage.rss(),
      cpu_percent: Math.round((cpuMs / (nowMs - this.#secondMs)) * 100),
      loop_utilization: Number(performance.eventLoopUtilization(loop, this.#loop).utilization.toFixed(3)),
    }
    this.#cpu = cpu
    this.#loop = loop
    this.#secondMs = nowMs
    return figures
  }
}

function sumOf(topology: Record<string, TopologyEntry>): number {
  return Object.values(topology).reduce((sum, { fire_count }) => sum + fire_count, 0)
}

function shown(record: EventRecord): EventRecord {
  if (record.payload_keys.length <= KEYS_MAX) return record
  return { ...record, payload_keys: record.payload_keys.slice(0, KEYS_MAX) }
}

function singleRoutes(routes: readonly RouteInfo[]): SingleRoutes {
  const single: SingleRoutes = {}
  const several = new Set<string>()
  for (const { plugin, method, path } of routes) {
    if (single[plugin] !== undefined || several.has(plugin)) several.add(plugin)
    else single[plugin] = `${method} ${path}`
  }
  for (const plugin of several) delete single[plugin]
  return single
}

function summaryOf({ deaths, ...lane }: LaneInfo): LaneSummary {
  return { ...lane, deaths: deaths.map(({ at }) => ({ at })) }
}

function cut(text: string): string {
  return text.length <= TEXT_MAX_CHARS ? text : `${text.slice(0, TEXT_MAX_CHARS)}…`
}
