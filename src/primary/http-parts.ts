// The parts of the primary that take requests in: routes, listener, dispatcher.
import type { Settings } from '../core/config/schema.ts'
import { messageOf, stackOf } from '../core/errors/description.ts'
import { faultRecord } from '../runtime/advice/fault-record.ts'
import type { FixFacts } from '../runtime/advice/tool-names.ts'
import { sinkFault } from '../runtime/kernel/listeners.ts'
import type { FlightRecorder } from '../transport/memory/flight-recorder.ts'
import { Dispatcher } from './dispatch/dispatcher.ts'
import type { Hub } from './events/hub.ts'
import { ConnectionLimit } from './http/connection-limit.ts'
import { Listener } from './http/listener.ts'
import { LocalWorker } from './http/local-worker.ts'
import { Refusals } from './http/refusals.ts'
import { RequestSinks } from './http/request-sinks.ts'
import { Routing } from './http/routes.ts'
import type { Log } from './logging/process-log.ts'

export type HttpParts = ReturnType<typeof assembleHttp>

interface HttpOptions {
  settings: Settings
  log: Log
  hub: Hub
  /** What helps to fix the mistakes of plugins; the kernel that knows it is made later. */
  facts: () => FixFacts
  /** What the primary records of its plugins' requests; null without a guardian. */
  flight: FlightRecorder | null
  isBooting: () => boolean
}

export function assembleHttp({ settings, log, hub, facts, flight, isBooting }: HttpOptions) {
  const routing = new Routing(settings.httpHandlerTimeoutMs)
  const localWorker = new LocalWorker((path, plugin, requestId, thrown) => {
    const { message, fields } = faultRecord({ path, plugin, requestId }, thrown, facts())
    log('ERROR', message, plugin, fields)
  }, flight)
  const dispatcher = new Dispatcher((error) =>
    log('ERROR', `A request that waited was not handed over: ${messageOf(error)}`, 'http', { stack: stackOf(error) }),
  )
  const framingFaults = new Refusals(log, 'A connection was closed: ')
  const connectionLimit = new ConnectionLimit(log)
  const listener = new Listener({
    settings,
    routes: routing.table,
    lanes: dispatcher,
    isCrowded: () => hub.isCrowded,
    isBooting,
    local: localWorker,
    connectionLimit,
    onFallback: (missing) => log('WARNING', `node:http serves instead of uWebSockets.js: ${missing}`, 'http'),
    framingFaults,
    refusals: new Refusals(log),
    onFault: (error) => log('ERROR', `A request was not taken in: ${messageOf(error)}`, 'http'),
  })
  const requestSinks = new RequestSinks(listener.watchers, (thrown) =>
    log('ERROR', sinkFault('request sink', thrown), 'kernel'),
  )
  return { routing, localWorker, dispatcher, listener, requestSinks, framingFaults, connectionLimit }
}
