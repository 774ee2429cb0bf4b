import type { CausalContext } from '../core/causality/context.ts'
import type { Settings } from '../core/config/schema.ts'
import type { Awaitable } from './awaitable.ts'
import type { BusTransport } from './event-bus.ts'
import type { Endpoint, StaticMount, Stream } from './http.ts'
import type { LogLevel, LogSink } from './logger.ts'
import type { Owner } from './owner.ts'
import type { LaneInfo, MetricRecord, MetricsSink, Readiness, SystemDump, ToolStatus } from './registry.ts'
import type { RouteInfo } from './route-info.ts'
import type { JobDefinition, JobInfo } from './scheduler.ts'
import type { CallDetails } from './tracing.ts'
import type { SocketRoute } from './web-socket.ts'

/** The thread that a tool instance lives in. */
export type ThreadRef = { readonly kind: 'primary' } | { readonly kind: 'lane'; readonly index: number }

/**
 * What the runtime offers to a tool instance. One per tool and thread, handed to the constructor.
 * A tool never imports another tool: what crosses tools or threads goes through here.
 */
export interface ToolRuntime {
  readonly thread: ThreadRef
  readonly settings: Settings
  /** A plugin's own environment variable, raw; undefined when unset. Never one of the runtime's own secrets. */
  env(name: string): string | undefined
  /** Logs with the tool's name as identity. */
  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void
  /** The causal context of the running handler, undefined outside of any. */
  context(): CausalContext | undefined
  /**
   * Calls `serve(method, args)` of this tool's instance in the primary; arguments and result are JSON.
   * In the primary itself it is a direct call. Rejects with the error that `serve` threw, rebuilt by code.
   */
  callPrimary(method: string, args: readonly unknown[]): Promise<unknown>
  /**
   * Memory that every thread's instance of this tool shares, zeroed, made on the first call in the primary's constructor.
   * @throws when a lane asks for a name that the primary's instance did not ask for.
   */
  sharedMemory(name: string, byteLength: number): SharedArrayBuffer
  /** Wraps every method of an object that a call of this tool hands out, so that its calls are metered as this tool's. */
  instrument<T extends object>(target: T): T
  readonly host: ToolHost
}

/** The thread's own services behind the tools `http`, `event_bus`, `logger`, `registry` and `scheduler`. */
export interface ToolHost {
  addEndpoint(endpoint: Endpoint): void
  addStream(stream: Stream): void
  addWebSocket(route: SocketRoute): void
  mountStatic(mount: StaticMount): void
  readonly bus: BusTransport
  writeLog(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void
  addLogSink(sink: LogSink): () => void
  addMetricsSink(sink: MetricsSink): () => void
  metrics(): MetricRecord[]
  systemDump(): SystemDump
  lanes(): Awaitable<LaneInfo[]>
  readiness(): Awaitable<Readiness>
  routeList(): Awaitable<RouteInfo[]>
  updateToolStatus(tool: string, status: ToolStatus, message: string | null): void
  addJob(job: JobDefinition): void
  jobs(): Awaitable<JobInfo[]>
}

/**
 * One implementation of a tool: the default export of `src/tools/<implementation>/index.ts`.
 * The constructor does no work that can fail; `boot` does.
 */
export interface Tool {
  /** The tool's name on the wire and in the constructor of a plugin, for example `db`. */
  readonly name: string
  /**
   * Opens what the tool needs. Runs in each thread; in the primary first. When it rejects in the primary with an error whose `isPassing`
   * is true, for example since a server is away, it runs again later; plugins get the tool all the same.
   */
  boot?(): void | Promise<void>
  /** What one plugin sees. Left out: the instance itself, all methods but those of this interface. */
  api?(owner: Owner): object
  /** What a span tells of a call, while tracing is on: never a value that was given to it. */
  describeCall?(method: string, args: readonly unknown[]): CallDetails | undefined
  /** Runs in the primary for `callPrimary` of any thread. */
  serve?(method: string, args: readonly unknown[]): unknown
  /** True when the tool works. Called periodically in the primary, with a deadline. */
  healthCheck?(): Promise<boolean>
  /** In the primary: a thread of that id (`threadId` of worker_threads) has died, whatever it held. */
  threadGone?(threadId: number): void
  /** Closes everything. Called once, when the thread drains. */
  stop?(): void | Promise<void>
}

export type ToolClass = new (runtime: ToolRuntime) => Tool
