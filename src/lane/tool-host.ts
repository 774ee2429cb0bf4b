import type { BusTransport } from '../contracts/event-bus.ts'
import type { Endpoint, StaticMount } from '../contracts/http.ts'
import type { LogLevel, LogSink } from '../contracts/logger.ts'
import type { SystemDump, ToolStatus } from '../contracts/registry.ts'
import type { JobDefinition } from '../contracts/scheduler.ts'
import type { Settings } from '../core/config/schema.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { mountEndpoints } from '../runtime/endpoint/files/static-files.ts'
import { type Hooks, ignoresHeaders, routeShape } from '../runtime/endpoint/route.ts'
import { type HostedRoute, ThreadHost } from '../runtime/host/host.ts'
import type { ProcessServices } from '../runtime/host/services.ts'
import type { ThreadKernel } from '../runtime/kernel/thread.ts'
import { LogRate, limitRecord, newRecord } from '../runtime/log-records.ts'
import { KIND } from '../transport/frames/frames.ts'
import type { JobManifest, RouteManifest, ToPrimary } from '../transport/messages.ts'
import type { Outbox } from '../transport/rings/outbox.ts'

interface LaneHostOptions {
  readonly settings: Pick<Settings, 'logPluginRate' | 'logRecordBytes' | 'httpCompression'>
  readonly bus: BusTransport
  readonly outbox: Outbox
  post(message: ToPrimary): void
}

/** The tool host of a lane. Collects what plugins register, and reports it to the primary when the lane has booted. */
export class LaneToolHost extends ThreadHost {
  readonly bus: BusTransport
  readonly routes: HostedRoute[] = []
  readonly jobList: { definition: JobDefinition; manifest: JobManifest }[] = []
  readonly #options: LaneHostOptions
  readonly #logRate: LogRate
  dump: SystemDump = { tools: {}, plugins: {}, lanes: {} }

  constructor(kernel: ThreadKernel, hooks: Hooks, services: ProcessServices, options: LaneHostOptions) {
    super(kernel, hooks, services)
    this.#options = options
    this.bus = options.bus
    this.#logRate = new LogRate({
      perSecond: options.settings.logPluginRate,
      onLeftOut: (identity, message, leftOut) => this.#sendLog('WARNING', message, identity, leftOut),
    })
  }

  protected hostRoute(route: HostedRoute): void {
    const { method, path } = route.manifest
    const shape = routeShape(method, path)
    const first = this.routes.find(({ manifest }) => routeShape(manifest.method, manifest.path) === shape)
    if (first !== undefined)
      throw new HeddleError('HTTP_ROUTE_TAKEN', `${method} ${path} is registered already by ${first.manifest.plugin}`)
    this.routes.push(route)
  }

  protected hostJob(definition: JobDefinition): void {
    const { owner, name, schedule, missed } = definition
    this.jobList.push({ definition, manifest: { plugin: owner.name, name, schedule, missed } })
  }

  mountStatic(mount: StaticMount): void {
    for (const endpoint of mountEndpoints(mount)) this.addEndpoint(endpoint)
  }

  /** The routes as the primary gets them: with what their hooks do, which are all known by now. */
  manifests(): RouteManifest[] {
    return this.routes.map(({ manifest, kind, route }) => {
      const contract = this.hooks.contractOf(route) ?? manifest.contract
      return { ...manifest, contract, ignoresHeaders: kind === 'endpoint' && this.#ignoresHeaders(route) }
    })
  }

  #ignoresHeaders(endpoint: Endpoint): boolean {
    if (this.#options.settings.httpCompression || this.hooks.chainOf(endpoint) !== null) return false
    return ignoresHeaders(endpoint.handler, endpoint.options)
  }

  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    if (this.#logRate.admits(level, identity)) this.#sendLog(level, message, identity, fields)
  }

  #sendLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    const { outbox, settings } = this.#options
    const { record, json } = limitRecord(newRecord(level, message, identity, fields), settings.logRecordBytes)
    if (!outbox.sendText(KIND.LOG, 0, json)) this.#logRate.leaveOut(level, identity)
    this.kernel.tellLogSinks(record)
  }

  override addLogSink(sink: LogSink): () => void {
    const listen = (on: boolean): void => {
      if (!this.kernel.hasLogSinks) this.#options.post({ type: 'listen', feed: 'logs', on })
    }
    listen(true)
    const remove = super.addLogSink(sink)
    return () => {
      remove()
      listen(false)
    }
  }

  addRequestSink(): never {
    throw new TypeError(
      "registry.addRequestSink: only the primary sees all requests; set `thread: 'primary'`, in a class `static thread = 'primary'`",
    )
  }

  systemDump(): SystemDump {
    return structuredClone(this.dump)
  }

  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#options.post({ type: 'set-tool', tool, status, message })
  }
}
