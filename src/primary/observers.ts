// Who watches the work of the process, each told by the one before.

import type { Settings } from '../core/config/schema.ts'
import { messageOf } from '../core/errors/description.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../core/modules/optional-package.ts'
import { ProcessHistory } from '../history/process-history.ts'
import type { ProcessTracing } from '../tracing/process-tracing.ts'
import type { Lane } from './dispatch/lane.ts'
import type { Hub } from './events/hub.ts'
import type { Listener } from './http/listener.ts'
import type { Routing } from './http/routes.ts'
import type { LogWriter } from './logging/log-writer.ts'
import type { ProcessLog } from './logging/process-log.ts'
import { REQUEST_LINE_HOLD_MS, type RequestLine, RequestLog } from './logging/request-log.ts'
import { pagesAddress } from './logging/terminal.ts'
import type { PrimaryHost } from './tools/tool-host.ts'

const PAGES = '/system/dashboard/requests/'

interface ObservedParts {
  readonly settings: Settings
  readonly host: PrimaryHost
  readonly listener: Listener
  readonly hub: Hub
  readonly routing: Routing
  readonly logWriter: LogWriter
  readonly processLog: ProcessLog<Lane>
  /** A guardian has started this process. */
  readonly isGuarded: boolean
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
    const { settings, host, listener, hub, processLog } = this.#parts
    if (!settings.otelEnabled) return
    needPackages('OTEL_ENABLED', OPTIONAL_PACKAGES.opentelemetry)
    try {
      const { ProcessTracing } = await import('../tracing/process-tracing.ts')
      const tracing = new ProcessTracing(settings, (level, message) => processLog.log(level, message, 'telemetry'))
      this.tracing = tracing
      listener.tracing = tracing.requests
      hub.trace.tracing = tracing.own.deliveries
      host.record(tracing.own)
    } catch (error) {
      processLog.log('WARNING', `No spans are made: ${messageOf(error)}`, 'telemetry')
    }
  }

  #openHistory(): void {
    const { settings, host, listener, hub, processLog, isGuarded } = this.#parts
    if (!settings.historyEnabled) return
    const warn = (message: string): void => processLog.log('WARNING', message, 'history')
    const history = new ProcessHistory(settings, this.tracing, warn, isGuarded)
    this.history = history
    listener.watchers.push(history.requests)
    hub.trace.tracing = history.deliveries
    host.record(history.own)
  }

  #logRequests(): void {
    const { listener, logWriter, processLog } = this.#parts
    const tell = (line: RequestLine): void => logWriter.request({ ...line, ...this.#pageOf(line) })
    const requests = new RequestLog(tell, REQUEST_LINE_HOLD_MS)
    processLog.requests = requests
    listener.watchers.push(requests)
  }

  /** The process serves: the lines of requests may lead to their pages. */
  serving(port: number): void {
    const { settings, routing, listener } = this.#parts
    if (this.history === null || routing.table.find('GET', `${PAGES}any`) === null) return
    this.#pages = pagesAddress(settings, port, listener.systemPort) + PAGES
  }

  #pageOf({ requestId = '', path, status }: RequestLine): { page?: string } {
    // Of the runtime's own requests only those are kept that have failed.
    const isKept = status >= 500 || !path.startsWith('/system/')
    return this.#pages === null || !isKept ? {} : { page: this.#pages + encodeURIComponent(requestId) }
  }
}
