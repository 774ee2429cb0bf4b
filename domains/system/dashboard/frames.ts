import type { EventRecord, LaneInfo, LogLevel, Readiness, SystemDump, TopologyEntry } from '#heddle'

/** A frame of `/system/dashboard/stream`. Each client gets `hello` first, then the others as they come. */
export type DashboardFrame = HelloFrame | LiveFrame | SecondFrame

/** The state of the process when the client connects. */
export interface HelloFrame {
  type: 'hello'
  /** An id that changes with each start of the process. */
  boot: string
  /** ISO 8601 UTC. */
  started_at: string
  /** Events published since the start, those of `records` included. */
  events_total: number
  /** The last 500 records, oldest first. */
  records: EventRecord[]
  topology: Record<string, TopologyEntry>
  status: SystemDump
  readiness: Readiness
  lanes: LaneSummary[]
  routes: SingleRoutes
  /** Why there are no requests to show; null where they are kept. */
  history_off: string | null
  /** The last 500 log records, oldest first. Those of the next live frame may be among them. */
  logs: LogEntry[]
}

/** Plugin → its route, such as `POST /users`, for plugins with a single route: an event that such a plugin publishes in a request belongs to that route. */
export type SingleRoutes = Record<string, string>

/** The events, logs and failures since the last frame. At most ten frames a second. */
export interface LiveFrame {
  type: 'live'
  events_total: number
  /** Whole trees. When there are too many, only some of them are sent; `events_total` counts them all. */
  records: EventRecord[]
  logs: LogEntry[]
  /** Number of log records that did not fit into this frame. */
  logs_left_out: number
  failures: FailureEntry[]
}

/** Figures that are sent once a second. Parts that have not changed are left out. */
export interface SecondFrame {
  type: 'second'
  /** Milliseconds since the epoch. */
  at_ms: number
  events_total: number
  /** Events whose entries have changed. */
  topology: Record<string, TopologyEntry>
  calls: CallFigures[]
  /** Seconds of the last minute of which the tool calls are known, 1 to 60. */
  calls_seconds: number
  work: WorkFigures
  lanes: LaneSummary[]
  process: ProcessFigures
  status?: SystemDump
  /** Sent with `status`, since the lanes may have loaded other code. */
  routes?: SingleRoutes
  readiness?: Readiness
}

export interface LogEntry {
  /** Its number since the start of the process, from 1. */
  n: number
  level: LogLevel
  message: string
  timestamp: string
  identity: string
  /** What was being handled. */
  request_id: string | null
  event_id: string | null
  /** Left out: none. The texts of long ones are cut. */
  fields?: Record<string, unknown>
}

/** A delivery that failed for good. */
export interface FailureEntry {
  event: string
  event_id: string
  subscriber: string
  error: string
  attempts: number
}

/** A lane without the stacks and steps of its deaths, which `/system/lanes` has. */
export interface LaneSummary extends Omit<LaneInfo, 'deaths'> {
  deaths: { at: string }[]
}

/** Figures of the calls of one tool method, in milliseconds; null without calls. */
export interface CallFigures {
  call: string
  /** In the last second. */
  calls: number
  errors: number
  second_p95_ms: number | null
  /** In the last minute. */
  minute_calls: number
  minute_errors: number
  /** Calls of the last minute that failed by their caller's fault: they are no errors here. */
  minute_refused: number
  p50_ms: number
  p95_ms: number
  p99_ms: number
}

/** Requests, without those of the pages under `/system`, and what has failed. Milliseconds; null without requests. */
export interface WorkFigures {
  /** In the last second. */
  requests: number
  /** Requests that were answered with 500 or more, deliveries that were given up, runs of jobs that failed, and lanes that died. */
  failed: number
  p50_ms: number | null
  p95_ms: number | null
  /** Seconds of the last minute of which the requests are known, 1 to 60: the figures below are of these. */
  minute_seconds: number
  minute_requests: number
  /** The same of what has failed. */
  failed_seconds: number
  minute_failed_requests: number
  minute_failed_deliveries: number
  minute_failed_jobs: number
  minute_deaths: number
  minute_p50_ms: number | null
  minute_p95_ms: number | null
  minute_p99_ms: number | null
}

export interface ProcessFigures {
  rss_bytes: number
  /** All threads together, in percent of one core. */
  cpu_percent: number
  /** The share of the last second in which the listener's thread was busy, 0 to 1. */
  loop_utilization: number
}
