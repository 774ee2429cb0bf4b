// What the tools of a thread are built on, in a lane as in the primary.
import type { Owner } from '../../contracts/common.ts'
import type { FetchMount, Hook, Route, StaticMount } from '../../contracts/http.ts'
import type { LogLevel, LogSink } from '../../contracts/logger.ts'
import type { MetricRecord, MetricsSink, RequestSink, SystemDump, ToolStatus } from '../../contracts/registry.ts'
import type { JobDefinition } from '../../contracts/scheduler.ts'
import type { ProcessServices, ToolHost } from '../../contracts/tool.ts'
import type { CodeTracing, Origin, ToolTracing, Work } from '../../contracts/tracing.ts'
import { causality, NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import { HeddleError, toWire } from '../../core/errors/catalogue.ts'
import { messageWithCauses } from '../../core/errors/description.ts'
import { callerPlace } from '../../core/errors/places.ts'
import { contractText } from '../../core/schemas/json-schema.ts'
import { ClaimMemory } from '../../transport/memory/claim-memory.ts'
import type { JobFault, RouteManifest } from '../../transport/messages.ts'
import { faultRecord } from '../advice/fault-record.ts'
import type { FixFacts } from '../advice/fixes.ts'
import { PluginTransactions } from '../effects/transactions.ts'
import { useCookieSecrets } from '../endpoint/cookies.ts'
import { mountEndpoint } from '../endpoint/fetch-handler.ts'
import { Idempotency } from '../endpoint/idempotency.ts'
import type { RequestServer } from '../endpoint/request-server.ts'
import { callsCommit } from '../endpoint/route.ts'
import type { ToolFolder } from '../kernel/discover.ts'
import type { ThreadKernel } from '../kernel/thread.ts'
import type { Toolbox } from '../kernel/toolbox.ts'
import type { ThreadBus } from './bus.ts'
import type { RunningJob } from './running-job.ts'

/** Records the work of plugins, and their calls of tools. */
export type Recorder = CodeTracing & { readonly tools: ToolTracing }

export interface HostParts {
  kernel: ThreadKernel
  /** Runs its routes. */
  server: RequestServer
  bus: ThreadBus
  /** What only the primary knows. */
  services: ProcessServices
  /** Resolves when the runtime's own tables in the database can be used. */
  opened: () => Promise<void>
}

/**
 * What hosts plugins in one thread: its tools, its routes, its events, and what makes their effects happen once. For tools it is the host: what plugins
 * register, and what tools ask for. What becomes of it is the thread's own.
 */
export abstract class ThreadHost implements ToolHost {
  readonly kernel: ThreadKernel
  readonly server: RequestServer
  readonly bus: ThreadBus
  /** Of the tool `db`, begun for plugins. */
  readonly transactions: PluginTransactions
  /** Those that plugins have registered. */
  readonly routes: { readonly number: number; readonly manifest: RouteManifest; readonly route: Route }[] = []
  readonly jobList: JobDefinition[] = []
  readonly services: ProcessServices

  constructor({ kernel, server, bus, services, opened }: HostParts) {
    const { settings, shared, toolbox } = kernel
    this.kernel = kernel
    this.server = server
    this.bus = bus
    this.services = services
    this.transactions = new PluginTransactions(toolbox, (plugin) => bus.beginTransaction(plugin), opened)
    server.maxKeys = settings.httpMaxKeys
    server.effects = {
      transactions: this.transactions,
      idempotency: new Idempotency(this.transactions, new ClaimMemory(shared.claims), settings.replicaId),
      timeoutMs: settings.httpHandlerTimeoutMs,
      log: (message, plugin, fields) => kernel.writeLog('ERROR', message, plugin, fields),
    }
    useCookieSecrets(settings)
    kernel.plugins.onUnguarded = (setup) => server.hooks.bar(setup)
    kernel.plugins.onBooted = (plugin) => {
      for (const { route } of this.routes) if (route.owner.name === plugin) server.hooks.requireCaller(route)
    }
  }

  /** Makes the tools of this thread. @throws as `Toolbox.install` */
  async install(folders: readonly ToolFolder[]): Promise<void> {
    const { toolbox } = this.kernel
    await toolbox.install(folders, this.kernel.runtimeFactory(this))
    this.server.tokens.isRevoked = (claims) => toolbox.isRevoked(claims)
  }

  /** Records from now on what the plugins of this thread do. */
  record(recorder: Recorder): void {
    this.kernel.meter.setTracing(recorder.tools)
    this.server.tracing = recorder
    this.bus.events.tracing = recorder
  }

  /** Takes back what a plugin has registered that has failed. */
  drop(plugin: string): void {
    this.bus.drop(plugin)
    keep(this.routes, ({ route }) => route.owner.name !== plugin)
    keep(this.jobList, ({ owner }) => owner.name !== plugin)
  }

  // ── what plugins register ─────────────────────────────────────────────────

  /** @returns the route's number; -1 where the primary gives it later. @throws HTTP_ROUTE_TAKEN */
  protected abstract numberOf(manifest: RouteManifest): number
  abstract mountStatic(mount: StaticMount): void

  addRoute(route: Route): void {
    this.requireBoot(route, `${route.method} ${route.path}`)
    requireDb(route, this.kernel.toolbox)
    const manifest = routeManifest(route)
    const number = this.numberOf(manifest)
    const hosted = { manifest, route: placed(route), number }
    this.routes.push(hosted)
    if (number >= 0) this.server.add(number, hosted.route)
  }

  mount(mount: FetchMount): void {
    this.addRoute(mountEndpoint(mount))
  }

  /** With the place of the call that registers it. @throws HTTP_HOOK_INVALID after the boot */
  addHook(hook: Omit<Hook, 'place'>): void {
    if (this.#isOver(hook))
      throw new HeddleError('HTTP_HOOK_INVALID', `${hook.kind}: hooks are registered while the plugin boots, not later`)
    this.server.hooks.add({ ...hook, place: callerPlace() })
  }

  addJob(job: JobDefinition): void {
    if (this.#isOver(job)) {
      const message = `Job ${job.name}: jobs are registered while the plugin boots, not later`
      throw new HeddleError('SCHEDULER_INVALID', message)
    }
    this.jobList.push(job)
  }

  /** @throws HTTP_HOOK_INVALID, HTTP_PATH_INVALID for what is no plugin's, or comes after its boot */
  protected requireBoot({ owner }: Pick<Route, 'owner'>, what: string): void {
    requirePlugin(owner, what)
    if (this.#isOver({ owner }))
      throw new HeddleError('HTTP_PATH_INVALID', `${what}: routes are registered while the plugin boots, not later`)
  }

  /** True when the boot is over in which the owner may register. */
  #isOver({ owner }: Pick<Route, 'owner'>): boolean {
    return this.kernel.isBooted && !this.kernel.plugins.isLate(owner.name)
  }

  // ── what tools ask for ────────────────────────────────────────────────────

  abstract addRequestSink(sink: RequestSink): () => void
  abstract systemDump(): SystemDump
  abstract updateToolStatus(tool: string, status: ToolStatus, message: string | null): void

  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    this.kernel.writeLog(level, message, identity, fields)
  }
  addLogSink(sink: LogSink): () => void {
    return this.kernel.addLogSink(sink)
  }
  addMetricsSink(sink: MetricsSink): () => void {
    return this.kernel.addMetricsSink(sink)
  }
  metrics(): MetricRecord[] {
    return this.kernel.recentMetrics()
  }
}

/** A route of a plugin as the table of routes has it. */
export function routeManifest(route: Route): RouteManifest {
  const { owner, method, path, kind, options } = route
  const { timeoutMs, tags = [], summary, description, body, maxBytes } = options
  return {
    plugin: owner.name,
    method,
    path,
    kind,
    timeoutMs,
    isBodyStreamed: typeof body === 'string',
    maxBytes,
    ...(kind === 'endpoint' && route.crossOrigin && { crossOrigin: true }),
    tags,
    summary,
    description,
    contract: contractText(options),
  }
}

/** A route with the place of the call that registers it, where its guards want it. */
const placed = (route: Route): Route =>
  route.options.guards === undefined ? route : { ...route, place: callerPlace() }

/** @throws TOOL_MISSING for a route that could not answer without the database */
function requireDb(route: Route, toolbox: Pick<Toolbox, 'get'>): void {
  if (route.kind !== 'endpoint' || toolbox.get('db') !== undefined) return
  if (route.options.idempotency === undefined && !callsCommit(route.handler)) return
  throw new HeddleError('TOOL_MISSING', 'Missing tool: db')
}

/** @throws HTTP_HOOK_INVALID for what only a plugin may register */
function requirePlugin({ hooksOf }: Owner, what: string): void {
  if (hooksOf === undefined) return
  const file = hooksOf === 'domain' ? 'domain.ts' : 'app.ts'
  throw new HeddleError('HTTP_HOOK_INVALID', `${what}: ${file} registers hooks alone, routes belong in plugins`)
}

/** Removes from a list what is not to be kept. */
function keep<T>(list: T[], isKept: (each: T) => boolean): void {
  list.splice(0, list.length, ...list.filter(isKept))
}

/**
 * Runs a job once. It has no cause, so it begins a trace of its own while tracing is on.
 * @param origin null in the primary, which has no use for it: a context would cost all of its promises time
 */
export async function runJob(
  { name, handler, owner }: JobDefinition,
  run: RunningJob,
  tracing: CodeTracing | null,
  origin: Origin | null,
): Promise<void> {
  if (tracing === null && origin === null) return void (await handler.call(owner.instance, run))
  const { id: key, askedBy } = run
  const attributes = {
    'heddle.plugin': owner.name,
    'heddle.job': name,
    ...(askedBy === null ? {} : { 'heddle.job.asked_by': askedBy }),
  }
  const work: Work = { kind: 'job', requestId: null, key, eventId: null, askedBy }
  const span = tracing?.open(NO_TRACE_CONTEXT, `${owner.name}/${name}`, attributes, work) ?? null
  const cause = { eventId: null, requestId: null, trace: span, origin }
  try {
    await causality.run(cause, () => handler.call(owner.instance, run))
    span?.end()
  } catch (thrown) {
    span?.fail(thrown)
    throw thrown
  }
}

/** Why a job failed: with the line of its plugin, and its fix, as far as they are known. */
export function jobFault({ name, owner }: JobDefinition, thrown: unknown, facts: FixFacts): JobFault {
  const { details: _, ...error } = toWire(thrown)
  const { line, fix } = faultRecord(name, owner.name, '', thrown, facts).fields as { line?: string; fix?: string }
  return {
    ...error,
    message: messageWithCauses(thrown),
    ...(line === undefined ? {} : { line }),
    ...(fix === undefined ? {} : { fix }),
  }
}
