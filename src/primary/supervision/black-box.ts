// What is known of a lane's end, and who is told.

import { resolve, sep } from 'node:path'
import type { BlackBox, DeathReason, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../contracts/tracing.ts'
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { framesOfStack, isOfRuntime, placeText, type StackFrame, shownFrame } from '../../core/errors/places.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { withoutSecretStrings } from '../../core/schemas/secret-fields.ts'
import { type ExitReport, parseExitReport } from '../../transport/exit-report.ts'
import { type RawStep, STEP_CALL, STEP_REQUEST } from '../../transport/memory/flight-recorder.ts'
import { NameTable } from '../../transport/memory/name-table.ts'
import type { Lane, UnfinishedWork } from '../dispatch/lane.ts'
import { workOf } from '../dispatch/request-slots.ts'
import { publishOwn } from '../events/event-driver.ts'
import { causeText, handlersIn, hasJustEnded, idOf, kindOf, originsIn, withLine } from '../flight/work.ts'
import { causeOf } from './cause.ts'
import type { LaneParts } from './lane-parts.ts'
import type { LaneThread } from './lane-set.ts'
import { isOfNode } from './stack-probe.ts'
import { BOOT_TIMEOUT_MS, STANDSTILL_GROWTH, type Standstill } from './watchdog.ts'

/** The cause of a lane's end as far as it is known, and the work that it leaves. */
export interface LaneDeath extends UnfinishedWork {
  reason: DeathReason
  message: string
  /** Where the thread stood or what it threw, innermost frame first; empty when unknown. */
  stack: StackFrame[]
  /** The handler that had made what ended the thread; null when unknown. */
  origin: Origin | null
  /** File of the plugin whose boot, or what that has left behind, or what it has broken, has ended the lane; null when something else has. */
  bootCulprit: string | null
}

/** @param error what the thread ended with: null when it ended by itself */
export function laneDeath(lane: LaneThread, error: unknown, unfinished: UnfinishedWork, memoryMb: number): LaneDeath {
  const { watchdog, holder } = lane
  const report = parseExitReport(lane.flight.exitReport())
  const stack = watchdog.stack ?? (report === null ? watchdog.lastStack : framesOfStack(report.stack)) ?? []
  const death: LaneDeath = {
    ...unfinished,
    reason: lane.manifest === null ? 'boot' : 'crashed',
    message:
      watchdog.bootFault ?? report?.message ?? (error === null ? 'its thread ended by itself' : messageOf(error)),
    stack,
    origin: report?.origin ?? null,
    bootCulprit:
      report?.origin?.bootFile ??
      (lane.manifest === null || report?.kind === 'broken' ? bootCulpritOf(lane, stack, report?.kind ?? null) : null),
  }
  if (watchdog.terminationReason === 'stalled') {
    return { ...death, reason: 'stalled', message: `its loop stood still for ${Math.round(watchdog.stillMs)} ms` }
  }
  if (watchdog.terminationReason === 'memory') {
    return { ...death, reason: 'memory', message: memoryMessage(lane, memoryMb) }
  }
  if (holder !== null) {
    const { plugin, handler, files } = holder
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
export function describeDeath({ message, guilty }: Pick<BlackBox, 'message' | 'guilty'>): string {
  return withLine(guilty?.plugin == null ? message : `${guilty.plugin}: ${message}`, guilty?.line)
}

function bootCulpritOf(lane: LaneThread, stack: readonly StackFrame[], said: ExitReport['kind'] | null): string | null {
  const { watchdog, bootingFile } = lane
  // What replaces builtins is seen when its boot is over, and a boot that does not settle has nothing under way.
  const isLate = watchdog.terminationReason === 'boot' && watchdog.bootFault === null && watchdog.isResponsive
  if (said === 'broken' || isLate) return namedIn(lane, stack) ?? bootingFile
  return bootingAt(lane, stack)
}

const namedIn = ({ bootedFiles }: LaneThread, stack: readonly StackFrame[]): string | undefined =>
  stack.find(({ file }) => bootedFiles.includes(file))?.file

/** The plugin that the stack names, else the one whose turn it is. Null where it is neither: who is being booted need not have to do with it. */
export function bootingAt(lane: LaneThread, stack: readonly StackFrame[]): string | null {
  return namedIn(lane, stack) ?? lane.bootedFiles[lane.watchdog.turn - 1] ?? null
}

function memoryMessage({ heartbeat, watchdog }: LaneThread, memoryMb: number): string {
  if (Math.round(watchdog.stillMs) > 0)
    return `it used up its memory: the process grew by more than ${STANDSTILL_GROWTH * memoryMb} MiB while it stood still`
  return `its ${heartbeat.heapBytes > heartbeat.externalBytes ? 'heap' : 'buffers'} took more than ${memoryMb} MiB`
}

/** Of the report in the log: the whole one is at /system/lanes. */
const IN_FLIGHT_LOGGED = 10
const FRAMES_LOGGED = 8
/** Files of the runtime that read bodies and write answers. They call no handler. */
const FOR_CLIENTS = /[\\/]runtime[\\/]endpoint[\\/](?:input[\\/]|(?:json-answer|reply|encodings)\.)/
/** Work in flight that a black box names at most. */
const IN_FLIGHT_KEPT = 50

/** True when other work ended shortly before: a timer that it left may be the cause. */
const hasAftermath = (steps: readonly RawStep[]): boolean =>
  steps.some((step) => step.kind !== STEP_CALL && hasJustEnded(step))

/** The event that reports a lane's death. Its payload is the black box. */
const LANE_DIED = 'runtime.lane.died'
const IDENTITY = 'supervisor'
/** Steps that the log and the event show; `/system/lanes` shows all. */
const STEPS_REPORTED = 10

type WorksOf = (lane: Lane, unread: ReadonlySet<number>) => WorkInFlight[]

/** What requests get that were in flight there. */
export const answerOf = ({ reason }: BlackBox): ErrorCode =>
  reason === 'stalled' ? 'HTTP_LANE_STALLED' : 'HTTP_INTERNAL'

/** Handles the death of a lane: reads and reports its black box, and answers the requests of the plugin that caused it. */
export class LaneDeaths {
  readonly #parts: LaneParts
  readonly #worksOf: WorksOf
  readonly #domains: string[]
  readonly #callNames: NameTable

  /** @param worksOf events, jobs and messages of sockets that are in flight in a lane, but for deliveries that it never began */
  constructor(parts: LaneParts, worksOf: WorksOf) {
    this.#parts = parts
    this.#worksOf = worksOf
    this.#domains = parts.kernel.settings.domainsDir.map((directory) => resolve(directory) + sep)
    this.#callNames = new NameTable(parts.kernel.shared.names)
  }

  /** A lane has died, or is dying. Requests of the plugin that caused it fail now; others may still be answered. */
  onDeath(lane: LaneThread, death: LaneDeath): BlackBox {
    const { isolation, recorders } = this.#parts
    const shown = this.#boxOf(lane, death)
    const guilty = this.#isUnproved(lane, death, shown) ? null : (this.#aloneOnProbation(lane, shown) ?? shown.guilty)
    const box = { ...shown, guilty }
    this.#report(box)
    recorders.history?.died(box, new Map(death.requests.map(({ exchange: { requestId, key } }) => [requestId, key])))
    // A plugin that crashes lanes by its boot is left out of the next ones.
    if (death.bootCulprit === null) isolation.recordCrash(box)
    if (box.guilty?.plugin != null) lane.failRequestsOf(box.guilty.plugin, answerOf(box))
    return box
  }

  /** In the probation lane a handler may be proved that has just ended. */
  #aloneOnProbation(lane: Lane, { guilty }: BlackBox): BlackBox['guilty'] {
    if (guilty?.plugin != null || lane.manifest === null || lane.role !== 'probation') return null
    const handlers = handlersIn(lane, this.#parts.routing)
    const [plugin, ...others] = new Set(handlers.map((each) => each.plugin))
    if (plugin === undefined || others.length > 0) return null
    const handler = handlers.length === 1 ? handlers[0]!.handler : null
    return { plugin, handler, line: guilty?.line ?? null, evidence: 'alone' }
  }

  /** True where nobody is named: the runtime itself was at work, or who was there when a replaced builtin was noticed need not have replaced it. */
  #isUnproved(lane: Lane, death: LaneDeath, { reason, guilty }: BlackBox): boolean {
    if (reason === 'broken') return guilty?.evidence !== 'stack' && guilty?.evidence !== 'origin'
    // Between two turns of a loop: who is in flight need not be who loops.
    if (reason === 'stalled' && death.stack.length > 0 && isOfNode(death.stack)) return guilty?.evidence !== 'origin'
    return this.#isOfRuntime(lane, death)
  }

  /** True where the runtime parsed, checked or wrote what a client wants when the lane was stopped: that is not the plugin's own time. */
  #isOfRuntime({ heartbeat }: Lane, { reason, stack }: LaneDeath): boolean {
    if (reason !== 'stalled' || stack.some(({ file }) => this.#isDomainFile(file))) return false
    if (stack.length === 0) return heartbeat.isOwnWork
    const innermost = stack.find(({ file }) => isOfRuntime(file))
    return innermost !== undefined && FOR_CLIENTS.test(innermost.file)
  }

  /** A lane that stood still has gone on by itself. Nothing is lost, but the log says where it stood. */
  onRecovered(lane: Lane, { stillMs, stack }: Standstill): void {
    const line = stack?.find(({ file }) => this.#isDomainFile(file))
    if (line === undefined) return
    const still_ms = Math.round(stillMs)
    const fields = { lane: lane.index, still_ms, stack: stack!.map(shownFrame).join('\n') }
    const message = `Lane ${lane.index} stood still for ${still_ms} ms (${placeText(line)})`
    this.#parts.kernel.writeLog('WARNING', message, IDENTITY, fields)
  }

  #boxOf(lane: LaneThread, death: LaneDeath): BlackBox {
    const nowMs = steadyMs()
    const { watchdog, heartbeat } = lane
    const requests = death.requests.map(workOf)
    // An open stream is there for hours: it says nothing about the cause.
    const streams = new Set(requests.filter((_, n) => death.requests[n]!.isStream))
    const works = [...requests, ...this.#worksOf(lane, death.unreadDeliveries)].sort((a, b) => b.for_ms - a.for_ms)
    const begun = works.filter((work) => !streams.has(work))
    const steps = lane.flight.steps()
    const originOf = originsIn(lane, this.#parts.routing)
    return {
      at: new Date(nowMs).toISOString(),
      lane: lane.index,
      reason: death.reason,
      message: withoutSecretStrings(death.message),
      guilty: causeOf({
        ...death,
        works: begun,
        isAloneProof: death.reason !== 'memory' && death.reason !== 'broken' && !hasAftermath(steps),
        files: lane.manifest?.files ?? {},
        isOwnFile: (file) => this.#isDomainFile(file),
      }),
      stack: death.stack.map((frame) => withoutSecretStrings(shownFrame(frame))),
      stood_still_ms: Math.round(watchdog.stillMs),
      lived_ms: nowMs - lane.startedMs,
      cpu_ms: watchdog.cpuMs ?? heartbeat.cpuMs,
      cpu_ms_while_still: watchdog.cpuMsWhileStill,
      heap_bytes: heartbeat.hasReported ? heartbeat.heapBytes : null,
      external_bytes: heartbeat.hasReported ? heartbeat.externalBytes : null,
      in_flight: works.slice(0, IN_FLIGHT_KEPT),
      in_flight_count: works.length,
      steps: steps.map((step) => ({
        at: new Date(step.begunMs).toISOString(),
        kind: kindOf(step),
        name: this.#nameOf(step, originOf),
        id: idOf(step),
        duration_ms: step.endedMs === 0 ? null : Math.max(0, step.endedMs - step.begunMs),
        success: !step.failed,
      })),
    }
  }

  #nameOf(step: RawStep, originOf: (step: RawStep) => Origin | null): string {
    if (step.kind === STEP_CALL) return this.#callNames.nameOf(step.subject)
    // Also of a route that was removed.
    return step.kind === STEP_REQUEST
      ? this.#parts.routing.nameOf(step.subject)
      : (originOf(step)?.handler ?? kindOf(step))
  }

  #isDomainFile(file: string): boolean {
    return this.#domains.some((directory) => file.startsWith(directory)) && !file.includes('node_modules')
  }

  #report(box: BlackBox): void {
    const short = { ...box, steps: box.steps.slice(-STEPS_REPORTED) }
    const { kernel, events } = this.#parts
    const { lane, reason, guilty, in_flight_count, in_flight } = box
    // What was in flight when a replaced builtin was noticed says nothing.
    const isSilent = guilty === null && reason === 'broken'
    const cause = isSilent ? '' : causeText(guilty, in_flight, in_flight_count)
    const fields = {
      ...{ lane, reason, plugin: guilty?.plugin ?? undefined, evidence: guilty?.evidence },
      in_flight: in_flight.slice(0, IN_FLIGHT_LOGGED).map(({ name }) => name),
      in_flight_count,
      report: '/system/lanes',
      stack: box.stack.slice(0, FRAMES_LOGGED).join('\n'),
    }
    const message = `Lane ${box.lane} died: ${box.message}${cause}`
    kernel.writeLog('ERROR', message, IDENTITY, fields)
    publishOwn(IDENTITY, LANE_DIED, { ...short }, (event) => events.driver.publish(event, null), kernel.writeLog)
  }
}
