import type { BlackBox, DeathReason } from '../../contracts/registry.ts'
import type { Origin } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { parseExitReport } from '../../transport/exit-report.ts'
import type { Lane, UnfinishedWork } from '../dispatch/lane.ts'
import type { LaneThread } from './lane-thread.ts'
import { framesOfStack, type StackFrame } from './stack-probe.ts'
import { BOOT_TIMEOUT_MS, STANDSTILL_GROWTH } from './watchdog.ts'

/** The cause of a lane's end as far as it is known, and the work that it leaves. */
export interface LaneDeath extends UnfinishedWork {
  reason: DeathReason
  message: string
  /** Where the thread stood or what it threw, innermost frame first; empty when unknown. */
  stack: StackFrame[]
  /** The handler that had made what ended the thread; null when unknown. */
  origin: Origin | null
  stoodStillMs: number
  cpuMs: number | null
  cpuMsWhileStill: number | null
  /** File of the plugin whose boot, or what that has left behind, or what it has broken, has ended the lane; null when something else has. */
  bootCulprit: string | null
}

/** @param error what the thread ended with: null when it ended by itself */
export function laneDeath(thread: LaneThread, error: unknown, unfinished: UnfinishedWork, memoryMb: number): LaneDeath {
  const { lane, watchdog } = thread
  const report = parseExitReport(lane.flight.exitReport())
  const stack = watchdog.stack ?? (report === null ? watchdog.lastStack : framesOfStack(report.stack)) ?? []
  const death: LaneDeath = {
    ...unfinished,
    reason: lane.manifest === null ? 'boot' : 'crashed',
    message:
      watchdog.bootFault ?? report?.message ?? (error === null ? 'its thread ended by itself' : messageOf(error)),
    stack,
    origin: report?.origin ?? null,
    stoodStillMs: Math.round(watchdog.stillMs),
    cpuMs: watchdog.cpuMs ?? lane.heartbeat.cpuMs,
    cpuMsWhileStill: watchdog.cpuMsWhileStill,
    bootCulprit:
      report?.origin?.bootFile ??
      (lane.manifest === null || report?.kind === 'broken' ? bootingAt(thread, stack) : null),
  }
  if (watchdog.terminationReason === 'stalled') {
    return { ...death, reason: 'stalled', message: `its loop stood still for ${death.stoodStillMs} ms` }
  }
  if (watchdog.terminationReason === 'memory') {
    return { ...death, reason: 'memory', message: memoryMessage(lane, death.stoodStillMs > 0, memoryMb) }
  }
  if (thread.holder !== null) {
    const { plugin, handler, files } = thread.holder
    const message = `${files} files that were opened there are not closed`
    return { ...death, reason: 'descriptors', message, origin: { plugin, handler } }
  }
  if ((error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return { ...death, reason: 'memory', message: `it used up its heap memory of ${memoryMb} MiB` }
  }
  if (watchdog.terminationReason === 'boot') {
    return { ...death, message: watchdog.bootFault ?? `a plugin did not boot within ${BOOT_TIMEOUT_MS / 1000} s` }
  }
  if (report === null || report.kind === 'throw' || death.reason !== 'crashed') return death
  return { ...death, reason: report.kind === 'exit' ? 'exited' : 'broken' }
}

/** In one line, with the plugin and its line as far as they are known. */
export function describeDeath({ message }: LaneDeath, guilty: BlackBox['guilty'] | undefined): string {
  const whose = guilty?.plugin == null ? '' : `${guilty.plugin}: `
  return `${whose}${message}${guilty?.line == null ? '' : ` (${guilty.line})`}`
}

/** The plugin that the stack names, else the one that was being booted. */
export function bootingAt({ bootedFiles, bootingFile }: LaneThread, stack: readonly StackFrame[]): string | null {
  return stack.find(({ file }) => bootedFiles.includes(file))?.file ?? bootingFile
}

function memoryMessage({ heartbeat }: Lane, isStill: boolean, memoryMb: number): string {
  if (isStill)
    return `it used up its memory: the process grew by more than ${STANDSTILL_GROWTH * memoryMb} MiB while it stood still`
  return `its ${heartbeat.heapBytes > heartbeat.externalBytes ? 'heap' : 'buffers'} took more than ${memoryMb} MiB`
}
