// The tool `registry`: health, lanes, deaths, routes, counters.

import type { Fault } from '../core/errors/catalogue.ts'
import type { Awaitable } from './common.ts'
import type { IdentityScheme, RouteMethod } from './http.ts'
import type { BodyKind } from './http-request.ts'
import type { RequestDetail, RequestFilter, RequestSummary, WorkReport, WorkSpan } from './requests.ts'

/** A JSON Schema of draft 2020-12. */
export type JsonSchema = { [keyword: string]: unknown }

/** The schemas of a route as JSON Schemas. A schema that cannot be converted accepts anything, and its description says so. */
export interface RouteSchemas {
  body?: JsonSchema
  query?: JsonSchema
  params?: JsonSchema
  response?: JsonSchema
}

/** An answer that a route throws. */
export interface ThrownInfo {
  description: string | null
  codes: string[]
  /** JSON Schema of its `details`; null: they are not documented. */
  details: JsonSchema | null
}

/** A route that is being served. */
export interface RouteInfo {
  plugin: string
  /** `ALL`: those of a fetch handler. */
  method: RouteMethod
  /** The template, as it was registered: `/users/:id`, `/files/*`. */
  path: string
  is_stream: boolean
  /** The route is a WebSocket. */
  is_socket: boolean
  /** Which threads answer it. */
  host: 'primary' | 'lanes'
  /** Milliseconds until a request is answered with 504; 0: never. */
  timeout_ms: number
  tags: string[]
  summary: string | null
  description: string | null
  /** The route requires a token. */
  has_auth: boolean
  /** How a client says who it is, where `http.identify` is asked and tells: any one of these. Null: it does not. */
  security: { schemes: IdentityScheme[]; is_required: boolean } | null
  /** Whether requests may or must have an `Idempotency-Key`; null: it means nothing. */
  idempotency: 'optional' | 'required' | null
  /** The handler gets the body as it came, of any content type. */
  has_raw_body: boolean
  /** The handler reads the body while it comes: its bytes, or the parts of a form. Null: it gets the whole body. */
  streamed_body: BodyKind | null
  schemas: RouteSchemas
  /** Of what its handler returns, unless it sets another one. */
  status: number
  /** By status. */
  throws: Record<string, ThrownInfo>
}

export type ToolStatus = 'OK' | 'FAIL' | 'DEAD'

/** One tool call. */
export interface MetricRecord {
  tool: string
  method: string
  /** Milliseconds, with microsecond resolution. */
  duration_ms: number
  /** False when the call threw or rejected. */
  success: boolean
  /** `caller` when the call failed by its caller's fault: the tool has answered as it should. Missing otherwise. */
  fault?: 'caller'
  /** ISO 8601 UTC with milliseconds: when the call ended. */
  timestamp: string
}

/** Called synchronously within each tool call: no await, no tool calls, no I/O. */
export type MetricsSink = (record: MetricRecord) => void

/** A request that has ended. */
export interface RequestRecord {
  request_id: string
  method: string
  /** Path template; empty where there is no such route. */
  route: string
  plugin: string
  /** 0: the client was gone before there was an answer. */
  status: number
  /** Milliseconds in the process: what the request waited for a lane is in it. */
  duration_ms: number
}

/** Called synchronously when a request has been answered: no await, no tool calls, no I/O. */
export type RequestSink = (record: RequestRecord) => void

interface ToolHealth {
  status: ToolStatus
  message: string | null
  /**
   * Whose fault the status is. `caller`: the tool has answered the failed call as it should, with a violated constraint, a refused input or a
   * lost race, and nobody needs to act. `tool`: it does not do its work. Null while it is `OK`.
   */
  fault: Fault | null
}

export type PluginHealth =
  | { status: 'OK'; domain: string; tools: string[] }
  | { status: 'DEAD'; error: string; tools: string[] }
  /** It takes long to boot. All others are served meanwhile; it follows, or is `DEAD` in the end. */
  | { status: 'BOOTING'; error: string; tools: string[] }

/** The health snapshot of `/system/status`. */
export interface SystemDump {
  tools: Record<string, ToolHealth>
  plugins: Record<string, PluginHealth>
  /** HEDDLE_RELEASE, by default the commit; missing where neither is known. */
  release?: string
  /** Number of lanes per state. */
  lanes: Record<string, number>
  /** The last reload; missing when the lanes were never reloaded. */
  reload?: ReloadInfo
  /** What serves HTTP, and why, where that is not the first choice: uWebSockets.js does not load, or `HTTP_LISTENER` says so; missing before it serves. */
  listener?: {
    library: 'uWebSockets.js' | 'node:http'
    why: string | null
    /** With `SYSTEM_PORT`: where the application is, and with what the pages under `/system` reach it through that port. */
    application?: { url: string; key: string }
  }
  /** Which process answers, of several on one port (`PROCESSES`): all else here is of this one alone. Missing where it is the only one. */
  process?: { number: number; of: number; replica: string; pid: number }
}

/**
 * Why a lane's thread ended: its event loop was blocked, its memory was used up, it left the process hardly a file
 * descriptor, it called `process.exit`, it threw, it did not boot,
 * or what JavaScript brings was broken in it.
 * `process`: the whole process ended, and nothing else is known.
 */
export type DeathReason = 'stalled' | 'memory' | 'descriptors' | 'exited' | 'crashed' | 'broken' | 'boot' | 'process'

/** A handler that was running in a lane. */
export interface WorkInFlight {
  kind: 'request' | 'event' | 'job'
  /** `GET /users/:id`, an event's name, a job's name. */
  name: string
  plugin: string
  /** Id of the request, the event or the run of a job; null where it is not known. */
  id: string | null
  for_ms: number
}

/** One of the last things that a lane did. */
export interface FlightStep {
  /** ISO 8601 UTC with milliseconds. */
  at: string
  kind: 'request' | 'call' | 'event' | 'job'
  /** `GET /users/:id`, `db.query`, `<plugin>.<handler>`, a job's name. */
  name: string
  /** Request id, cut to 32 characters, or event id; null for calls and jobs. */
  id: string | null
  /** Null when it had not ended. */
  duration_ms: number | null
  success: boolean
}

/** What is known about the end of a lane: recorded from outside while it was blocked, and read from its flight recorder once it had ended. */
export interface BlackBox {
  /** ISO 8601 UTC. */
  at: string
  lane: number
  reason: DeathReason
  message: string
  /**
   * The handler that is proved to have ended the lane; null where nothing proves it. `evidence` says how: by the stack, because it had made the
   * timer, socket or promise whose callback ended the thread, or because nothing else was in flight. `line` is `file:line:column` of the innermost frame in a domain's folder, `handler` the route or subscriber.
   */
  guilty: {
    plugin: string | null
    handler: string | null
    line: string | null
    evidence: 'stack' | 'origin' | 'alone'
  } | null
  /** Where the thread was, or what it threw, innermost frame first: `function (file:line:column)`. Empty when there was no way to read it. */
  stack: string[]
  /** How long its event loop had been blocked. */
  stood_still_ms: number
  /** Null where it is not known. */
  lived_ms: number | null
  /** CPU time of the thread, in its whole life and while its loop was blocked; null where the system does not report it. */
  cpu_ms: number | null
  cpu_ms_while_still: number | null
  /** Memory in JavaScript objects and in buffers, as the lane last reported it; null where it never did. */
  heap_bytes: number | null
  external_bytes: number | null
  /** The oldest 50, and how many there were. */
  in_flight: WorkInFlight[]
  in_flight_count: number
  /** The last 256, oldest first. */
  steps: FlightStep[]
}

/** Who has started a process or a thread; null where it is not known. */
export interface Starter {
  plugin: string | null
  handler: string | null
}

/** A process that a plugin has started. */
export interface ChildProcessInfo extends Starter {
  pid: number
  /** File of the plugin; null where it is not known. */
  file: string | null
  /** The program, without its arguments, which may hold secrets. */
  command: string | null
  /** ISO 8601 UTC; null where it is not known. */
  started_at: string | null
  /** How many processes live that it has started, and that these have; null where it is not Linux. */
  descendants: number | null
}

/** One lane, as `/system/lanes` shows it. */
export interface LaneInfo {
  index: number
  /**
   * A quarantine lane exists while events are retried that have ended lanes, a probation lane while there are plugins that may
   * have ended lanes, or stood still in nearly all of them: it takes their requests. A relief lane exists while another lane is blocked, and has the number of that lane.
   */
  role: 'regular' | 'quarantine' | 'probation' | 'relief'
  /** `idle`: the quarantine or probation lane while it is not needed. */
  state: 'starting' | 'ready' | 'draining' | 'dead' | 'idle'
  /** False while its event loop is blocked: it gets no work then. */
  responsive: boolean
  requests_in_flight: number
  deliveries_in_flight: number
  /** Open WebSockets of this lane. */
  sockets_open: number
  /** Longest delay of its event loop in the last second; null until it has reported, as the next two. */
  loop_delay_ms: number | null
  heap_bytes: number | null
  /** Memory in buffers. */
  external_bytes: number | null
  /** CPU time of its thread; null where the system does not report it. */
  cpu_ms: number | null
  /** Share of a core that its thread got in the last 5 s, if it waited for a core for more than half of them; null when it is not starved. */
  starved_core_share: number | null
  /**
   * Processes that its plugins have started, and that live, or have left others that do: they end with it. On Linux also those that were not started by
   * `child_process` in the lane itself (by a thread of a plugin, by an addon); who has started these is not known.
   */
  child_processes: ChildProcessInfo[]
  /** How many threads each handler has started that have not ended: they end with the lane. */
  threads: ({ count: number } & Starter)[]
  /** ISO 8601 UTC: when its thread was started. */
  started_at: string
  /** How many threads this lane had before the present one. */
  restarts: number
  /** Newest first, at most 5. */
  deaths: BlackBox[]
}

/** The last reload of the lanes. */
export interface ReloadInfo {
  /** ISO 8601 UTC: when it ended. */
  at: string
  ok: boolean
  /** Why the lanes still run the old code; null when they run the new one. */
  error: string | null
}

export interface Readiness {
  ready: boolean
  /** Why the process is not ready, or what is missing although it is. */
  reasons: string[]
  lanes: Record<string, number>
  /** Share of a core that each starved thread got in the last 5 s, by its name. Empty when none waited for a core for more than half of them. */
  starved: Record<string, number>
}

/** Something that the process counts since its start, or measures now. */
export interface ProcessCounter {
  /** As metrics systems name it: `heddle_log_records_dropped_total`. */
  name: string
  kind: 'counter' | 'gauge' | 'histogram'
  help: string
  samples: {
    labels: Readonly<Record<string, string>>
    value: number
    /** Of a histogram: what is appended to the name. Buckets have the label `le`, and are cumulative. */
    suffix?: '_bucket' | '_sum' | '_count'
  }[]
}

/** Introspection of the process. */
export interface Registry {
  /**
   * Receives every tool metric record of the process: those of this thread at once, those of other threads within 100 ms.
   * @returns a function that removes the sink
   */
  addMetricsSink(sink: MetricsSink): () => void
  /**
   * Receives every request of the process when it has ended, but not those of the pages under `/system`, which poll, unless they failed.
   * Each request costs a little more while there is a sink.
   * @returns a function that removes the sink
   * @throws TypeError in a lane: only the primary sees all requests
   */
  addRequestSink(sink: RequestSink): () => void
  /** The last 1000 tool calls of all threads, oldest first. */
  getMetrics(): MetricRecord[]
  /** The health of tools and plugins of the process; in a lane at most 100 ms old. */
  getSystemDump(): SystemDump
  /** Plugin → the tools that it takes but has not called in any thread since the process started. Healthy plugins only. */
  getUncalledTools(): Record<string, string[]>
  /** The lanes of this process. */
  getLanes(): Awaitable<LaneInfo[]>
  /** Whether a load balancer should send requests to this process. */
  getReadiness(): Awaitable<Readiness>
  /** What the process counts beside tool calls, lanes and events: dropped log records, refused connections, dead letters. */
  getCounters(): Awaitable<ProcessCounter[]>
  /** The routes that this process serves. */
  getRoutes(): Awaitable<RouteInfo[]>
  /** Requests and runs of jobs that the history keeps, newest first. @throws HISTORY_OFF where HISTORY_ENABLED is false */
  getRequests(filter?: RequestFilter): Promise<RequestSummary[]>
  /**
   * One of them with its parts.
   * @param id of the request, of the run or of an event that it has caused
   * @returns null where nothing is kept of it
   * @throws HISTORY_OFF
   */
  getRequest(id: string): Promise<RequestDetail | null>
  /** What the handlers of each plugin did in a span of time. In production it is computed from a sample. @throws HISTORY_OFF */
  getWorkReport(span: WorkSpan): Promise<WorkReport>
  /** Sets a tool's health; message null when left out. */
  updateToolStatus(tool: string, status: ToolStatus, options?: { message?: string | null }): void
}
