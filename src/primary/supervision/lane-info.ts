import type { LaneInfo } from '../../contracts/registry.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Place } from './lane-thread.ts'

/** A lane as `/system/lanes` shows it. @param more what is different for this one */
export function infoOf(lane: Lane, { index, role, restarts, deaths }: Place, more: Partial<LaneInfo>): LaneInfo {
  return {
    index,
    role,
    state: lane.state,
    responsive: lane.responsive,
    requests_in_flight: lane.requestsInFlight,
    deliveries_in_flight: lane.deliveriesInFlight,
    sockets_open: lane.sockets.size,
    loop_delay_ms: lane.pulse.loopDelayMs,
    heap_bytes: lane.pulse.heapBytes,
    external_bytes: lane.pulse.externalBytes,
    cpu_ms: lane.pulse.cpuMs,
    started_at: new Date(lane.startedMs).toISOString(),
    restarts,
    deaths,
    ...more,
  }
}
