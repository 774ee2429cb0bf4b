// What the primary hosts: its own plugins, what they register, and their errors that nobody catches.
import type { Owner } from '../../contracts/common.ts'
import type { StaticMount } from '../../contracts/http.ts'
import type { RequestSink, SystemDump, ToolStatus } from '../../contracts/registry.ts'
import type { JobDefinition } from '../../contracts/scheduler.ts'
import type { ProcessServices, ToolHost } from '../../contracts/tool.ts'
import type { ObservedRequest, RequestWatcher } from '../../contracts/tracing.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { framesOfStack, isOfPlugin, placeText, shown } from '../../core/errors/places.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import type { ProcessHistory } from '../../history/process-history.ts'
import { mountEndpoints } from '../../runtime/endpoint/files/static-files.ts'
import { type HostParts, type Recorder, routeManifest, ThreadHost } from '../../runtime/host/host.ts'
import { added, tellAll } from '../../runtime/kernel/listeners.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { RouteManifest } from '../../transport/messages.ts'
import type { LocalWorker } from '../dispatch/local-worker.ts'
import type { Health } from '../health/health.ts'
import type { Routing } from '../http/routes.ts'
import type { Jobs } from '../jobs/jobs.ts'

/** What tools and lanes ask of the history. @param history null where none is kept: then each throws HISTORY_OFF */
export function keptRequests(
  history: () => ProcessHistory | null,
): Pick<ProcessServices, 'requests' | 'request' | 'workReport'> {
  const kept = (): ProcessHistory => {
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

/** The parts of the primary that its host uses. */
export interface PrimaryParts {
  readonly local: LocalWorker
  readonly routing: Routing
  readonly jobs: Jobs
  readonly health: Health
  /** Who hears of each request. */
  readonly requestWatchers: RequestWatcher[]
  /** True where the primary runs without lanes and serves folders itself. */
  readonly hasNoLanes?: boolean
}

/** The host of the primary: connects its tools to its other parts. Routes are registered at once, so that a rival is named at its line. */
export class PrimaryHost extends ThreadHost implements RequestWatcher {
  readonly #parts: PrimaryParts
  readonly #requestSinks: RequestSink[] = []
  /** Plugins with hooks of their own. */
  readonly #guarded = new Set<string>()
  /** Plugins with folders. */
  readonly #mounting = new Set<string>()

  constructor(host: Omit<HostParts, 'server'>, parts: PrimaryParts) {
    super({ ...host, server: parts.local.server })
    this.#parts = parts
  }

  override addHook(hook: Parameters<ToolHost['addHook']>[0]): void {
    this.#guarded.add(hook.owner.name)
    this.#requireOwnThread(hook.owner)
    super.addHook(hook)
  }

  /** All plugins have booted: their routes get the hooks of all. */
  settle(): void {
    this.kernel.isBooted = true
    const { routing } = this.#parts
    this.server.settleHooks()
    for (const { number, route } of this.routes) {
      const contract = this.server.hooks.contractOf(route)
      if (contract !== undefined) routing.describe(number, contract)
    }
  }

  protected numberOf(manifest: RouteManifest): number {
    return this.#parts.routing.addLocal(manifest)
  }

  override addJob(job: JobDefinition): void {
    super.addJob(job)
    this.#parts.jobs.addLocal(job)
  }

  mountStatic(mount: StaticMount): void {
    const { owner, prefix, directory } = mount
    this.requireBoot(mount, `folder under ${prefix}`)
    const endpoints = mountEndpoints(mount)
    this.#mounting.add(owner.name)
    this.#requireOwnThread(owner)
    if (this.#parts.hasNoLanes) {
      for (const endpoint of endpoints) this.addRoute(endpoint)
      return
    }
    this.#parts.routing.addMount({ plugin: owner.name, prefix, directory }, endpoints.map(routeManifest))
  }

  /** The lanes serve the folders of the primary's plugins, and do not have the hooks that these register. */
  #requireOwnThread({ name }: Owner): void {
    if (!this.#guarded.has(name) || !this.#mounting.has(name) || this.#parts.hasNoLanes) return
    throw new HeddleError(
      'HTTP_HOOK_INVALID',
      'A plugin on the primary has either hooks or folders: put the hooks into domain.ts, or the folder into another plugin',
    )
  }

  override record(recorder: Recorder): void {
    super.record(recorder)
    this.#parts.jobs.tracing = recorder
  }

  override drop(plugin: string): void {
    super.drop(plugin)
    this.#parts.routing.drop(plugin)
    this.#parts.jobs.dropLocal(plugin)
  }

  /** Without a sink a request costs nothing. */
  addRequestSink(sink: RequestSink): () => void {
    const { requestWatchers } = this.#parts
    if (this.#requestSinks.length === 0) requestWatchers.push(this)
    const remove = added(this.#requestSinks, sink)
    return () => {
      remove()
      const at = requestWatchers.indexOf(this)
      if (this.#requestSinks.length === 0 && at >= 0) requestWatchers.splice(at, 1)
    }
  }
  /** A request has ended, and some plugin wants to hear of it. */
  ended({ requestId, method, route, startMs }: ObservedRequest, status: number, endMs: number): void {
    const { path = '', plugin = '' } = route ?? {}
    // Its own pages poll.
    if (path.startsWith('/system/') && status < 500) return
    const record = { request_id: requestId, method, route: path, plugin, status, duration_ms: endMs - startMs }
    tellAll(this.#requestSinks, record, (thrown) => this.kernel.sinkFault('request sink', thrown))
  }
  systemDump(): SystemDump {
    return this.#parts.health.dump()
  }
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void {
    this.#parts.health.setTool(tool, status, message)
  }
}

/** Such errors are logged at most this often, milliseconds: an interval may throw at each turn. */
const LOG_PAUSE_MS = 1000

/**
 * Holds what the timers, sockets and promises of the primary's plugins throw where nobody catches it: it ended the process, and again each further
 * one that a guardian started. An error that comes from no plugin's code ends the process still.
 */
export class StrayFaults {
  readonly #kernel: ThreadKernel
  readonly #leaveOut: (plugin: string, reason: string) => void
  #isServing = false
  #loggedMs = Number.NEGATIVE_INFINITY
  #leftOut = 0

  /**
   * @param kernel of the primary
   * @param leaveOut told of a plugin that is not served any more
   */
  constructor(kernel: ThreadKernel, leaveOut: (plugin: string, reason: string) => void) {
    this.#kernel = kernel
    this.#leaveOut = leaveOut
    process.on('uncaughtException', this.#hold)
  }

  /** From now on it may be a handler that has made what throws: it costs its plugin no more than a line of the log. */
  serving(): void {
    this.#isServing = true
  }

  readonly #hold = (error: unknown): void => {
    const { plugins } = this.#kernel
    const stack = framesOfStack(stackOf(error) ?? '')
    const pluginOf = new Map(Object.entries(plugins.files).map(([plugin, file]) => [file, plugin]))
    const frame = stack.find(({ file }) => isOfPlugin(file) && file.startsWith('/'))
    const file = stack.find((each) => pluginOf.has(each.file))?.file ?? plugins.bootingFile
    if (file === null && frame === undefined) return this.#pass(error)
    const plugin = pluginOf.get(file ?? '')
    const what = `${messageOf(error)} (${frame === undefined ? shown(file!) : placeText(frame)})`
    this.#tell(plugin ?? shown(file ?? frame!.file), what, error)
    if (file !== null && file === plugins.bootingFile)
      plugins.strayed(`It threw as it booted, where nobody catches it: ${what}`)
    else if (plugin !== undefined && !this.#isServing)
      this.#leaveOut(plugin, `It threw soon after its boot, where nobody catches it: ${what}`)
  }

  /** As Node would do without this. */
  #pass(error: unknown): void {
    process.off('uncaughtException', this.#hold)
    process.nextTick(() => {
      throw error
    })
  }

  #tell(whose: string, what: string, error: unknown): void {
    const nowMs = steadyMs()
    if (nowMs - this.#loggedMs < LOG_PAUSE_MS) {
      this.#leftOut++
      return
    }
    const before = this.#leftOut === 0 ? '' : `; ${this.#leftOut} more errors before this one`
    this.#loggedMs = nowMs
    this.#leftOut = 0
    this.#kernel.writeLog('ERROR', `${whose} threw where nobody catches it: ${what}${before}`, 'kernel', {
      stack: stackOf(error),
    })
  }
}
