import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { Meter } from '../../src/runtime/kernel/proxy.ts'
import { createFlightRecorder, FlightRecorder } from '../../src/transport/memory/flight-recorder.ts'
import { createMetricsRing, MetricsRing } from '../../src/transport/memory/metrics-ring.ts'
import { createNameTable, NameTable } from '../../src/transport/memory/name-table.ts'
import { createStatusTable, StatusTable } from '../../src/transport/memory/words.ts'

/** The tool as a plugin gets it, through the runtime's proxy. No other file of the benchmarks depends on how that is built. */
export function proxied<T extends object>(name: string, tool: T): T {
  return proxy()(name, tool)
}

/** What a tool of a lane gets from the runtime, as far as a measurement needs it. */
export const runtimeWith = (parts: Partial<Record<keyof ToolRuntime, unknown>>): ToolRuntime => {
  const runtime: Partial<ToolRuntime> = {
    thread: { kind: 'lane', index: 0 },
    log: () => {},
    sharedMemory: (_, byteLength) => new SharedArrayBuffer(byteLength),
    instrument: (target) => target,
  }
  return { ...runtime, ...parts } as ToolRuntime
}

/** Puts many objects behind one proxy. */
export function proxy(): <T extends object>(name: string, tool: T) => T {
  const meter = new Meter({
    threadNumber: 0,
    metrics: new MetricsRing(createMetricsRing()),
    names: new NameTable(createNameTable()),
    statuses: new StatusTable(createStatusTable()),
    // As in a lane, calls are also written to the flight recorder.
    flight: new FlightRecorder(createFlightRecorder()),
    onStatus: (_tool, status, message) => {
      throw new Error(`the tool became ${status}: ${message}`)
    },
    onSinkFault: (thrown) => {
      throw thrown
    },
  })
  return (name, tool) => meter.wrapAlike(name, tool) ?? meter.wrap(name, 0, tool)
}
