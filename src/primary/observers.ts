// Who watches the work of the process, each told by the one before.

import { messageOf } from '../core/errors/description.ts'
import { needPackages, OPTIONAL_PACKAGES } from '../core/modules/optional-package.ts'
import { ProcessHistory } from '../history/process-history.ts'
import { REQUEST_LINE_HOLD_MS, type RequestLine, RequestLog } from './logging/request-log.ts'
import { pagesAddress } from './logging/terminal.ts'
import type { Parts } from './parts.ts'

const PAGES = '/system/dashboard/requests/'

/**
 * Opens what watches the work of the process: OpenTelemetry, the history, and in development the log of requests. Each stands before the one before.
 * To be called before the first tool is installed, and before the first lane.
 */
export async function openObservers(parts: Parts, isDevelopment: boolean): Promise<void> {
  await openTracing(parts)
  openHistory(parts)
  if (isDevelopment) logRequests(parts)
}

/** Loaded on demand: while tracing is off no module of the SDK is loaded. A fault of tracing never prevents a start. @throws PACKAGE_MISSING */
async function openTracing({ log, kernel, listener, events, host, recorders }: Parts): Promise<void> {
  const { settings } = kernel
  if (!settings.otelEnabled) return
  needPackages('OTEL_ENABLED', OPTIONAL_PACKAGES.opentelemetry)
  try {
    const { ProcessTracing } = await import('../tracing/process-tracing.ts')
    const tracing = new ProcessTracing(settings, (level, message) => log(level, message, 'telemetry'))
    recorders.tracing = tracing
    listener.tracing = tracing.requests
    events.hub.trace.tracing = tracing.own.deliveries
    host.record(tracing.own)
  } catch (error) {
    log('WARNING', `No spans are made: ${messageOf(error)}`, 'telemetry')
  }
}

function openHistory({ log, kernel, listener, events, host, jobs, recorders, flightMirror }: Parts): void {
  const { settings } = kernel
  if (!settings.historyEnabled) return
  const warn = (message: string): void => log('WARNING', message, 'history')
  const guardian = flightMirror?.guardian ?? null
  const history = new ProcessHistory(settings, recorders.tracing?.own ?? null, warn, guardian)
  recorders.history = history
  listener.watchers.push(history.requests)
  events.hub.trace.tracing = history.deliveries
  jobs.history = history.jobs
  host.record(history.own)
}

function logRequests({ processLog, listener, recorders }: Parts): void {
  const requests = new RequestLog((line) => processLog.request({ ...line, ...pageOf(line) }), REQUEST_LINE_HOLD_MS)
  processLog.requests = requests
  listener.watchers.push(requests)

  function pageOf({ requestId = '', path, status }: RequestLine): { page?: string } {
    // Of the runtime's own requests only those are kept that have failed.
    const isKept = status >= 500 || !path.startsWith('/system/')
    return recorders.pages === null || !isKept ? {} : { page: recorders.pages + encodeURIComponent(requestId) }
  }
}

/** The process serves: the lines of requests may lead to their pages. */
export function showPages({ kernel, listener, routing, recorders }: Parts, port: number): void {
  if (recorders.history === null || routing.table.find('GET', `${PAGES}any`) === null) return
  recorders.pages = pagesAddress(kernel.settings, port, listener.systemPort) + PAGES
}
