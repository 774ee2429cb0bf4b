import type { Settings } from '../../core/config/schema.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import type { Exchange } from './exchange.ts'
import type { LocalWorker } from './local-worker.ts'
import type { Refusals } from './refusals.ts'
import type { RouteTable } from './routes.ts'

/** Takes requests for the lanes. */
export interface LaneGate {
  /** Takes a request, and a copy of its body. False when it is to be refused. */
  send(frame: RequestFrame, exchange: Exchange, isLasting: boolean): boolean
}

export interface ListenerOptions {
  settings: Settings
  routes: RouteTable
  lanes: LaneGate
  /** True when so many events wait that no new request should be begun. */
  isCrowded: () => boolean
  /** True while a plugin boots that the others have not waited for: a path without a route may be its. */
  isBooting: () => boolean
  local: LocalWorker
  connectionLimit: ConnectionLimit
  /** Told why uWebSockets.js does not load, where node:http serves instead. */
  onFallback: (missing: string) => void
  /** Connections that were closed because the framing of a request is not certain. */
  framingFaults: Refusals
  /** What else strangers can cause at will. */
  refusals: Refusals
  /** Told of a fault of the listener itself while it received a request. */
  onFault: (error: unknown) => void
}
