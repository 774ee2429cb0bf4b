import type { Endpoint, StaticMount, Stream } from '../../contracts/http.ts'
import type { LogLevel, LogSink } from '../../contracts/logger.ts'
import type {
  LaneInfo,
  MetricRecord,
  MetricsSink,
  ProcessCounter,
  Readiness,
  SystemDump,
  ToolStatus,
} from '../../contracts/registry.ts'
import type { RouteInfo } from '../../contracts/route-info.ts'
import type { JobDefinition, JobInfo } from '../../contracts/scheduler.ts'
import type { ToolHost } from '../../contracts/tool.ts'
import type { SocketRoute } from '../../contracts/web-socket.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { mountEndpoints } from '../../runtime/endpoint/mount.ts'
import { routeManifest } from '../../runtime/endpoint/route-manifest.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { RouteManifest } from '../../transport/messages.ts'
import type { PrimaryBus } from '../events/primary-bus.ts'
import type { LocalWorker } from '../http/local-worker.ts'
import { routeInfo } from '../http/route-info.ts'
import type { Routing } from '../http/routing.ts'

/** The parts of the primary that its tools use. */
export interface PrimaryToolHostOptions {
  readonly bus: PrimaryBus
  readonly local: LocalWorker
  readonly routing: Routing
  readonly kernel: ThreadKernel
  log(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
  dump(): SystemDump
  lanes(): LaneInfo[]
  readiness(): Readiness
  counters(): ProcessCounter[]
  setTool(tool: string, status: ToolStatus, message: string | null): void
  addJob(job: JobDefinition): void
  jobs(): JobInfo[]
  /** True where the primary runs without lanes and serves folders itself. */
  readonly hasNoLanes?: boolean
}

/** The tool host of the primary: connects its tools to its other parts. */
export class PrimaryToolHost implements ToolHost {
  readonly #options: PrimaryToolHostOptions
  isBooted = false

  constructor(options: PrimaryToolHostOptions) {
    this.#options = options
  }

  get bus(): PrimaryBus {
    return this.#options.bus
  }

  addEndpoint(endpoint: Endpoint): void {
    const number = this.#addRoute(routeManifest(endpoint, 'endpoint'))
    this.#options.local.server.addEndpoint(number, endpoint)
  }

  addStream(stream: Stream): void {
    const number = this.#addRoute(routeManifest({ ...stream, method: 'GET' }, 'stream'))
    this.#options.local.server.addStream(number, stream)
  }

  addWebSocket(socket: SocketRoute): void {
    const number = this.#addRoute(routeManifest({ ...socket, method: 'GET' }, 'socket'))
    this.#options.local.server.addWebSocket(number, socket)
  }

  mountStatic(mount: StaticMount): void {
    const { owner, prefix, directory } = mount
    this.#requireBoot(`folder under ${prefix}`)
    const endpoints = mountEndpoints(mount)
    if (this.#options.hasNoLanes) {
      for (const endpoint of endpoints) this.addEndpoint(endpoint)
      return
    }
    const routes = endpoints.map(
      ({ method, path, options: { summary } }): RouteManifest => ({
        plugin: owner.name,
        method,
        path,
        isStream: false,
        timeoutMs: undefined,
        tags: [],
        summary,
      }),
    )
    this.#options.routing.addMount({ plugin: owner.name, prefix, directory }, routes)
  }

  #requireBoot(what: string): void {
    if (this.isBooted) throw new HeddleError('HTTP_PATH_INVALID', `${what}: routes are registered in onBoot, not later`)
  }

  #addRoute(route: RouteManifest): number {
    this.#requireBoot(`${route.method} ${route.path}`)
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
  routeList(): RouteInfo[] {
    return this.#options.routing.table.list().map(routeInfo)
  }
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#options.setTool(tool, status, message)
  }
  addJob(job: JobDefinition): void {
    if (this.isBooted)
      throw new HeddleError('SCHEDULER_INVALID', `Job ${job.name}: jobs are registered in onBoot, not later`)
    this.#options.addJob(job)
  }
  jobs(): JobInfo[] {
    return this.#options.jobs()
  }
}
