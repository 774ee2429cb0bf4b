import type { LaneInfo } from '../../contracts/registry.ts'
import type { LaneSlot, LaneThread } from './lane-thread.ts'

/** A lane as `/system/lanes` shows it. @param changes fields that differ for this lane */
export function infoOf(
  { lane, children }: LaneThread,
  { index, role, restarts, deaths }: LaneSlot,
  changes: Partial<LaneInfo>,
): LaneInfo {
  return {
    index,
    role,
    state: lane.state,
    responsive: lane.responsive,
    requests_in_flight: lane.requestsInFlight + lane.streamsOpen,
    deliveries_in_flight: lane.deliveriesInFlight,
    sockets_open: lane.sockets.size,
    loop_delay_ms: lane.heartbeat.loopDelayMs,
    heap_bytes: lane.heartbeat.heapBytes,
    external_bytes: lane.heartbeat.externalBytes,
    cpu_ms: lane.heartbeat.cpuMs,
    child_processes: children.list(),
    threads: children.threads(),
    started_at: new Date(lane.startedMs).toISOString(),
    restarts,
    deaths,
    ...changes,
  }
}
