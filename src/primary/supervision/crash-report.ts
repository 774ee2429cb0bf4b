// The crash report that a guardian has written of a process, completed by what was in flight.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { framesOfStack, shownFrame } from '../../core/errors/places.ts'
import { BOOTING_ENDING, readFlightFile } from '../../transport/memory/flight-recorder.ts'
import {
  FLIGHT_ENDING,
  FORCED_FILE,
  type ForcedTermination,
  NAMES_FILE,
  PRIMARY_FILE,
} from '../flight/flight-mirror.ts'
import { namedWork, type WorkNames, workOfStep } from '../flight/work.ts'
import { causeOf } from './cause.ts'

const REPORT_FILE = 'report.json'
/** Lines with which V8 and Node say why they end the process, as far as they are worth a message. */
const FATAL_LINE = /^(?:# Fatal (?!error in)|FATAL ERROR: |\w*Error: )/
/** The process has died of the end of a thread that came at most so long before, milliseconds: it waits for native calls first. */
const FORCED_MS = 10_000
/** The primary thread is no lane. */
const PRIMARY_INDEX = -1

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
  const names = parsed<WorkNames>(join(path, NAMES_FILE)) ?? { routes: {}, lanes: {}, files: {} }
  const begun = readdirSync(path)
    .filter((name) => name.endsWith(FLIGHT_ENDING))
    .flatMap((name) => begunIn(path, name, names, Date.parse(report.at)))
    .sort((a, b) => a.begunMs - b.begunMs)
  const last = parsed<ForcedTermination>(join(path, FORCED_FILE))
  const stack = report.code === null ? [] : framesOfStack(report.stderr.join('\n'))
  const booting = readdirSync(path)
    // Where the primary stood still it was none of the lanes' plugins.
    .filter((name) => name.endsWith(report.stalled_ms === null ? BOOTING_ENDING : PRIMARY_FILE + BOOTING_ENDING))
    .map((name) => readFileSync(join(path, name), 'utf8'))
  const isForced = last !== null && Date.parse(report.at) - last.atMs < FORCED_MS
  if (isForced && report.signal !== null && report.stalled_ms === null) return ofForcedTermination(report, last, begun)
  // Somebody from outside may have killed it, and what was in flight has nothing to do with that.
  const isFromOutside = report.signal === 'SIGKILL' && report.stalled_ms === null
  // A process that ended by itself ended of what its stack tells, or of nothing that was in flight.
  const handlers = report.signal === null || isFromOutside ? [] : begun.filter(({ isStream }) => !isStream)
  const still = handlers.filter((each) => (report.stalled_ms === null ? each.isStill : each.lane === PRIMARY_INDEX))
  // One whose loop stood still rather than another's.
  const works = still.length > 0 ? still : handlers
  const guilty = causeOf({
    stack,
    origin: null,
    bootCulprit: handlers.length === 0 && !isFromOutside ? bootCulpritOf(report, booting) : null,
    works: works.map(({ work }) => work),
    isAloneProof: true,
    files: names.files,
    isOwnFile: (file) => Object.values(names.files).includes(file),
  })
  const plugin = guilty?.plugin ?? null
  return {
    ...report,
    message: messageOf(report),
    guilty,
    lane: plugin === null ? null : guilty!.evidence === 'alone' ? works[0]!.lane : PRIMARY_INDEX,
    in_flight: begun.map(({ work }) => work),
    suspects: plugin === null ? [...new Set(works.map(({ work }) => work.plugin))] : [plugin],
    booting: plugin !== null ? [] : [...new Set(booting)],
    stack: stack.map(shownFrame),
  }
}

/** The plugin that crashed the lane has ended the process as well, not the one whose native call was pending. */
function ofForcedTermination(report: RawReport, last: ForcedTermination, begun: readonly Begun[]): CrashReport {
  const { lane, guilty } = last
  const why = last.message === null ? '' : `, for ${last.message}`
  return {
    ...report,
    message: `${messageOf(report)}, when a lane was ended that did not leave${why}`,
    guilty,
    lane,
    in_flight: begun.map(({ work }) => work),
    suspects: guilty?.plugin != null && report.signal !== 'SIGKILL' ? [guilty.plugin] : [],
    booting: [],
    stack: [],
  }
}

/** Its name is not known before its file has been loaded. */
function bootCulpritOf({ signal }: RawReport, booting: readonly string[]): string | null {
  const [file, ...others] = new Set(booting)
  return file === undefined || others.length > 0 || signal === null ? null : file
}

function messageOf({ signal, code, stalled_ms, stderr }: RawReport): string {
  if (stalled_ms !== null) return `the primary thread stood still for ${stalled_ms} ms`
  const how = signal === null ? `the process ended with code ${code}` : `the process died of ${signal}`
  const why = stderr.findLast((line) => FATAL_LINE.test(line))
  return why === undefined ? how : `${how}: ${why.replace(/^# /, '')}`
}

function begunIn(path: string, name: string, names: WorkNames, diedMs: number): Begun[] {
  const flight = readFlightFile(join(path, name))
  if (flight === null) return []
  const laneNamed = names.lanes[name]
  const lane = name === PRIMARY_FILE ? PRIMARY_INDEX : (laneNamed?.index ?? 0)
  return flight.steps().flatMap((step) => {
    const named = step.endedMs === 0 ? namedWork(step, (number) => names.routes[number], laneNamed) : undefined
    if (named === undefined) return []
    const work = workOfStep(step, named, diedMs)
    const isStream = named.isStream === true
    return [{ lane, work, isStream, begunMs: step.begunMs, isStill: flight.isStill }]
  })
}
