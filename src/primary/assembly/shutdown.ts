import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/until.ts'
import { withTimeout } from '../../core/schedule/with-timeout.ts'
import type { ProcessHistory } from '../../history/primary/process-history.ts'
import type { ProcessTracing } from '../../tracing/primary/process-tracing.ts'
import { SocketDrain } from '../http/socket-drain.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Supervisor } from '../supervision/supervisor.ts'
import type { EventParts } from './events.ts'
import type { HttpParts } from './http.ts'
import type { ToolParts } from './tools.ts'

/** A drain serves what still comes on open connections for this long at most, milliseconds. */
const LINGER_MAX_MS = 3000
/** It waits this long for messages of WebSockets that are being handled, milliseconds. */
const SOCKET_GRACE_MS = 2000

/** Everything that runs in the process and has to end. */
export interface ShutdownParts {
  shutdownTimeoutMs: number
  /** Its streams may be opened while a start is given up: read when they are needed. */
  events: EventParts
  tools: ToolParts
  http: HttpParts
  jobs: Jobs
  supervisor: Supervisor
  /** Null while tracing is off. */
  tracing: () => ProcessTracing | null
  /** Null where no history is kept. */
  history: () => ProcessHistory | null
  /** Told of work that was accepted and did not end in time. */
  onLost: (message: string) => void
}

/** Drains: no new work, everything accepted is finished, then all threads end. Bounded by `shutdownTimeoutMs`. */
export async function shutDown(parts: ShutdownParts): Promise<void> {
  const { shutdownTimeoutMs, events, jobs, supervisor, onLost } = parts
  const { kernel, toolBooter } = parts.tools
  const { listener, localWorker, dispatcher } = parts.http
  const { hub } = events
  const deadlineMs = steadyMs() + shutdownTimeoutMs
  toolBooter.stop()
  await listener.drain(Math.min(LINGER_MAX_MS, shutdownTimeoutMs * 0.3))
  const sockets = new SocketDrain(supervisor.lanes.all, localWorker)
  sockets.begin()
  localWorker.server.closeStreams()
  const requestsInFlight = (): number =>
    supervisor.lanes.all.reduce((sum, lane) => sum + lane.requestsInFlight + lane.filesOpen, 0) +
    dispatcher.waiting +
    localWorker.inFlight
  // Streams of the lanes end with the lanes; all other requests are waited for.
  await until(() => requestsInFlight() === 0, Math.min(deadlineMs, steadyMs() + shutdownTimeoutMs * 0.6))
  await sockets.end(Math.min(deadlineMs, steadyMs() + SOCKET_GRACE_MS))
  await withTimeout(jobs.stop(), deadlineMs - steadyMs(), undefined)
  await events.streams?.stopReading(deadlineMs - 500)
  events.durable.end()
  hub.returnDelayed()
  await until(() => hub.pending === 0 && (events.streams?.open ?? 0) === 0, deadlineMs)
  if (hub.unstored > 0) onLost(`${hub.unstored} event deliveries were not finished and are lost with this process`)
  dispatcher.setLanes([])
  await events.durable.close(Math.max(steadyMs() + 500, deadlineMs - 500))
  await supervisor.stop(Math.max(500, deadlineMs - steadyMs()))
  await events.durable.leave()
  await kernel.stop()
  await events.streams?.close()
  hub.close()
  await hub.records.close()
  listener.close()
  // Last, so that the spans of everything else have ended.
  await parts.history()?.stop()
  await parts.tracing()?.stop(Math.max(500, deadlineMs - steadyMs()))
}
