import type { LogLevel } from '../../contracts/logger.ts'
import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { until } from '../../core/schedule/until.ts'
import { withTimeout } from '../../core/schedule/with-timeout.ts'
import type { ProcessHistory } from '../../history/primary/process-history.ts'
import type { ProcessTracing } from '../../tracing/primary/process-tracing.ts'
import type { Lane } from '../dispatch/lane.ts'
import { SocketDrain } from '../http/socket-drain.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Supervisor } from '../supervision/supervisor.ts'
import { DrainReport } from './drain-report.ts'
import type { EventParts } from './events.ts'
import type { HttpParts } from './http.ts'
import type { ToolParts } from './tools.ts'

/** A drain serves what still comes on open connections for this long at most, milliseconds. */
const LINGER_MAX_MS = 3000
/** It waits this long for messages of WebSockets that are being handled, milliseconds. */
const SOCKET_GRACE_MS = 2000

/** To close everything, work has to end so long before the time is up, milliseconds: a fifth of a short time. */
const CLOSING_MAX_MS = 1500
const CLOSING_SHARE = 0.2
/** What is left for the rest when the lanes have ended, milliseconds. */
const CLOSING_LAST_MS = 500
/** A drain that takes longer says what it waits for, milliseconds. */
const SAYS_AFTER_MS = 1000

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
  /** Events and jobs in flight in a lane. */
  worksOf: (lane: Lane) => WorkInFlight[]
  /** What becomes of an event that is not handled in time. */
  fateOfEvents: string
  log: (level: LogLevel, message: string) => void
}

/** Drains: no new work, everything accepted is finished, then all threads end. Bounded by `shutdownTimeoutMs`. */
export async function shutDown(parts: ShutdownParts): Promise<void> {
  const { shutdownTimeoutMs, events, jobs, supervisor, log } = parts
  const { kernel, toolBooter } = parts.tools
  const { listener, localWorker, dispatcher } = parts.http
  const { hub } = events
  const endMs = steadyMs() + shutdownTimeoutMs
  const deadlineMs = endMs - Math.min(CLOSING_MAX_MS, shutdownTimeoutMs * CLOSING_SHARE)
  const report = new DrainReport(
    {
      works: () => [
        ...supervisor.lanes.all.flatMap((lane) => [...lane.requestWorks(), ...parts.worksOf(lane)]),
        ...localWorker.works(),
      ],
      queued: () => hub.queued,
      fateOfEvents: parts.fateOfEvents,
      log,
    },
    SAYS_AFTER_MS,
    deadlineMs,
  )
  toolBooter.stop()
  parts.tracing()?.hurry()
  await listener.drain(Math.min(LINGER_MAX_MS, shutdownTimeoutMs * 0.3))
  const sockets = new SocketDrain(supervisor.lanes.all, localWorker)
  sockets.begin()
  localWorker.server.closeStreams()
  const requestsInFlight = (): number =>
    supervisor.lanes.all.reduce((sum, lane) => sum + lane.requestsInFlight + lane.filesOpen, 0) +
    dispatcher.waiting +
    localWorker.inFlight
  // Streams of the lanes end with the lanes; all other requests are waited for, those that take long beside what comes next.
  await until(() => requestsInFlight() === 0, Math.min(deadlineMs, steadyMs() + shutdownTimeoutMs * 0.6))
  await sockets.end(Math.min(deadlineMs, steadyMs() + SOCKET_GRACE_MS))
  await withTimeout(jobs.stop(), deadlineMs - steadyMs(), undefined)
  await events.streams?.stopReading(deadlineMs - 500)
  events.durable.end()
  hub.returnDelayed()
  const isDone = (): boolean => hub.pending === 0 && (events.streams?.open ?? 0) === 0 && requestsInFlight() === 0
  await until(isDone, deadlineMs)
  report.end()
  if (hub.unstored > 0)
    log('WARNING', `${hub.unstored} event deliveries were not finished and are lost with this process`)
  dispatcher.setLanes([])
  await events.durable.close(Math.max(steadyMs() + 500, deadlineMs))
  await supervisor.stop(Math.max(500, endMs - CLOSING_LAST_MS - steadyMs()))
  await events.durable.leave()
  await kernel.stop()
  await events.streams?.close()
  hub.close()
  await hub.records.close()
  listener.close()
  // Last, so that the spans of everything else have ended.
  await parts.history()?.stop()
  await parts.tracing()?.stop(Math.max(500, endMs - steadyMs()))
}
