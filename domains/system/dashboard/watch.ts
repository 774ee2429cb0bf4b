import type { EventRecord, JobInfo, RequestSummary, RouteInfo, SseStream, Tools } from '#heddle'
import { CallWindows } from './call-windows.ts'
import { cut, excerptOf, singleRoutes, summaryOf } from './excerpts.ts'
import type { DashboardFrame, FailureEntry, LogEntry, ProcessFigures, SecondFrame } from './frames.ts'
import type { LogBacklog } from './log-backlog.ts'
import { TreeSample } from './tree-sample.ts'
import { secondsSince, WorkWindows } from './work-windows.ts'

/** Milliseconds between two live frames. */
const LIVE_MS = 100
const SECOND_MS = 1000
/** Most requests and dead letters of the last minute that are read when the first page is opened. */
const PAST_MAX = 1000
const LOGS_MAX_RECORDS = 100
const FAILURES_MAX_RECORDS = 100

/** Calls of tools that the process keeps of the time before. */
const METRICS_KEPT = 1000
const MINUTE_MS = 60_000

export interface Sources extends Pick<Tools, 'event_bus' | 'registry' | 'scheduler'> {
  readonly backlog: LogBacklog
  /** The history keeps a part of what went well. */
  readonly isSample: boolean
}

/** Gathers and sends the frames while at least one dashboard is open. */
export class Watch {
  /** The clients that have received their `hello`. */
  readonly clients = new Set<SseStream>()
  /** Events since this watch began. */
  heard = 0
  /** Events since the start of the process; null until it is known. */
  total: number | null = null
  readonly #sources: Sources
  readonly #stops: (() => void)[]
  readonly #sample = new TreeSample()
  readonly #calls = new CallWindows()
  readonly #work = new WorkWindows(Date.now())
  /** Since when all calls of tools are counted. */
  readonly #callsSinceMs: number
  /** Failed runs of all jobs at the last look; null before the first. */
  #failedRuns: number | null = null
  /** `GET /path` of those that stay open. */
  #streams = new Set<string>()
  #records: EventRecord[] = []
  #logs: LogEntry[] = []
  #logsLeftOut = 0
  #failures: FailureEntry[] = []
  /** The total that was sent last. */
  #sentTotal: number | null = null
  /** What was sent last, as JSON: what is the same again is not. */
  readonly #known = new Map<string, string>()
  #cpu = process.cpuUsage()
  #loop = performance.eventLoopUtilization()
  #secondMs = performance.now()

  constructor(sources: Sources) {
    this.#sources = sources
    const { event_bus, registry, backlog } = sources
    const metrics = registry.getMetrics()
    this.#calls.addPast(metrics, Date.now())
    this.#callsSinceMs =
      metrics.length < METRICS_KEPT ? Math.round(performance.timeOrigin) : Date.parse(metrics[0]!.timestamp)
    // What cannot be read is missing for a minute.
    this.#readPast(Date.now()).catch(() => {})
    const live = setInterval(() => this.#sendLive(), LIVE_MS).unref()
    // The status of a tool shows its failure. This second then has no figures.
    const second = setInterval(() => this.#sendSecond().catch(() => {}), SECOND_MS).unref()
    this.#stops = [
      event_bus.addListener((record) => this.#hear(record)),
      event_bus.addFailureListener(({ event, event_id, subscriber, error, attempts }) => {
        this.#work.addFailed('delivery')
        if (this.#failures.length < FAILURES_MAX_RECORDS)
          this.#failures.push({ event, event_id, subscriber, error: cut(error), attempts })
      }),
      backlog.listen((entry) => {
        if (this.#logs.length < LOGS_MAX_RECORDS) this.#logs.push(entry)
        else this.#logsLeftOut++
      }),
      registry.addMetricsSink((record) => this.#calls.add(record)),
      registry.addRequestSink((record) =>
        this.#work.add(record, this.#streams.has(`${record.method} ${record.route}`)),
      ),
      () => clearInterval(live),
      () => clearInterval(second),
    ]
  }

  end(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  async #readPast(nowMs: number): Promise<void> {
    const { event_bus, registry, scheduler } = this.#sources
    this.#lookAtJobs(await scheduler.list())
    this.#learnRoutes(await registry.getRoutes())
    const sinceMs = nowMs - MINUTE_MS
    const all = (status?: string): Promise<RequestSummary[] | null> =>
      // Without the history the minute begins now.
      registry.getRequests({ since: sinceMs, limit: PAST_MAX, ...(status && { status }) }).catch(() => null)
    const [requests, failed, letters] = await Promise.all([
      this.#sources.isSample ? null : all(),
      all('failed'),
      event_bus.getDeadLetters({ since: new Date(sinceMs), limit: PAST_MAX }),
    ])
    // Of more than are read only the newest are known.
    const since = (rows: readonly RequestSummary[] | null): number =>
      rows === null ? nowMs : rows.length < PAST_MAX ? sinceMs : rows.at(-1)!.at_ms
    const isNoStream = ({ method, route }: RequestSummary) => !this.#streams.has(`${method} ${route}`)
    const past = {
      requests: requests?.filter(isNoStream) ?? [],
      requestsSinceMs: since(requests),
      failed: failed?.filter(isNoStream) ?? [],
      failedSinceMs: since(failed),
      letters,
    }
    this.#work.addPast(past, nowMs)
  }

  /** Jobs tell how many of their runs have failed. */
  #lookAtJobs(jobs: readonly JobInfo[]): void {
    const failed = jobs.reduce((sum, { failures }) => sum + failures, 0)
    if (this.#failedRuns !== null && failed > this.#failedRuns) this.#work.addFailed('job', failed - this.#failedRuns)
    this.#failedRuns = failed
  }

  #learnRoutes(routes: readonly RouteInfo[]): void {
    this.#streams = new Set(routes.flatMap(({ method, path, is_stream }) => (is_stream ? [`${method} ${path}`] : [])))
  }

  #hear(record: EventRecord): void {
    this.heard++
    if (this.total !== null) this.total++
    if (this.#sample.takes(record)) this.#records.push(excerptOf(record))
  }

  #send(frame: DashboardFrame): void {
    for (const client of this.clients) client.send(frame)
  }

  #sendLive(): void {
    if (this.total === null) return
    this.#sample.next()
    const isNews = this.#sentTotal !== this.total || this.#logs.length > 0 || this.#failures.length > 0
    if (!isNews) return
    this.#sentTotal = this.total
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

  async #sendSecond(): Promise<void> {
    const { event_bus, registry, scheduler } = this.#sources
    const calls = this.#calls.turn()
    const [topology, lanes, readiness, jobs] = await Promise.all([
      event_bus.getTopology(),
      registry.getLanes(),
      registry.getReadiness(),
      scheduler.list(),
    ])
    this.#lookAtJobs(jobs)
    const status = registry.getSystemDump()
    const health: Pick<SecondFrame, 'status' | 'readiness' | 'routes'> = {}
    if (this.#isNews('readiness', readiness)) health.readiness = readiness
    if (this.#isNews('status', status)) {
      const routes = await registry.getRoutes()
      this.#learnRoutes(routes)
      Object.assign(health, { status, routes: singleRoutes(routes) })
    }
    if (this.total === null) return
    this.#send({
      type: 'second',
      at_ms: Date.now(),
      events_total: this.total,
      topology: Object.fromEntries(
        Object.entries(topology).filter(([event, entry]) => this.#isNews(`event ${event}`, entry)),
      ),
      calls,
      calls_seconds: secondsSince(this.#callsSinceMs, Date.now()),
      work: this.#work.turn(lanes, Date.now()),
      lanes: lanes.map(summaryOf),
      process: this.#process(),
      ...health,
    })
  }

  #isNews(name: string, value: unknown): boolean {
    const text = JSON.stringify(value)
    const isNews = this.#known.get(name) !== text
    this.#known.set(name, text)
    return isNews
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
