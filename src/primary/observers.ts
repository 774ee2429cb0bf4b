// Who watches the work of the process, each told by the one before.

import type { CodeTracing, DeliveryTracing, ToolTracing } from '../contracts/tracing.ts'
import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../core/modules/optional-package.ts'
import { ProcessHistory } from '../history/process-history.ts'
import type { ProcessTracing } from '../tracing/process-tracing.ts'
import type { Lane } from './dispatch/lane.ts'
import type { EventParts } from './event-parts.ts'
import type { HttpParts } from './http-parts.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { LogWriter } from './logging/log-writer.ts'
import type { Log, ProcessLog } from './logging/process-log.ts'
import { REQUEST_LINE_HOLD_MS, type RequestLine, RequestLog } from './logging/request-log.ts'
import { pagesAddress } from './logging/terminal.ts'
import type { ToolParts } from './tool-parts.ts'

const PAGES = '/system/dashboard/requests/'

/** The parts of the process that are watched. */
export interface ObservedParts {
  settings: Settings
  log: Log
  logWriter: LogWriter
  processLog: ProcessLog<Lane>
  tools: ToolParts
  http: HttpParts
  events: EventParts
  jobs: Jobs
  /** A guardian has started this process. */
  isGuarded: boolean
}

/** What watches the work of the process: OpenTelemetry, the history, and in development the log of requests. Each stands before the one before. */
export class Observers {
  /** Null while tracing is off. */
  tracing: ProcessTracing | null = null
  /** Null where no history is kept. */
  history: ProcessHistory | null = null
  readonly #parts: ObservedParts
  /** Where the pages of requests are; null where there are none. */
  #pages: string | null = null

  constructor(parts: ObservedParts) {
    this.#parts = parts
  }

  /** Before the first tool is installed, and before the first lane. */
  async open(isDevelopment: boolean): Promise<void> {
    await this.#openTracing()
    this.#openHistory()
    if (isDevelopment) this.#logRequests()
  }

  /** Loaded on demand: while tracing is off no module of the SDK is loaded. A fault of tracing never prevents a start. @throws PACKAGE_MISSING */
  async #openTracing(): Promise<void> {
    const { settings, log, http, events } = this.#parts
    if (!settings.otelEnabled) return
    needPackages('OTEL_ENABLED', OPTIONAL_PACKAGES.opentelemetry)
    try {
      const { ProcessTracing } = await import('../tracing/process-tracing.ts')
      const tracing = new ProcessTracing(settings, (level, message) => log(level, message, 'telemetry'))
      this.tracing = tracing
      http.listener.tracing = tracing.requests
      events.hub.trace.tracing = tracing.own.deliveries
      this.#watchOwn(tracing.own)
    } catch (error) {
      log('WARNING', `No spans are made: ${messageOf(error)}`, 'telemetry')
    }
  }

  /** The work of the primary's own plugins. */
  #watchOwn(own: CodeTracing & { tools: ToolTracing }): void {
    const { tools, http, events, jobs } = this.#parts
    tools.kernel.meter.setTracing(own.tools)
    http.localWorker.server.tracing = own
    events.bus.events.tracing = own
    jobs.tracing = own
  }

  /** What records deliveries; null where nothing does. */
  get deliveries(): DeliveryTracing | null {
    return this.history?.deliveries ?? this.tracing?.own.deliveries ?? null
  }

  #openHistory(): void {
    const { settings, log, http, events, isGuarded } = this.#parts
    if (!settings.historyEnabled) return
    const warn = (message: string): void => log('WARNING', message, 'history')
    const history = new ProcessHistory(settings, this.tracing, warn, isGuarded)
    this.history = history
    http.listener.recorder = history.requests
    events.hub.trace.tracing = history.deliveries
    this.#watchOwn(history.own)
  }

  #logRequests(): void {
    const { http, logWriter, processLog } = this.#parts
    const tell = (line: RequestLine): void => logWriter.request({ ...line, ...this.#pageOf(line) })
    processLog.requests = new RequestLog(tell, REQUEST_LINE_HOLD_MS)
    http.listener.watchers.push(processLog.requests)
  }

  /** The process serves: the lines of requests may lead to their pages. */
  serving(port: number): void {
    const { settings, http } = this.#parts
    if (this.history === null || http.routing.table.find('GET', `${PAGES}any`) === null) return
    this.#pages = pagesAddress(settings, port, http.listener.systemPort) + PAGES
  }

  #pageOf({ requestId = '', path, status }: RequestLine): { page?: string } {
    // Of the runtime's own requests only those are kept that have failed.
    const isKept = status >= 500 || !path.startsWith('/system/')
    return this.#pages === null || !isKept ? {} : { page: this.#pages + encodeURIComponent(requestId) }
  }
}
