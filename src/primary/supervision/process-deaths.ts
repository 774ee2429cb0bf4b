// What earlier processes died of, and what follows for this one.
import type { Awaitable } from '../../contracts/common.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { publishOwn } from '../events/event-driver.ts'
import { causeText } from '../flight/work.ts'
import type { Log } from '../logging/process-log.ts'
import { type CrashReport, readCrashReports } from './crash-report.ts'
import type { Isolation } from './isolation.ts'

/** The event that reports the death of the process before this one. */
export const PROCESS_DIED = 'runtime.process.died'
const IDENTITY = 'supervisor'
/** Deaths that are shown of each lane, and work in flight that the log, the event and the black box name. */
const DEATHS_SHOWN = 5
const IN_FLIGHT_SHOWN = 50
/** Older reports are for people alone, milliseconds. */
const REPORT_AGE_MS = 86_400_000
/** A plugin is disabled that is proved to have ended this many processes within the window. */
export const DISABLED_AFTER = 3
const WINDOW_MS = 600_000
/** For how long, since the last of them. Each further death takes twice as long, up to the longest. */
export const DISABLED_MS = 60_000
const DISABLED_MAX_MS = 3_600_000

/** The payload of `runtime.process.died`. */
export interface ProcessDied {
  /** Null when the process ended with a code. */
  signal: string | null
  code: number | null
  message: string
  guilty: BlackBox['guilty']
  /** The oldest 50. */
  in_flight: WorkInFlight[]
}

export interface DisabledPlugin {
  plugin: string
  deaths: number
  /** Milliseconds since the epoch. */
  untilMs: number
  message: string
}

/** What the processes before this one died of, by the guardian's reports, and what follows from that. */
export class ProcessDeaths {
  readonly #log: Log
  readonly #recent: readonly CrashReport[]
  readonly #unread: readonly CrashReport[]

  readonly #number: number | null

  /**
   * Reads the reports in the folder, and marks them as read.
   * @param number of this process among several of one guardian
   */
  constructor(folder: string, log: Log, number: number | null = null, nowMs = Date.now()) {
    this.#log = log
    this.#number = number
    let read: ReturnType<typeof readCrashReports> = { reports: [], unread: [] }
    try {
      read = readCrashReports(folder, process.ppid, number)
    } catch (error) {
      log('WARNING', `The crash reports cannot be read: ${messageOf(error)}`, IDENTITY)
    }
    this.#recent = read.reports.filter(({ at }) => nowMs - Date.parse(at) < REPORT_AGE_MS)
    this.#unread = read.unread
  }

  /** True if this process replaces one that died. */
  get hasDied(): boolean {
    return this.#unread.length > 0
  }

  /** For the lane's list of deaths, newest first. What was in no lane is shown with the first. */
  ofLane(index: number): BlackBox[] {
    return this.#recent
      .filter(({ lane, process = 0 }) => Math.max(0, lane ?? 0) === index && process === (this.#number ?? process))
      .slice(-DEATHS_SHOWN)
      .reverse()
      .map((report) => boxOf(report, index))
  }

  /** Plugins that are not booted any more, by file, with the reason. Whoever starts the guardian anew gives each another chance. */
  barred(guardian = process.ppid): Record<string, string> {
    const barred: Record<string, string> = {}
    const deaths = new Map<string, (readonly string[])[]>()
    for (const { booting, suspects, signal, message, stalled_ms, guardian: writer } of this.#recent) {
      if (writer !== guardian || signal === null) continue
      // Somebody from outside may have killed it, and what booted has nothing to do with that.
      if (signal === 'SIGKILL' && stalled_ms === null) continue
      const present = [...booting, ...suspects]
      for (const file of booting) {
        const there = [...(deaths.get(file) ?? []), present]
        deaths.set(file, there)
        if (isOnlyOne(there)) barred[file] = `It ended the process while it booted: ${message}`
      }
    }
    return barred
  }

  /**
   * At how many deaths a plugin was at work on an event.
   * @param sinceMs when a dead letter was made this event again: what it did before does not count
   */
  ofEvent(id: string, plugin: string, sinceMs: number): number {
    return this.#recent.filter(
      ({ at, in_flight }) =>
        Date.parse(at) >= sinceMs &&
        in_flight.some((work) => work.kind === 'event' && work.id === id && work.plugin === plugin),
    ).length
  }

  /** Says what is new: in the log, and as an event. */
  report(publish: (event: EventFrame) => Awaitable<unknown>): void {
    for (const { signal, code, message, guilty, in_flight, at, stderr, lived_ms } of this.#unread) {
      const died: ProcessDied = { signal, code, message, guilty, in_flight: in_flight.slice(0, IN_FLIGHT_SHOWN) }
      const text = `The process before this one is dead: ${message}${causeText(guilty, in_flight, in_flight.length)}`
      this.#log('ERROR', text, IDENTITY, { ...died, died_at: at, lived_ms, stderr: stderr.join('\n') })
      publishOwn(IDENTITY, PROCESS_DIED, { ...died }, publish, this.#log)
    }
  }

  /** Takes plugins out of service that end one process after the other. */
  disablePlugins(isolation: Isolation, nowMs = Date.now()): void {
    for (const { plugin, deaths, untilMs, message } of disabledBy(this.#recent, nowMs)) {
      const why = `the process died ${deaths} times while it worked; last: ${message}`
      isolation.disable(plugin, untilMs - nowMs, why)
    }
  }
}

/** True where nobody but one was there each time, who may have been the cause as well. */
function isOnlyOne([first = [], ...others]: readonly (readonly string[])[]): boolean {
  return new Set(first.filter((name) => others.every((there) => there.includes(name)))).size === 1
}

/**
 * Plugins that are proved to have ended several processes.
 * @param reports the oldest first
 */
export function disabledBy(
  reports: readonly Pick<CrashReport, 'at' | 'guilty' | 'suspects' | 'message'>[],
  nowMs: number,
): DisabledPlugin[] {
  const deaths = new Map<string, { atMs: number; message: string }[]>()
  for (const { at, guilty, suspects, message } of reports) {
    const plugin = guilty?.plugin
    // Also proved is who had a lane ended that did not leave; if somebody killed the process then, it is no suspect.
    if (plugin == null || !suspects.includes(plugin)) continue
    const atMs = Date.parse(at)
    const before = deaths.get(plugin) ?? []
    const last = before.at(-1)
    // Each death keeps the window of the next one open: a plugin that comes back every few minutes is one case.
    const isSameCase = last !== undefined && atMs - last.atMs < WINDOW_MS + pauseOf(before.length)
    deaths.set(plugin, [...(isSameCase ? before : []), { atMs, message }])
  }
  const found: DisabledPlugin[] = []
  for (const [plugin, cases] of deaths) {
    const { atMs, message } = cases.at(-1)!
    const untilMs = atMs + pauseOf(cases.length)
    if (untilMs > nowMs) found.push({ plugin, deaths: cases.length, untilMs, message })
  }
  return found
}

function pauseOf(deaths: number): number {
  return deaths < DISABLED_AFTER ? 0 : Math.min(DISABLED_MAX_MS, DISABLED_MS * 2 ** (deaths - DISABLED_AFTER))
}

function boxOf(report: CrashReport, lane: number): BlackBox {
  const { at, message, guilty, stack, stalled_ms, lived_ms, in_flight } = report
  return {
    at,
    lane,
    reason: 'process',
    message,
    guilty,
    stack,
    stood_still_ms: stalled_ms ?? 0,
    lived_ms,
    cpu_ms: null,
    cpu_ms_while_still: null,
    heap_bytes: null,
    external_bytes: null,
    in_flight: in_flight.slice(0, IN_FLIGHT_SHOWN),
    in_flight_count: in_flight.length,
    steps: [],
  }
}
