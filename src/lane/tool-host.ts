import type { BusTransport } from '../contracts/event-bus.ts'
import type { Endpoint, Hook, SocketRoute, StaticMount, Stream } from '../contracts/http.ts'
import type { LogLevel, LogSink } from '../contracts/logger.ts'
import type {
  LaneInfo,
  MetricRecord,
  MetricsSink,
  ProcessCounter,
  Readiness,
  RouteInfo,
  SystemDump,
  ToolStatus,
} from '../contracts/registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from '../contracts/requests.ts'
import type { JobDefinition, JobInfo } from '../contracts/scheduler.ts'
import type { ToolHost } from '../contracts/tool.ts'
import type { Settings } from '../core/config/schema.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { mountEndpoints } from '../runtime/endpoint/files/static-files.ts'
import { type Hooks, ignoresHeaders, routeShape } from '../runtime/endpoint/route.ts'
import { placed, registeredHook, requireDb, requirePlugin, routeManifest } from '../runtime/host/registrations.ts'
import type { ThreadKernel } from '../runtime/kernel/thread.ts'
import { LogRate, limitRecord, newRecord } from '../runtime/log-records.ts'
import { KIND } from '../transport/frames/frames.ts'
import type { JobManifest, RouteManifest, ToPrimary } from '../transport/messages.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { PrimaryCalls } from './ring-ports.ts'

/** A route as a plugin of this lane registered it. */
export interface LaneRoute {
  manifest: RouteManifest
  endpoint: Endpoint | null
  stream: Stream | null
  socket: SocketRoute | null
}

type LaneHostSettings = Pick<Settings, 'logPluginRate' | 'logRecordBytes' | 'httpCompression'>

/** The tool host of a lane. Collects what plugins register, and reports it to the primary when the lane has booted. */
export class LaneToolHost implements ToolHost {
  readonly routes: LaneRoute[] = []
  readonly jobList: { definition: JobDefinition; manifest: JobManifest }[] = []
  readonly #outbox: Outbox
  readonly #calls: PrimaryCalls
  readonly #post: (message: ToPrimary) => void
  readonly #logRate: LogRate
  readonly #logRecordBytes: number
  readonly #isCompressing: boolean
  #kernel!: ThreadKernel
  #bus!: BusTransport
  #hooks!: Hooks
  dump: SystemDump = { tools: {}, plugins: {}, lanes: {} }
  isBooted = false

  constructor(
    outbox: Outbox,
    calls: PrimaryCalls,
    post: (message: ToPrimary) => void,
    { logPluginRate, logRecordBytes, httpCompression }: LaneHostSettings,
  ) {
    this.#outbox = outbox
    this.#calls = calls
    this.#post = post
    this.#logRecordBytes = logRecordBytes
    this.#isCompressing = httpCompression
    this.#logRate = new LogRate({
      perSecond: logPluginRate,
      onLeftOut: (identity, message, leftOut) => this.#sendLog('WARNING', message, identity, leftOut),
    })
  }

  /** Closes the circle: the tools of the kernel need the host, and the host needs the sinks of the kernel. */
  connect(kernel: ThreadKernel, bus: BusTransport, hooks: Hooks): void {
    this.#kernel = kernel
    this.#hooks = hooks
    this.#bus = bus
    kernel.plugins.onBooted = (plugin) => {
      for (const { endpoint } of this.routes) if (endpoint?.owner.name === plugin) hooks.requireCaller(endpoint)
    }
  }

  get bus(): BusTransport {
    return this.#bus
  }

  addEndpoint(endpoint: Endpoint): void {
    requireDb(endpoint, this.#kernel.toolbox)
    this.#addRoute({
      manifest: routeManifest(endpoint, 'endpoint'),
      endpoint: placed(endpoint),
      stream: null,
      socket: null,
    })
  }

  addStream(stream: Stream): void {
    const manifest = routeManifest({ ...stream, method: 'GET' }, 'stream')
    this.#addRoute({ manifest, endpoint: null, stream: placed(stream), socket: null })
  }

  addWebSocket(socket: SocketRoute): void {
    const manifest = routeManifest({ ...socket, method: 'GET' }, 'socket')
    this.#addRoute({ manifest, endpoint: null, stream: null, socket: placed(socket) })
  }

  mountStatic(mount: StaticMount): void {
    for (const endpoint of mountEndpoints(mount)) this.addEndpoint(endpoint)
  }

  addHook(hook: Omit<Hook, 'place'>): void {
    this.#hooks.add(registeredHook(hook, this.isBooted))
  }

  /** The routes as the primary gets them: with what their hooks do, which are all known by now. */
  manifests(): RouteManifest[] {
    return this.routes.map(({ manifest, endpoint, stream, socket }) => {
      const contract = this.#hooks.contractOf((endpoint ?? stream ?? socket)!) ?? manifest.contract
      return { ...manifest, contract, ignoresHeaders: endpoint !== null && this.#ignoresHeaders(endpoint) }
    })
  }

  #ignoresHeaders(endpoint: Endpoint): boolean {
    if (this.#isCompressing || this.#hooks.chainOf(endpoint) !== null) return false
    return ignoresHeaders(endpoint.handler, endpoint.options)
  }

  #addRoute(route: LaneRoute): void {
    const { method, path } = route.manifest
    requirePlugin((route.endpoint ?? route.stream ?? route.socket)!.owner, `${method} ${path}`)
    if (this.isBooted) {
      throw new HeddleError(
        'HTTP_PATH_INVALID',
        `${method} ${path}: routes are registered while the plugin boots, not later`,
      )
    }
    const first = this.routes.find(
      ({ manifest }) => routeShape(manifest.method, manifest.path) === routeShape(method, path),
    )
    if (first !== undefined) {
      throw new HeddleError('HTTP_ROUTE_TAKEN', `${method} ${path} is registered already by ${first.manifest.plugin}`)
    }
    this.routes.push(route)
  }

  addJob(definition: JobDefinition): void {
    const { owner, name, schedule, missed } = definition
    if (this.isBooted)
      throw new HeddleError('SCHEDULER_INVALID', `Job ${name}: jobs are registered while the plugin boots, not later`)
    this.jobList.push({ definition, manifest: { plugin: owner.name, name, schedule, missed } })
  }

  jobs(): Promise<JobInfo[]> {
    return this.#calls.call('#host', 'jobs', []) as Promise<JobInfo[]>
  }

  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    if (this.#logRate.admits(level, identity)) this.#sendLog(level, message, identity, fields)
  }

  #sendLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    const { record, json } = limitRecord(newRecord(level, message, identity, fields), this.#logRecordBytes)
    if (!this.#outbox.sendText(KIND.LOG, 0, json)) this.#logRate.leaveOut(level, identity)
    this.#kernel.tellLogSinks(record)
  }

  addLogSink(sink: LogSink): () => void {
    if (!this.#kernel.hasLogSinks) this.#post({ type: 'listen', feed: 'logs', on: true })
    const remove = this.#kernel.addLogSink(sink)
    return () => {
      remove()
      if (!this.#kernel.hasLogSinks) this.#post({ type: 'listen', feed: 'logs', on: false })
    }
  }

  addMetricsSink(sink: MetricsSink): () => void {
    return this.#kernel.addMetricsSink(sink)
  }

  addRequestSink(): never {
    throw new TypeError(
      "registry.addRequestSink: only the primary sees all requests; set `thread: 'primary'`, in a class `static thread = 'primary'`",
    )
  }

  metrics(): MetricRecord[] {
    return this.#kernel.recentMetrics()
  }

  systemDump(): SystemDump {
    return structuredClone(this.dump)
  }

  lanes(): Promise<LaneInfo[]> {
    return this.#calls.call('#host', 'lanes', []) as Promise<LaneInfo[]>
  }

  readiness(): Promise<Readiness> {
    return this.#calls.call('#host', 'readiness', []) as Promise<Readiness>
  }

  counters(): Promise<ProcessCounter[]> {
    return this.#calls.call('#host', 'counters', []) as Promise<ProcessCounter[]>
  }

  requests(filter: RequestFilter): Promise<RequestSummary[]> {
    return this.#calls.call('#host', 'keptRequests', [filter]) as Promise<RequestSummary[]>
  }

  request(id: string): Promise<RequestDetail | null> {
    return this.#calls.call('#host', 'keptRequest', [id]) as Promise<RequestDetail | null>
  }

  workReport(span: WorkSpan): Promise<WorkReport> {
    return this.#calls.call('#host', 'workReport', [span]) as Promise<WorkReport>
  }

  routeList(): Promise<RouteInfo[]> {
    return this.#calls.call('#host', 'routeList', []) as Promise<RouteInfo[]>
  }

  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#post({ type: 'set-tool', tool, status, message })
  }
}
