import type { BlackBox, DeathReason } from '../../contracts/registry.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { parseExitReport } from '../../transport/exit-report.ts'
import type { Lane, LaneRole, UnfinishedWork } from '../dispatch/lane.ts'
import { type LaneWatch, STANDSTILL_GROWTH, type Verdict } from './lane-watch.ts'
import { framesOfStack, type StackFrame } from './stack-probe.ts'

/** Each plugin has this long to load and boot; then its lane is given up. */
export const BOOT_TIMEOUT_MS = 30_000

/** One lane's slot: threads come and go in it. */
export interface LaneSlot {
  readonly index: number
  readonly role: LaneRole
  restarts: number
  /** Newest first. */
  deaths: BlackBox[]
  /** It died of a plugin's boot, and is about to be started without that plugin. */
  isRetried: boolean
  /** A thread boots to help out for one that stands still. */
  isStandbyStarting: boolean
  /** It helps out: beside the thread that stands still, until that goes on or has ended. */
  standby: LaneThread | null
  /** Of the restart that is due. */
  timer: NodeJS.Timeout | undefined
  thread: LaneThread
}

export function emptySlot(index: number, role: LaneRole): Omit<LaneSlot, 'thread'> {
  return {
    index,
    role,
    restarts: 0,
    deaths: [],
    isRetried: false,
    isStandbyStarting: false,
    standby: null,
    timer: undefined,
  }
}

/** A thread in its slot, or one that is to take over. */
export interface LaneThread {
  readonly lane: Lane
  readonly watch: LaneWatch
  readonly abort: AbortController
  /** What ends it, once that is decided. */
  verdict: Verdict | 'boot'
  stack: StackFrame[] | null
  /** As last seen: a thread that is gone has none. */
  cpuMs: number | null
  cpuMsWhileStill: number | null
  booting: string | null
  /** All that it has begun to load, by file. */
  readonly bootedFiles: string[]
  /** Since the last of them began, while the primary was looking. */
  bootStillMs: number
  /** Why it could not boot, where that is known and is not the time that a plugin took. */
  bootFault: string | null
  /** Of a thread that is to take over: it has booted (null), or why it did not. */
  arrived: ((fault: string | null) => void) | null
  /** What it died of, when it has. */
  deathMessage: string | null
  /** Resolves when the thread has ended. */
  ended: Promise<void>
}

/** What is known of a lane's end, and what it leaves. */
export interface Death extends UnfinishedWork {
  reason: DeathReason
  message: string
  /** Where it stood or what it threw, innermost frame first; empty when unknown. */
  stack: StackFrame[]
  stoodStillMs: number
  cpuMs: number | null
  cpuMsWhileStill: number | null
  /** The file of the plugin that was being booted. */
  booting: string | null
}

function memoryMessage({ heartbeat }: Lane, isStill: boolean, memoryMb: number): string {
  if (isStill)
    return `it used up its memory: the process grew by more than ${STANDSTILL_GROWTH * memoryMb} MiB while it stood still`
  return `its ${heartbeat.heapBytes > heartbeat.externalBytes ? 'heap' : 'buffers'} took more than ${memoryMb} MiB`
}

/** @param error what its thread ended with: null when it ended by itself */
export function deathOf(thread: LaneThread, error: unknown, unfinished: UnfinishedWork, memoryMb: number): Death {
  const { lane, watch } = thread
  const words = parseExitReport(lane.flight.exitReport())
  const death: Death = {
    ...unfinished,
    reason: lane.manifest === null ? 'boot' : 'crashed',
    message: thread.bootFault ?? words?.message ?? (error === null ? 'its thread ended by itself' : messageOf(error)),
    stack: thread.stack ?? (words === null ? watch.lastStack : framesOfStack(words.stack)) ?? [],
    stoodStillMs: Math.round(watch.stillMs),
    cpuMs: thread.cpuMs ?? lane.heartbeat.cpuMs,
    cpuMsWhileStill: thread.cpuMsWhileStill,
    booting: thread.booting,
  }
  if (thread.verdict === 'stalled') {
    return { ...death, reason: 'stalled', message: `its loop stood still for ${death.stoodStillMs} ms` }
  }
  if (thread.verdict === 'memory') {
    return { ...death, reason: 'memory', message: memoryMessage(lane, death.stoodStillMs > 0, memoryMb) }
  }
  if ((error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return { ...death, reason: 'memory', message: `it used up its heap memory of ${memoryMb} MiB` }
  }
  if (thread.verdict === 'boot') {
    return { ...death, message: thread.bootFault ?? `a plugin did not boot within ${BOOT_TIMEOUT_MS / 1000} s` }
  }
  return words?.kind === 'exit' && death.reason === 'crashed' ? { ...death, reason: 'exited' } : death
}
