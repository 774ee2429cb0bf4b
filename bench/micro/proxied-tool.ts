import { Meter } from '../../src/kernel/proxy.ts'
import { createFlightRecorder, FlightRecorder } from '../../src/shm/flight-recorder.ts'
import { createMetricsRing, MetricsRing } from '../../src/shm/metrics-ring.ts'
import { createNameTable, NameTable } from '../../src/shm/name-table.ts'
import { createStatusTable, StatusTable } from '../../src/shm/status-table.ts'

/** The tool as a plugin gets it, through the runtime's own proxy. The only place of the benchmarks that knows how that is put together. */
export function proxied<T extends object>(name: string, tool: T): T {
  const meter = new Meter({
    threadNumber: 0,
    metrics: new MetricsRing(createMetricsRing()),
    names: new NameTable(createNameTable()),
    statuses: new StatusTable(createStatusTable()),
    // As in a lane: its calls are written to its flight recorder too.
    flight: new FlightRecorder(createFlightRecorder()),
    onStatus: (_tool, status, message) => {
      throw new Error(`the tool became ${status}: ${message}`)
    },
    onSinkFault: (thrown) => {
      throw thrown
    },
  })
  return meter.wrap(name, 0, tool)
}
