import type { DeadLetter, EventRecord, TopologyEntry } from '../../contracts/event-bus.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { LaneInfo, RouteInfo, SystemDump } from '../../contracts/registry.ts'
import type { RequestDetail, RequestFilter, RequestSummary } from '../../contracts/requests.ts'
import type { LintReport } from '../lint/report.ts'

export interface LogLine {
  level: LogLevel
  message: string
  timestamp: string
  identity: string
}

/** All that an assistant can learn of a process, and do in it. */
export interface ProcessView {
  title: string
  version: string
  /** It may send requests that change something, and publish events. */
  mayWrite: boolean
  /** Of the listener that serves the application's routes. */
  url: string
  domainsDirs: readonly string[]
  requests(filter: RequestFilter): Promise<RequestSummary[]>
  /** @param id of a request, of a job's run, or of an event; null where nothing is kept of it */
  request(id: string): Promise<RequestDetail | null>
  events(): Promise<EventRecord[]>
  topology(): Promise<Record<string, TopologyEntry>>
  deadLetters(): Promise<DeadLetter[]>
  lanes(): Promise<LaneInfo[]>
  status(): SystemDump
  routes(): Promise<RouteInfo[]>
  /** The newest last. */
  logs(): readonly LogLine[]
  lint(): Promise<LintReport>
  /** Deliveries that are accepted and not finished. */
  pending(): Promise<number>
  publish(event: string, payload: Record<string, unknown>): Promise<string>
}
