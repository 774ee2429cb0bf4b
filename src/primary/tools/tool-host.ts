import type { Endpoint, Hook, SocketRoute, StaticMount, Stream } from '../../contracts/http.ts'
import type { LogLevel, LogSink } from '../../contracts/logger.ts'
import type { Owner } from '../../contracts/owner.ts'
import type {
  LaneInfo,
  MetricRecord,
  MetricsSink,
  ProcessCounter,
  Readiness,
  RequestSink,
  RouteInfo,
  SystemDump,
  ToolStatus,
} from '../../contracts/registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from '../../contracts/requests.ts'
import type { JobDefinition, JobInfo } from '../../contracts/scheduler.ts'
import type { ToolHost } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { mountEndpoints } from '../../runtime/endpoint/files/static-files.ts'
import { placed, registeredHook, requireDb, requirePlugin, routeManifest } from '../../runtime/host/registrations.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { RouteManifest } from '../../transport/messages.ts'
import type { PrimaryBus } from '../events/primary-bus.ts'
import type { LocalWorker } from '../http/local-worker.ts'
import { type Routing, routeInfo } from '../http/routes.ts'

/** What the history answers. */
export interface KeptRequests {
  list(filter: RequestFilter): Promise<RequestSummary[]>
  one(id: string): Promise<RequestDetail | null>
  figures(span: WorkSpan): Promise<WorkReport>
}

/** The parts of the primary that its tools use. */
export interface PrimaryToolHostOptions {
  readonly bus: PrimaryBus
  readonly local: LocalWorker
  readonly routing: Routing
  readonly kernel: ThreadKernel
  log(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
  addRequestSink(sink: RequestSink): () => void
  dump(): SystemDump
  lanes(): LaneInfo[]
  readiness(): Readiness
  counters(): ProcessCounter[]
  setTool(tool: string, status: ToolStatus, message: string | null): void
  addJob(job: JobDefinition): void
  jobs(): JobInfo[]
  /** Null where none is kept. */
  history(): KeptRequests | null
  /** True where the primary runs without lanes and serves folders itself. */
  readonly hasNoLanes?: boolean
}

type GuardedRoute = Endpoint | Stream | SocketRoute

/** The tool host of the primary: connects its tools to its other parts. */
export class PrimaryToolHost implements ToolHost {
  readonly #options: PrimaryToolHostOptions
  /** Plugins with hooks of their own. */
  readonly #guarded = new Set<string>()
  /** Plugins with folders. */
  readonly #mounting = new Set<string>()
  readonly #routes: { number: number; route: GuardedRoute }[] = []
  isBooted = false

  constructor(options: PrimaryToolHostOptions) {
    this.#options = options
    const { kernel, local } = options
    kernel.plugins.onBooted = (plugin) => {
      for (const { route } of this.#routes)
        if ('method' in route && route.owner.name === plugin) local.server.hooks.requireCaller(route)
    }
  }

  get bus(): PrimaryBus {
    return this.#options.bus
  }

  addHook(hook: Omit<Hook, 'place'>): void {
    const registered = registeredHook(hook, this.#isOver(hook.owner))
    this.#guarded.add(hook.owner.name)
    this.#requireOwnThread(hook.owner)
    this.#options.local.server.hooks.add(registered)
  }

  /** All plugins have booted: their routes get the hooks of all. */
  settle(): void {
    this.isBooted = true
    const { local, routing } = this.#options
    local.server.settleHooks()
    for (const { number, route } of this.#routes) {
      const contract = local.server.hooks.contractOf(route)
      if (contract !== undefined) routing.describe(number, contract)
    }
  }

  addEndpoint(endpoint: Endpoint): void {
    requirePlugin(endpoint.owner, `${endpoint.method} ${endpoint.path}`)
    requireDb(endpoint, this.#options.kernel.toolbox)
    const number = this.#addRoute(routeManifest(endpoint, 'endpoint'))
    this.#add(number, endpoint, (route) => this.#options.local.server.addEndpoint(number, route))
  }

  #add<Route extends GuardedRoute>(number: number, given: Route, add: (route: Route) => void): void {
    const route = placed(given)
    this.#routes.push({ number, route })
    add(route)
  }

  addStream(stream: Stream): void {
    requirePlugin(stream.owner, `stream ${stream.path}`)
    const number = this.#addRoute(routeManifest({ ...stream, method: 'GET' }, 'stream'))
    this.#add(number, stream, (route) => this.#options.local.server.addStream(number, route))
  }

  addWebSocket(socket: SocketRoute): void {
    requirePlugin(socket.owner, `socket ${socket.path}`)
    const number = this.#addRoute(routeManifest({ ...socket, method: 'GET' }, 'socket'))
    this.#add(number, socket, (route) => this.#options.local.server.addWebSocket(number, route))
  }

  mountStatic(mount: StaticMount): void {
    const { owner, prefix, directory } = mount
    requirePlugin(owner, `folder under ${prefix}`)
    this.#requireBoot(owner.name, `folder under ${prefix}`)
    const endpoints = mountEndpoints(mount)
    this.#mounting.add(owner.name)
    this.#requireOwnThread(owner)
    if (this.#options.hasNoLanes) {
      for (const endpoint of endpoints) this.addEndpoint(endpoint)
      return
    }
    const routes = endpoints.map(
      ({ method, path, options: { summary, description } }): RouteManifest => ({
        plugin: owner.name,
        method,
        path,
        isStream: false,
        timeoutMs: undefined,
        tags: [],
        summary,
        description,
      }),
    )
    this.#options.routing.addMount({ plugin: owner.name, prefix, directory }, routes)
  }

  /** The lanes serve the folders of the primary's plugins, and do not have the hooks that these register. */
  #requireOwnThread({ name }: Owner): void {
    if (!this.#guarded.has(name) || !this.#mounting.has(name) || this.#options.hasNoLanes) return
    throw new HeddleError(
      'HTTP_HOOK_INVALID',
      'A plugin on the primary has either hooks or folders: put the hooks into domain.ts, or the folder into another plugin',
    )
  }

  /** True when its boot is over, in which it may register. */
  #isOver({ name }: Pick<Owner, 'name'>): boolean {
    return this.isBooted && !this.#options.kernel.plugins.isLate(name)
  }

  #requireBoot(name: string, what: string): void {
    if (this.#isOver({ name }))
      throw new HeddleError('HTTP_PATH_INVALID', `${what}: routes are registered while the plugin boots, not later`)
  }

  #addRoute(route: RouteManifest): number {
    this.#requireBoot(route.plugin, `${route.method} ${route.path}`)
    return this.#options.routing.addLocal(route)
  }

  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    this.#options.log(level, message, identity, fields)
  }
  addLogSink(sink: LogSink): () => void {
    return this.#options.kernel.addLogSink(sink)
  }
  addMetricsSink(sink: MetricsSink): () => void {
    return this.#options.kernel.addMetricsSink(sink)
  }
  addRequestSink(sink: RequestSink): () => void {
    return this.#options.addRequestSink(sink)
  }
  metrics(): MetricRecord[] {
    return this.#options.kernel.recentMetrics()
  }
  systemDump(): SystemDump {
    return this.#options.dump()
  }
  lanes(): LaneInfo[] {
    return this.#options.lanes()
  }
  readiness(): Readiness {
    return this.#options.readiness()
  }
  counters(): ProcessCounter[] {
    return this.#options.counters()
  }
  requests(filter: RequestFilter): Promise<RequestSummary[]> {
    return this.#history.list(filter)
  }

  request(id: string): Promise<RequestDetail | null> {
    return this.#history.one(id)
  }

  async workReport(span: WorkSpan): Promise<WorkReport> {
    return this.#history.figures(span)
  }

  /** @throws HISTORY_OFF */
  get #history(): KeptRequests {
    const history = this.#options.history()
    if (history === null) throw new HeddleError('HISTORY_OFF')
    return history
  }

  routeList(): RouteInfo[] {
    return this.#options.routing.table.list().map(routeInfo)
  }
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#options.setTool(tool, status, message)
  }
  addJob(job: JobDefinition): void {
    if (this.#isOver(job.owner))
      throw new HeddleError(
        'SCHEDULER_INVALID',
        `Job ${job.name}: jobs are registered while the plugin boots, not later`,
      )
    this.#options.addJob(job)
  }
  jobs(): JobInfo[] {
    return this.#options.jobs()
  }
}
