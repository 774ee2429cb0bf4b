// The parts of the primary that lanes are started with, and that hear of them.
import type { ProcessHistory } from '../../history/process-history.ts'
import type { LaneServices } from '../../runtime/host/services.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { ProcessTracing } from '../../tracing/process-tracing.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { Durable } from '../event-store/durable.ts'
import type { StoreWriter } from '../event-store/store-writer.ts'
import type { EventDriver } from '../events/event-driver.ts'
import type { Hub } from '../events/hub.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { RecordForwarder } from '../events/record-forwarder.ts'
import type { FlightMirror } from '../flight/flight-mirror.ts'
import type { Health, Snapshots } from '../health/health.ts'
import type { Descriptors, PoolProbe } from '../health/held-resources.ts'
import type { Routing } from '../http/routes.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { ProcessLog } from '../logging/process-log.ts'
import type { Isolation } from './isolation.ts'
import type { LaneSet } from './lane-set.ts'
import type { ProcessDeaths } from './process-deaths.ts'

export interface LaneParts {
  /** Somebody waits for each change of the code: threads are started ahead of the lanes that will need them. */
  readonly isDevelopment: boolean
  readonly kernel: ThreadKernel
  readonly processLog: ProcessLog<Lane>
  readonly lanes: LaneSet
  readonly isolation: Isolation
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly events: {
    readonly hub: Hub
    readonly laneSubscribers: LaneSubscribers
    readonly recordForwarder: RecordForwarder
    readonly durable: Durable
    readonly storeWriter: StoreWriter
    readonly driver: EventDriver
  }
  readonly health: Health
  readonly snapshots: Snapshots
  readonly jobs: Jobs
  readonly services: LaneServices
  readonly pool: PoolProbe
  readonly descriptors: Descriptors
  readonly recorders: {
    /** Null while tracing is off. */
    readonly tracing: ProcessTracing | null
    /** Null where no history is kept. */
    readonly history: ProcessHistory | null
  }
  /** Null without a guardian, which alone would read it. */
  readonly flightMirror: FlightMirror | null
  /** What the processes before this one died of; null without a guardian, who alone would tell. */
  readonly processDeaths: ProcessDeaths | null
}
