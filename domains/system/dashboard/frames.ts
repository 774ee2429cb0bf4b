import type { EventRecord, LaneInfo, LogLevel, Readiness, SystemDump, TopologyEntry } from '#heddle'

/** What one client of `/system/dashboard/stream` gets: `hello` first, then the others as they come. */
export type DashboardFrame = HelloFrame | LiveFrame | SecondFrame

/** How the process stands when the client comes. */
export interface HelloFrame {
  type: 'hello'
  /** Another one after every start of the process. */
  boot: string
  /** Events published since the start, those of `records` included. */
  events_total: number
  /** The last 500, oldest first. */
  records: EventRecord[]
  topology: Record<string, TopologyEntry>
  status: SystemDump
  readiness: Readiness
  lanes: LaneSummary[]
  routes: SingleRoutes
}

/** Plugins that answer one route only, and which: a request that such a plugin has published for was to that route. `POST /users`. */
export type SingleRoutes = Record<string, string>

/** What has happened since the last frame: at most ten a second. */
export interface LiveFrame {
  type: 'live'
  events_total: number
  /** Whole trees; of a flood only some, `events_total` counts them all. */
  records: EventRecord[]
  logs: LogEntry[]
  /** Log records that were too many for this frame. */
  logs_left_out: number
  failures: FailureEntry[]
}

/** Once a second: what is summed up. Parts that are as they were are left out. */
export interface SecondFrame {
  type: 'second'
  events_total: number
  /** Events whose entries have changed. */
  topology: Record<string, TopologyEntry>
  calls: CallFigures[]
  lanes: LaneSummary[]
  process: ProcessFigures
  status?: SystemDump
  /** With `status`: the lanes may have loaded other code. */
  routes?: SingleRoutes
  readiness?: Readiness
}

export interface LogEntry {
  level: LogLevel
  message: string
  timestamp: string
  identity: string
}

/** A delivery that failed for good. */
export interface FailureEntry {
  event: string
  event_id: string
  subscriber: string
  error: string
  attempts: number
}

/** A lane without the stacks and steps of its deaths: those are at `/system/lanes`. */
export interface LaneSummary extends Omit<LaneInfo, 'deaths'> {
  deaths: { at: string }[]
}

/** The calls of one method of one tool. Milliseconds; null where nothing was called. */
export interface CallFigures {
  call: string
  /** Of the last second. */
  calls: number
  errors: number
  second_p95_ms: number | null
  /** Of the last minute. */
  minute_calls: number
  minute_errors: number
  p50_ms: number
  p95_ms: number
  p99_ms: number
}

export interface ProcessFigures {
  rss_bytes: number
  /** Of one core, all threads together. */
  cpu_percent: number
  /** How much of the last second the listener's thread was busy, 0 to 1. */
  loop_utilization: number
}
