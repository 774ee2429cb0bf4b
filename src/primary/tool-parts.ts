// The tools and plugins of the primary thread, and the health of the process.

import { processNumber } from '../core/config/checks.ts'
import type { Settings } from '../core/config/schema.ts'
import { watchUnawaited } from '../runtime/kernel/failed-calls.ts'
import { ThreadKernel } from '../runtime/kernel/thread.ts'
import { StatusTable } from '../transport/memory/words.ts'
import type { SharedMemories } from '../transport/messages.ts'
import type { Lane } from './dispatch/lane.ts'
import type { EventParts } from './event-parts.ts'
import { Health, Snapshots } from './health/health.ts'
import type { ProcessLog } from './logging/process-log.ts'
import type { LaneSet } from './supervision/lane-set.ts'
import { ToolBooter } from './tools/tool-booter.ts'

export type ToolParts = ReturnType<typeof assembleTools>

interface ToolOptions {
  settings: Settings
  shared: SharedMemories
  processLog: ProcessLog<Lane>
  events: EventParts
  lanes: LaneSet
}

/** The tools and plugins of the primary thread, and the health of the whole process. */
export function assembleTools({ settings, shared, processLog, events, lanes }: ToolOptions) {
  const { log } = processLog
  const number = processNumber(settings)
  // The kernel reports to `health`, which asks the kernel for its tools. Neither does so before a tool is booted.
  const kernel: ThreadKernel = new ThreadKernel({
    thread: { kind: 'primary' },
    settings,
    metrics: shared.metrics,
    names: shared.names,
    statuses: shared.statuses,
    flight: null,
    sharedMemory: (key, byteLength) => {
      shared.tools[key] ??= new SharedArrayBuffer(byteLength)
      return shared.tools[key]
    },
    callPrimary: async (tool, method, args) => kernel.toolbox.serve(tool, method, args),
    onToolStatus: (...change) => health.noteTool(...change),
    writeLog: log,
  })
  watchUnawaited(log, (plugin) => kernel.plugins.files[plugin])
  const health: Health = new Health({
    statuses: new StatusTable(shared.statuses),
    toolIndex: (tool) => kernel.toolbox.indexOf(tool),
    toolNames: () => kernel.toolbox.names,
    lanes: () => lanes.countByState(),
    onChange: () => snapshots.sendSoon(),
    process: number === null ? null : { number, of: settings.processes, replica: settings.replicaId, pid: process.pid },
  })
  const snapshots = new Snapshots(health, events.hub, () => lanes.all)
  processLog.connect((record, origin) => {
    kernel.tellLogSinks(record)
    events.recordForwarder.log(record, origin)
  })
  const toolBooter = new ToolBooter({ toolbox: kernel.toolbox, health, log })
  return { kernel, health, snapshots, toolBooter }
}
