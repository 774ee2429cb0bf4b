// What a tool gives the runtime, what it gets of it, and the tools of a plugin.
import type { Settings } from '../core/config/schema.ts'
import type { Auth } from './auth.ts'
import type { Awaitable, Owner } from './common.ts'
import type { Config } from './config.ts'
import type { Db } from './db.ts'
import type { BusTransport, EventBus } from './event-bus.ts'
import type { FetchMount, Hook, Http, Route, StaticMount } from './http.ts'
import type { Logger, LogLevel, LogSink } from './logger.ts'
import type {
  LaneInfo,
  MetricRecord,
  MetricsSink,
  ProcessCounter,
  Readiness,
  Registry,
  RequestSink,
  RouteInfo,
  SystemDump,
  ToolStatus,
} from './registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from './requests.ts'
import type { JobDefinition, JobInfo, ListOptions, Scheduler, StartedRun } from './scheduler.ts'
import type { State } from './state.ts'
import type { Telemetry } from './telemetry.ts'
import type { CallDetails, CausalContext } from './tracing.ts'

/** The thread of a tool instance. */
export type ThreadRef = { readonly kind: 'primary' } | { readonly kind: 'lane'; readonly index: number }

/**
 * What the runtime offers to a tool instance: one per tool and thread, given to the constructor.
 * Tools never import each other: whatever crosses tools or threads goes through this object.
 */
export interface ToolRuntime {
  readonly thread: ThreadRef
  readonly settings: Settings
  /** The text of an environment variable; undefined when it is unset, and for the runtime's own secrets. */
  env(name: string): string | undefined
  /** Logs; the tool's name is the identity. */
  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void
  /** The causal context of the running handler; undefined outside of handlers. */
  context(): CausalContext | undefined
  /**
   * Calls `serve(method, args)` of this tool's instance in the primary. Arguments and result are JSON.
   * In the primary it is a direct call. Rejects with the error that `serve` threw, rebuilt from its code.
   */
  callPrimary(method: string, args: readonly unknown[]): Promise<unknown>
  /**
   * Memory that all instances of this tool share, one per thread. The primary's constructor allocates it with its first call; it is zeroed.
   * @throws when a lane asks for a name that the primary's instance did not ask for
   */
  sharedMemory(name: string, byteLength: number): SharedArrayBuffer
  /** Wraps the methods of an object that this tool hands out, so that calls of them are measured as calls of this tool. */
  instrument<T extends object>(target: T): T
  /**
   * Another tool of this thread by its contract, since no tool imports another; undefined when none of that name is installed. Calls of it are
   * not measured: no plugin made them. Not before all tools are installed, so not in the constructor.
   */
  peer<Name extends keyof Tools>(name: Name): Tools[Name] | undefined
  readonly host: ToolHost
}

/** The services of this thread that the tools `http`, `event_bus`, `logger`, `registry` and `scheduler` are built on. */
export interface ToolHost {
  addRoute(route: Route): void
  mountStatic(mount: StaticMount): void
  mount(mount: FetchMount): void
  /** The place is found by the host. */
  addHook(hook: Omit<Hook, 'place'>): void
  readonly bus: BusTransport
  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
  addLogSink(sink: LogSink): () => void
  addMetricsSink(sink: MetricsSink): () => void
  addRequestSink(sink: RequestSink): () => void
  metrics(): MetricRecord[]
  systemDump(): SystemDump
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void
  addJob(job: JobDefinition): void
  readonly services: ProcessServices
}

/** What only the primary knows of the process: a lane asks it. */
export interface ProcessServices {
  lanes(): Awaitable<LaneInfo[]>
  readiness(): Awaitable<Readiness>
  counters(): Awaitable<ProcessCounter[]>
  routeList(): Awaitable<RouteInfo[]>
  requests(filter: RequestFilter): Promise<RequestSummary[]>
  request(id: string): Promise<RequestDetail | null>
  workReport(span: WorkSpan): Promise<WorkReport>
  jobs(options?: ListOptions): Awaitable<JobInfo[]>
  /** @param key `<plugin>/<job>` */
  runJob(key: string, askedBy: string): Promise<StartedRun>
}

/**
 * One implementation of a tool: the default export of `src/tools/<implementation>/index.ts`.
 * The constructor does no work that can fail; `boot` does.
 */
export interface Tool {
  /** The tool's name on the wire and in the constructor of a plugin, for example `db`. */
  readonly name: string
  /**
   * Opens what the tool needs. Runs in each thread, in the primary first. When it rejects in the primary with an error whose `isPassing`
   * is true, for example because a server cannot be reached, it runs again later; plugins get the tool in any case.
   */
  boot?(): void | Promise<void>
  /** The object that a plugin gets. Default: the instance itself, with all methods except those of this interface. */
  api?(owner: Owner): object
  /** What the span of a call shows while tracing is on. It must not contain values of the arguments. */
  describeCall?(method: string, args: readonly unknown[]): CallDetails | undefined
  /** Runs in the primary when any thread calls `callPrimary`. */
  serve?(method: string, args: readonly unknown[]): unknown
  /** True when the tool works. Called periodically in the primary, with a deadline. */
  healthCheck?(): Promise<boolean>
  /** Called in the primary: why this process should get no requests; null when it should. It must be quick. */
  unreadyReason?(): string | null
  /**
   * Whether the token with these claims is refused by now, though the tool has accepted it: what it holds open is closed then. Called once a
   * second for each stream and WebSocket of the thread that a token holds. It must be quick.
   */
  isRevoked?(claims: object): Awaitable<boolean>
  /**
   * Called in a lane that leaves, after what ran in it was stopped: release what that held. It does not go on, and no microtask that waited then.
   * @param context of what was stopped; undefined when that is not known
   */
  stopped?(context: CausalContext | undefined): void
  /** Called in the primary when a thread has ended: release what it held. @param threadId `threadId` of node:worker_threads */
  threadGone?(threadId: number): void
  /** Closes everything. Called once, when the thread drains. */
  stop?(): void | Promise<void>
}

export type ToolClass = new (runtime: ToolRuntime) => Tool

/**
 * The tools that a plugin's constructor may destructure. Add a tool of your own by declaration merging:
 * `declare module 'heddle' { interface Tools { mailer: Mailer } }`.
 */
export interface Tools {
  auth: Auth
  config: Config
  db: Db
  event_bus: EventBus
  http: Http
  logger: Logger
  registry: Registry
  scheduler: Scheduler
  state: State
  telemetry: Telemetry
}

/** What `domain.ts` and `app.ts` export by default: it registers hooks, and returns `http` as they make it. */
export type HookSetup = (tools: Tools) => unknown

/**
 * The tools of a plugin whose domain (or application) has hooks: `http` knows what they add to `context`.
 * `constructor({ db, http }: ToolsIn<typeof shop>)`, with `import type shop from '../domain.ts'`.
 */
// biome-ignore lint/suspicious/noExplicitAny: a setup may want the tools of a wider one
export type ToolsIn<Setup extends (tools: any) => unknown> = Omit<Tools, 'http'> & {
  http: Awaited<ReturnType<Setup>> extends Http<infer Added> ? Http<Added> : Http
}
