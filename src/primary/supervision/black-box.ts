import { relative } from 'node:path'
import type { BlackBox, FlightStep, WorkInFlight } from '../../contracts/registry.ts'
import type { Origin } from '../../core/causality/context.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import { withoutSecretTexts } from '../../core/schemas/secret-texts.ts'
import {
  type RawStep,
  STEP_CALL,
  STEP_EVENT,
  STEP_JOB,
  STEP_REQUEST,
  STEP_STREAM_EVENT,
} from '../../transport/memory/flight-recorder.ts'
import type { Lane } from '../dispatch/lane.ts'
import { workOf } from '../dispatch/request-slots.ts'
import type { LaneDeath } from './lane-death.ts'
import { shownFrame } from './stack-probe.ts'

const KINDS: Record<number, FlightStep['kind']> = {
  [STEP_REQUEST]: 'request',
  [STEP_CALL]: 'call',
  [STEP_EVENT]: 'event',
  [STEP_STREAM_EVENT]: 'event',
  [STEP_JOB]: 'job',
}

/** Work in flight that a black box names at most. */
const IN_FLIGHT_KEPT = 50
/** Work that ended this long before a death may have left something behind that killed the lane, milliseconds. */
const AFTERMATH_MS = 1000

/** The names behind the numbers in a flight recorder, and the work of the lane that the primary knows of. */
export interface LaneKnowledge {
  routeName(number: number): string
  callName(number: number): string
  subscriberName(subscriberIndex: number): string
  jobName(job: number): string
  /** The handler whose work a step is; null for a call. */
  originOf(step: RawStep): Origin | null
  /** Where the lane has stood still shortly before, as a line of a domain; null when it has not. */
  recentLine: string | null
  /** Events and jobs in flight in the lane. */
  works: WorkInFlight[]
  /** True for a file in one of the domains. */
  isDomainFile(file: string): boolean
}

/** Collects what is known of a lane's end. */
export function blackBoxOf(lane: Lane, death: LaneDeath, known: LaneKnowledge): BlackBox {
  const nowMs = steadyMs()
  const requests = death.requests.map(workOf)
  // An open stream is there for hours: it says nothing about the cause.
  const streams = new Set(requests.filter((_, n) => death.requests[n]!.isStream))
  const works = [...requests, ...known.works].sort((a, b) => b.for_ms - a.for_ms)
  const steps = lane.flight.steps()
  return {
    at: new Date(nowMs).toISOString(),
    lane: lane.index,
    reason: death.reason,
    message: withoutSecretTexts(death.message),
    guilty: guiltyOf(
      lane,
      death,
      works.filter((work) => !streams.has(work)),
      steps,
      known,
    ),
    stack: death.stack.map((frame) => withoutSecretTexts(shownFrame(frame))),
    stood_still_ms: death.stoodStillMs,
    lived_ms: nowMs - lane.startedMs,
    cpu_ms: death.cpuMs,
    cpu_ms_while_still: death.cpuMsWhileStill,
    heap_bytes: lane.heartbeat.heapBytes,
    external_bytes: lane.heartbeat.externalBytes,
    in_flight: works.slice(0, IN_FLIGHT_KEPT),
    in_flight_count: works.length,
    steps: steps.map((step) => shownStep(step, known)),
  }
}

/**
 * The plugin that brought the lane down. The stack is proof, and so is the handler that
 * made the timer, socket or promise whose callback ended the thread; work that was in flight alone is nearly one. The work that was begun
 * last is the best guess only where a handler must have been running: the loop stood still, or the memory ran out.
 */
function guiltyOf(
  lane: Lane,
  { reason, stack, origin, bootCulprit }: LaneDeath,
  works: readonly WorkInFlight[],
  steps: readonly RawStep[],
  known: LaneKnowledge,
): BlackBox['guilty'] {
  const frame = stack.find(({ file }) => known.isDomainFile(file))
  const line = frame === undefined ? null : `${relative(process.cwd(), frame.file)}:${frame.line}:${frame.column}`
  const files = new Map(Object.entries(lane.manifest?.files ?? {}).map(([plugin, file]) => [file, plugin]))
  const plugin = stack.map(({ file }) => files.get(file)).find((name) => name !== undefined)
  if (plugin !== undefined) {
    const own = works.filter((work) => work.plugin === plugin)
    const handler = origin?.bootFile !== undefined ? origin.handler : own.length === 1 ? own[0]!.name : null
    return { plugin, handler, line, evidence: 'stack' }
  }
  const place = line ?? (bootCulprit === null ? null : relative(process.cwd(), bootCulprit))
  if (origin !== null) return { plugin: origin.plugin, handler: origin.handler, line: place, evidence: 'origin' }
  if (bootCulprit !== null) return { plugin: null, handler: null, line: place, evidence: 'alone' }
  if (works.length === 1) {
    const isAlone = reason !== 'memory' && reason !== 'broken' && !hasAftermath(steps)
    return { plugin: works[0]!.plugin, handler: works[0]!.name, line, evidence: isAlone ? 'alone' : 'last' }
  }
  if (reason === 'stalled' || reason === 'memory') {
    const last = steps.findLast(({ kind, endedMs }) => kind !== STEP_CALL && endedMs === 0)
    const id = last === undefined ? '' : shownId(last)
    const work = works.find((each) => id !== null && id !== '' && each.id?.startsWith(id))
    if (work !== undefined) return { plugin: work.plugin, handler: work.name, line, evidence: 'last' }
  }
  if (reason === 'memory' || reason === 'broken') return mostlyAt(steps, known)
  return line === null ? null : { plugin: null, handler: null, line, evidence: 'stack' }
}

/** What fills the memory, or breaks a builtin, may have been answered long ago. It is a hint who did most of what the lane did at last. */
function mostlyAt(steps: readonly RawStep[], { originOf, recentLine }: LaneKnowledge): BlackBox['guilty'] {
  const counts = new Map<string, { origin: Origin; count: number }>()
  let all = 0
  for (const step of steps) {
    const origin = originOf(step)
    if (origin === null) continue
    all++
    const key = `${origin.plugin} ${origin.handler}`
    const seen = counts.get(key)
    if (seen === undefined) counts.set(key, { origin, count: 1 })
    else seen.count++
  }
  const most = [...counts.values()].sort((a, b) => b.count - a.count)[0]
  if (most !== undefined && 2 * most.count > all) return { ...most.origin, line: recentLine, evidence: 'last' }
  return recentLine === null ? null : { plugin: null, handler: null, line: recentLine, evidence: 'last' }
}

/** True when other work ended shortly before: a timer that it left may be the cause. */
function hasAftermath(steps: readonly RawStep[]): boolean {
  const sinceMs = Date.now() - AFTERMATH_MS
  return steps.some(({ kind, endedMs }) => kind !== STEP_CALL && endedMs > sinceMs)
}

function shownStep(step: RawStep, known: LaneKnowledge): FlightStep {
  return {
    at: new Date(step.begunMs).toISOString(),
    kind: KINDS[step.kind] ?? 'call',
    name: nameOf(step, known),
    id: shownId(step),
    duration_ms: step.endedMs === 0 ? null : Math.max(0, step.endedMs - step.begunMs),
    success: !step.failed,
  }
}

function shownId({ kind, id }: RawStep): string | null {
  if (id === '') return null
  return KINDS[kind] === 'event' ? `evt_${id}` : id
}

function nameOf({ kind, subject }: RawStep, known: LaneKnowledge): string {
  switch (kind) {
    case STEP_REQUEST:
      return known.routeName(subject)
    case STEP_EVENT:
    case STEP_STREAM_EVENT:
      return known.subscriberName(subject)
    case STEP_JOB:
      return known.jobName(subject)
    default:
      return known.callName(subject)
  }
}
