import { until } from '../../core/schedule/until.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { ProcessTracing } from '../../tracing/primary/process-tracing.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Hub } from '../events/hub.ts'
import type { Listener } from '../http/listener.ts'
import type { LocalWorker } from '../http/local-worker.ts'
import { SocketDrain } from '../http/socket-drain.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { StreamCoordinator } from '../streams/coordinator.ts'
import type { Supervisor } from '../supervision/supervisor.ts'
import type { ToolBooter } from '../tools/tool-booter.ts'

/** A drain serves what still comes on open connections for so long at most, milliseconds. */
const LINGER_MAX_MS = 3000
/** And what is being handled of WebSockets is waited for so long, milliseconds. */
const SOCKET_GRACE_MS = 2000

/** All that runs in the process, and has to end. */
export interface ShutdownParts {
  shutdownTimeoutMs: number
  toolBooter: ToolBooter
  listener: Listener
  local: LocalWorker
  dispatcher: Dispatcher
  supervisor: Supervisor
  jobs: Jobs
  kernel: ThreadKernel
  hub: Hub
  /** Null while the hub carries all events; it may come while a start is given up. */
  readonly streams: StreamCoordinator | null
  /** Null while tracing is off; as above. */
  readonly tracing: ProcessTracing | null
  /** Told of work that was accepted and did not end in time. */
  onLost: (message: string) => void
}

/** Drains: no new work, everything accepted is finished, then all threads end. Bounded by `shutdownTimeoutMs`. */
export async function shutDown(parts: ShutdownParts): Promise<void> {
  const { shutdownTimeoutMs, toolBooter, listener, local, dispatcher, supervisor } = parts
  const { jobs, kernel, hub, onLost } = parts
  const deadlineMs = Date.now() + shutdownTimeoutMs
  toolBooter.stop()
  await listener.drain(Math.min(LINGER_MAX_MS, shutdownTimeoutMs * 0.3))
  const sockets = new SocketDrain(supervisor.all, local)
  sockets.begin()
  local.server.closeStreams()
  const requestsInFlight = (): number =>
    supervisor.all.reduce((sum, lane) => sum + lane.requestsInFlight - lane.streamsOpen + lane.filesOpen, 0) +
    dispatcher.waiting +
    local.inFlight
  // Streams of the lanes end with the lanes; all else is waited for.
  await until(() => requestsInFlight() === 0, Math.min(deadlineMs, Date.now() + shutdownTimeoutMs * 0.6))
  await sockets.end(Math.min(deadlineMs, Date.now() + SOCKET_GRACE_MS))
  await Promise.race([jobs.stop(), until(() => false, deadlineMs)])
  await parts.streams?.stopReading(deadlineMs - 500)
  await until(() => hub.pending === 0 && (parts.streams?.open ?? 0) === 0, deadlineMs)
  if (hub.pending > 0 && parts.streams === null) {
    onLost(`${hub.pending} event deliveries were not finished and are lost with this process`)
  }
  dispatcher.setLanes([])
  await supervisor.stop(Math.max(500, deadlineMs - Date.now()))
  await kernel.stop()
  await parts.streams?.close()
  hub.close()
  listener.close()
  // Last: everything has ended that could end.
  await parts.tracing?.stop(Math.max(500, deadlineMs - Date.now()))
}
