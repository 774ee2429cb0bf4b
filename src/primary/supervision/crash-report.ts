import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { BOOTING_ENDING, type FlightRecord, readFlightFile } from '../../transport/memory/flight-file.ts'
import {
  type RawStep,
  STEP_CALL,
  STEP_EVENT,
  STEP_JOB,
  STEP_REQUEST,
  STEP_STREAM_EVENT,
} from '../../transport/memory/flight-recorder.ts'
import {
  FLIGHT_ENDING,
  type FlightNames,
  LAST_RESORT_FILE,
  type LastResort,
  NAMES_FILE,
  PRIMARY_FILE,
} from './flight-mirror.ts'
import { isProved } from './judge.ts'
import { framesOfStack, shownFrame } from './stack-probe.ts'

const REPORT_FILE = 'report.json'
/** Lines with which V8 and Node say why they end the process, as far as they are worth a message. */
const FATAL_LINE = /^(?:# Fatal (?!error in)|FATAL ERROR: |\w*Error: )/
/** The process has died of the end of a thread that came at most so long before, milliseconds: it waits for native calls first. */
const LAST_RESORT_MS = 10_000
/** The primary thread is no lane. */
export const PRIMARY_INDEX = -1

/** What the guardian writes when the process has died. */
interface RawReport {
  at: string
  /** Process id of the guardian that wrote it. */
  guardian: number
  /** Number of the process among several of one guardian; missing where it was alone. */
  process?: number
  signal: string | null
  code: number | null
  /** How long the primary thread had said nothing, when the guardian ended the process for that; else null. */
  stalled_ms: number | null
  lived_ms: number
  had_served: boolean
  /** The last lines. */
  stderr: string[]
}

/** A report as the next process completes it. */
export interface CrashReport extends RawReport {
  /** How it ended, in one line. */
  message: string
  guilty: BlackBox['guilty']
  /** The lane in which the guilty work was; -1 for the primary thread, null when nobody is guilty. */
  lane: number | null
  /** In all lanes and in the primary, the oldest first. */
  in_flight: WorkInFlight[]
  /** Plugins of which one has ended the process: the guilty one alone where that is as good as certain. */
  suspects: string[]
  /** Files of the plugins that lanes were about to boot; none where somebody else is guilty, as good as certain. */
  booting: string[]
  stack: string[]
}

/** Work that had begun and not ended, where it was. */
interface Begun {
  lane: number
  work: WorkInFlight
  isStream: boolean
  begunMs: number
  /** The loop of its thread stood still. */
  isStill: boolean
}

/**
 * The reports of a guardian in a folder, and of guardians that are gone, the oldest first: those that nobody has read are completed, and marked as read.
 * @param guardian process id
 * @param number of this process among several of the guardian; each reads the reports of those before it first, and the first one all that are left over
 */
export function readCrashReports(
  folder: string,
  guardian = process.ppid,
  number: number | null = null,
): { reports: CrashReport[]; unread: CrashReport[] } {
  const reports: CrashReport[] = []
  const unread: CrashReport[] = []
  for (const name of crashFolders(folder)) {
    const path = join(folder, name)
    const report = parsed<RawReport | CrashReport>(join(path, REPORT_FILE))
    if (report === null || (report.guardian !== guardian && isRunning(report.guardian))) continue
    const isRead = 'suspects' in report
    const reader = report.guardian === guardian ? (report.process ?? 0) : 0
    if (!isRead && number !== null && number !== reader) continue
    const complete = isRead ? report : completed(path, report)
    reports.push(complete)
    if (isRead) continue
    unread.push(complete)
    const unfinished = join(path, `${REPORT_FILE}.part`)
    writeFileSync(unfinished, `${JSON.stringify(complete, null, 2)}\n`, { mode: 0o600 })
    renameSync(unfinished, join(path, REPORT_FILE))
  }
  return { reports, unread }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function crashFolders(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith('crash-'))
      .sort()
  } catch {
    // There is none before the first report.
    return []
  }
}

function parsed<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    // It was removed meanwhile, or was never whole.
    return null
  }
}

function completed(path: string, report: RawReport): CrashReport {
  const names = parsed<FlightNames>(join(path, NAMES_FILE)) ?? { routes: {}, lanes: {}, files: {} }
  const begun = readdirSync(path)
    .filter((name) => name.endsWith(FLIGHT_ENDING))
    .flatMap((name) => begunIn(path, name, names, Date.parse(report.at)))
    .sort((a, b) => a.begunMs - b.begunMs)
  const last = parsed<LastResort>(join(path, LAST_RESORT_FILE))
  const stack = report.code === null ? [] : framesOfStack(report.stderr.join('\n'))
  const booting = readdirSync(path)
    // Where the primary stood still it was none of the lanes' plugins.
    .filter((name) => name.endsWith(report.stalled_ms === null ? BOOTING_ENDING : PRIMARY_FILE + BOOTING_ENDING))
    .map((name) => readFileSync(join(path, name), 'utf8'))
  const isLastResort = last !== null && Date.parse(report.at) - last.atMs < LAST_RESORT_MS
  if (isLastResort && report.signal !== null && report.stalled_ms === null) return ofLastResort(report, last, begun)
  const { begun: guiltyWork, guilty } = guiltyOf(report, begun, stack, names)
  // Somebody from outside may have killed it, and what was in flight has nothing to do with that.
  const isFromOutside = report.signal === 'SIGKILL' && report.stalled_ms === null
  const isCertain = guilty !== null && (guilty.evidence !== 'last' || guiltyWork?.isStill === true)
  const inFlight = begun.filter(({ isStream }) => !isStream).map(({ work }) => work.plugin)
  return {
    ...report,
    message: messageOf(report),
    guilty: guilty ?? bootGuilt(report, booting),
    lane: guilty === null ? null : (guiltyWork?.lane ?? PRIMARY_INDEX),
    in_flight: begun.map(({ work }) => work),
    suspects: isFromOutside ? [] : isCertain ? [guilty.plugin!] : [...new Set(inFlight)],
    booting: isCertain ? [] : [...new Set(booting)],
    stack: stack.map(shownFrame),
  }
}

/** Whoever has brought a lane to its end has ended the process, too, and not whose native call was under way. */
function ofLastResort(report: RawReport, last: LastResort, begun: readonly Begun[]): CrashReport {
  const { lane, guilty } = last
  const why = last.message === null ? '' : `, for ${last.message}`
  return {
    ...report,
    message: `${messageOf(report)}, when a lane was ended that did not leave${why}`,
    guilty,
    lane,
    in_flight: begun.map(({ work }) => work),
    suspects: isProved(last) && report.signal !== 'SIGKILL' ? [guilty!.plugin!] : [],
    booting: [],
    stack: [],
  }
}

/** Its name is not known before its file has been loaded. */
function bootGuilt({ signal }: RawReport, booting: readonly string[]): BlackBox['guilty'] {
  const [file, ...others] = new Set(booting)
  if (file === undefined || others.length > 0 || signal === null) return null
  return { plugin: null, handler: null, line: relative(process.cwd(), file), evidence: 'alone' }
}

function messageOf({ signal, code, stalled_ms, stderr }: RawReport): string {
  if (stalled_ms !== null) return `the primary thread stood still for ${stalled_ms} ms`
  const how = signal === null ? `the process ended with code ${code}` : `the process died of ${signal}`
  const why = stderr.findLast((line) => FATAL_LINE.test(line))
  return why === undefined ? how : `${how}: ${why.replace(/^# /, '')}`
}

function begunIn(path: string, name: string, names: FlightNames, diedMs: number): Begun[] {
  const record = readFlightFile(join(path, name))
  return record === null ? [] : record.flight.steps().flatMap((step) => begunOf(step, record, name, names, diedMs))
}

function begunOf(step: RawStep, { stillMs }: FlightRecord, name: string, names: FlightNames, diedMs: number): Begun[] {
  const { kind, subject, id, begunMs, endedMs } = step
  if (endedMs !== 0 || kind === STEP_CALL) return []
  const lane = names.lanes[name]
  const route = kind === STEP_REQUEST ? names.routes[subject] : undefined
  const what = route ?? (kind === STEP_JOB ? lane?.jobs[subject] : lane?.subscriptions[subject])
  if (what === undefined) return []
  const isEvent = kind === STEP_EVENT || kind === STEP_STREAM_EVENT
  const work: WorkInFlight = {
    kind: isEvent ? 'event' : kind === STEP_JOB ? 'job' : 'request',
    name: what.name,
    plugin: what.plugin,
    id: isEvent ? `evt_${id}` : id || null,
    for_ms: Math.max(0, diedMs - begunMs),
  }
  const isPrimary = name === PRIMARY_FILE
  return [
    {
      lane: isPrimary ? PRIMARY_INDEX : (lane?.index ?? 0),
      work,
      isStream: route?.isStream === true,
      begunMs,
      isStill: stillMs > 0,
    },
  ]
}

/**
 * Who has ended the process. The stack of an uncaught error is proof. Else it is a handler that was running: one whose loop stood still rather than
 * another's, and of several the one that was begun last. Only one that was alone in the process, in a loop that stood still, is as good as proved.
 */
function guiltyOf(
  report: RawReport,
  begun: readonly Begun[],
  stack: ReturnType<typeof framesOfStack>,
  { files }: FlightNames,
): { begun: Begun | null; guilty: BlackBox['guilty'] } {
  const pluginOf = new Map(Object.entries(files).map(([plugin, file]) => [file, plugin]))
  const frame = stack.find(({ file }) => pluginOf.has(file))
  if (frame !== undefined) {
    const line = shownFrame(frame).replace(/^.*\((.*)\)$/, '$1')
    return { begun: null, guilty: { plugin: pluginOf.get(frame.file)!, handler: null, line, evidence: 'stack' } }
  }
  if (report.signal === null) return { begun: null, guilty: null }
  const handlers = begun.filter(({ isStream }) => !isStream)
  const isOfPrimary = ({ lane }: Begun): boolean => lane === PRIMARY_INDEX
  const still = report.stalled_ms !== null ? handlers.filter(isOfPrimary) : handlers.filter(({ isStill }) => isStill)
  const found = still.length > 0 ? still : handlers
  const last = found.at(-1)
  if (last === undefined) return { begun: null, guilty: null }
  const isStill = still.length > 0
  const evidence = isStill && handlers.length === 1 ? 'alone' : 'last'
  return {
    begun: { ...last, isStill },
    guilty: { plugin: last.work.plugin, handler: last.work.name, line: null, evidence },
  }
}
