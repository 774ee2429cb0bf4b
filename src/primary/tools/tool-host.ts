// What the tools of the primary are built on.
import type { Owner } from '../../contracts/common.ts'
import type { StaticMount } from '../../contracts/http.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { RequestSink, SystemDump, ToolStatus } from '../../contracts/registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from '../../contracts/requests.ts'
import type { JobDefinition } from '../../contracts/scheduler.ts'
import type { ToolHost } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { mountEndpoints } from '../../runtime/endpoint/files/static-files.ts'
import { type HostedRoute, serveRoute, ThreadHost } from '../../runtime/host/host.ts'
import type { ProcessServices } from '../../runtime/host/services.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { RouteManifest } from '../../transport/messages.ts'
import type { PrimaryBus } from '../events/primary-bus.ts'
import type { LocalWorker } from '../http/local-worker.ts'
import type { Routing } from '../http/routes.ts'

/** What the history answers. */
interface KeptRequests {
  list(filter: RequestFilter): Promise<RequestSummary[]>
  one(id: string): Promise<RequestDetail | null>
  figures(span: WorkSpan): Promise<WorkReport>
}

/** What tools and lanes ask of the history. @param history null where none is kept: then each throws HISTORY_OFF */
export function keptRequests(
  history: () => KeptRequests | null,
): Pick<ProcessServices, 'requests' | 'request' | 'workReport'> {
  const kept = (): KeptRequests => {
    const open = history()
    if (open === null) throw new HeddleError('HISTORY_OFF')
    return open
  }
  return {
    requests: (filter) => kept().list(filter),
    request: (id) => kept().one(id),
    workReport: async (span) => kept().figures(span),
  }
}

/** The parts of the primary that its tools use. */
export interface PrimaryToolHostOptions {
  readonly bus: PrimaryBus
  readonly local: LocalWorker
  readonly routing: Routing
  log(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
  addRequestSink(sink: RequestSink): () => void
  dump(): SystemDump
  setTool(tool: string, status: ToolStatus, message: string | null): void
  addJob(job: JobDefinition): void
  /** True where the primary runs without lanes and serves folders itself. */
  readonly hasNoLanes?: boolean
}

/** The tool host of the primary: connects its tools to its other parts. Routes are registered at once, so that a rival is named at its line. */
export class PrimaryToolHost extends ThreadHost {
  readonly bus: PrimaryBus
  readonly routes: (HostedRoute & { readonly number: number })[] = []
  readonly #options: PrimaryToolHostOptions
  /** Plugins with hooks of their own. */
  readonly #guarded = new Set<string>()
  /** Plugins with folders. */
  readonly #mounting = new Set<string>()

  constructor(kernel: ThreadKernel, services: ProcessServices, options: PrimaryToolHostOptions) {
    super(kernel, options.local.server.hooks, services)
    this.#options = options
    this.bus = options.bus
  }

  override addHook(hook: Parameters<ToolHost['addHook']>[0]): void {
    this.#guarded.add(hook.owner.name)
    this.#requireOwnThread(hook.owner)
    super.addHook(hook)
  }

  /** All plugins have booted: their routes get the hooks of all. */
  settle(): void {
    this.isBooted = true
    const { local, routing } = this.#options
    local.server.settleHooks()
    for (const { number, route } of this.routes) {
      const contract = this.hooks.contractOf(route)
      if (contract !== undefined) routing.describe(number, contract)
    }
  }

  protected hostRoute(route: HostedRoute): void {
    const { local, routing } = this.#options
    const number = routing.addLocal(route.manifest)
    this.routes.push({ ...route, number })
    serveRoute(local.server, number, route)
  }

  protected hostJob(job: JobDefinition): void {
    this.#options.addJob(job)
  }

  mountStatic(mount: StaticMount): void {
    const { owner, prefix, directory } = mount
    this.requireBoot(mount, `folder under ${prefix}`)
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

  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    this.#options.log(level, message, identity, fields)
  }
  addRequestSink(sink: RequestSink): () => void {
    return this.#options.addRequestSink(sink)
  }
  systemDump(): SystemDump {
    return this.#options.dump()
  }
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#options.setTool(tool, status, message)
  }
}
