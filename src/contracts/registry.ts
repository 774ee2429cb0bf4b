import type { Awaitable } from './awaitable.ts'
import type { RouteInfo } from './route-info.ts'

export type ToolStatus = 'OK' | 'FAIL' | 'DEAD'

/** One tool call. */
export interface MetricRecord {
  tool: string
  method: string
  /** Milliseconds, with microsecond resolution. */
  duration_ms: number
  /** False when the call threw or rejected. */
  success: boolean
  /** ISO 8601 UTC with milliseconds: when the call ended. */
  timestamp: string
}

/** Runs synchronously in the tool call's hot path: no await, no tool calls, no I/O. */
export type MetricsSink = (record: MetricRecord) => void

export interface ToolHealth {
  status: ToolStatus
  message: string | null
}

export type PluginHealth =
  | { status: 'OK'; domain: string; tools: string[] }
  | { status: 'DEAD'; error: string; tools: string[] }

/** The health snapshot of `/system/status`. */
export interface SystemDump {
  tools: Record<string, ToolHealth>
  plugins: Record<string, PluginHealth>
  /** Number of lanes per state. */
  lanes: Record<string, number>
  /** Only after the lanes were told to load the code anew. */
  reload?: ReloadInfo
}

/** Why a lane's thread ended: its loop stood still, its memory was used up, it called `process.exit`, it threw, it did not boot. */
/** `process`: a whole process, of which nothing else is known. */
export type DeathReason = 'stalled' | 'memory' | 'exited' | 'crashed' | 'boot' | 'process'

/** A handler that a lane was at. */
export interface WorkInFlight {
  kind: 'request' | 'event' | 'job'
  /** `GET /users/:id`, an event's name, a job's name. */
  name: string
  plugin: string
  /** Request id or event id; null for a job. */
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

/** What is known of a lane's end: taken from outside while it was stuck, and from its flight recorder when it was gone. */
export interface BlackBox {
  /** ISO 8601 UTC. */
  at: string
  lane: number
  reason: DeathReason
  message: string
  /**
   * Who brought it down, where that can be told: by the stack, because nothing else was in flight, or because it was begun last.
   * `line` is `file:line:column` of the innermost frame in a domain's folder, `handler` the route or subscriber.
   */
  guilty: {
    plugin: string | null
    handler: string | null
    line: string | null
    evidence: 'stack' | 'alone' | 'last'
  } | null
  /** Where the thread stood or what it threw, innermost first: `function (file:line:column)`. Empty when it could not be had. */
  stack: string[]
  /** How long its loop had stood still. */
  stood_still_ms: number
  lived_ms: number
  /** CPU time of the thread in its whole life, and while it stood still; null where the system does not tell. */
  cpu_ms: number | null
  cpu_ms_while_still: number | null
  /** As it last reported: memory in JavaScript objects, and in buffers. */
  heap_bytes: number
  external_bytes: number
  /** The oldest 50, and how many there were. */
  in_flight: WorkInFlight[]
  in_flight_count: number
  /** The last 256, oldest first. */
  steps: FlightStep[]
}

/** One lane, as `/system/lanes` shows it. */
export interface LaneInfo {
  index: number
  /**
   * A quarantine lane is there while events are tried again that lanes died of; a relief, with the number of the lane that it
   * helps out for, while that stands still.
   */
  role: 'regular' | 'quarantine' | 'relief'
  /** `idle`: the quarantine lane when nobody needs it. */
  state: 'starting' | 'ready' | 'draining' | 'dead' | 'idle'
  /** False while its loop stands still: it gets no work. */
  responsive: boolean
  requests_in_flight: number
  deliveries_in_flight: number
  /** WebSockets that it has. */
  sockets_open: number
  /** Longest delay of its event loop in the last second. */
  loop_delay_ms: number
  heap_bytes: number
  /** Memory of its buffers. */
  external_bytes: number
  /** CPU time of its thread; null where the system does not tell. */
  cpu_ms: number | null
  /** ISO 8601 UTC: when its thread was started. */
  started_at: string
  /** Threads that this lane has had before this one. */
  restarts: number
  /** Newest first, at most 5. */
  deaths: BlackBox[]
}

/** The last reload of the lanes. */
export interface ReloadInfo {
  /** ISO 8601 UTC: when it ended. */
  at: string
  ok: boolean
  /** Why the old code still runs; null when the new code does. */
  error: string | null
}

export interface Readiness {
  ready: boolean
  /** Why not, or what is missing although it serves. */
  reasons: string[]
  lanes: Record<string, number>
}

/** Introspection of the process. */
export interface Registry {
  /**
   * Receives every tool metric record of the process: at once for this thread's calls, within 100 ms for others'.
   * @returns a function that removes the sink
   */
  addMetricsSink(sink: MetricsSink): () => void
  /** The last 1000 tool calls of the whole process, oldest first, from any thread. */
  getMetrics(): MetricRecord[]
  /** The health of tools and plugins of the process; in a lane at most 100 ms old. */
  getSystemDump(): SystemDump
  /** Tools that a healthy plugin has taken in its constructor and called in no thread since the process started: plugin → names. */
  getUncalledTools(): Record<string, string[]>
  /** The lanes of this process. */
  getLanes(): Awaitable<LaneInfo[]>
  /** Whether this process should get requests. */
  getReadiness(): Awaitable<Readiness>
  /** The routes that this process serves. */
  getRoutes(): Awaitable<RouteInfo[]>
  /** Sets a tool's health; message null when left out. */
  updateToolStatus(tool: string, status: ToolStatus, options?: { message?: string | null }): void
}
