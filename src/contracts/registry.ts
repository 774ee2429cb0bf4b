import type { Awaitable } from './awaitable.ts'

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
}

/** One lane, as `/system/lanes` shows it. */
export interface LaneInfo {
  index: number
  state: 'starting' | 'ready' | 'draining' | 'dead'
  /** False while its loop stands still: it gets no work. */
  responsive: boolean
  requests_in_flight: number
  deliveries_in_flight: number
  /** Longest delay of its event loop in the last second. */
  loop_delay_ms: number
  heap_bytes: number
  /** ISO 8601 UTC: when its thread was started. */
  started_at: string
  /** Threads that this lane has had before this one. */
  restarts: number
  last_death: { at: string; reason: string; in_flight: string[] } | null
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
  /** The lanes of this process. */
  getLanes(): Awaitable<LaneInfo[]>
  /** Whether this process should get requests. */
  getReadiness(): Awaitable<Readiness>
  /** Sets a tool's health; message null when left out. */
  updateToolStatus(tool: string, status: ToolStatus, options?: { message?: string | null }): void
}
