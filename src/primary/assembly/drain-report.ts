import type { LogLevel } from '../../contracts/logger.ts'
import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'

/** Work that is named in one line at most. */
const NAMED_MAX = 10

export interface DrainReportOptions {
  /** Requests, events and jobs that run. */
  works: () => WorkInFlight[]
  /** Events that no thread has yet. */
  queued: () => number
  fateOfEvents: string
  log: (level: LogLevel, message: string) => void
}

/** Says who keeps a process that drains, and what becomes of what does not end in time. */
export class DrainReport {
  readonly #options: DrainReportOptions
  readonly #timer: NodeJS.Timeout

  /**
   * @param afterMs it takes longer than that, so it is worth a line
   * @param deadlineMs until when it waits, by `steadyMs`
   */
  constructor(options: DrainReportOptions, afterMs: number, deadlineMs: number) {
    this.#options = options
    this.#timer = setTimeout(() => {
      const leftMs = deadlineMs - steadyMs()
      const names = this.#names()
      if (names !== null && leftMs > 0) options.log('INFO', `Draining waits for ${names}: ${seconds(leftMs)} at most`)
    }, afterMs)
  }

  /** Nothing is waited for any more. */
  end(): void {
    clearTimeout(this.#timer)
    const names = this.#names()
    if (names === null) return
    const kinds = new Set(this.#options.works().map(({ kind }) => kind))
    const fates = [
      ...(kinds.has('event') || this.#options.queued() > 0 ? [this.#options.fateOfEvents] : []),
      ...(kinds.has('request') ? ['requests are answered with 500'] : []),
      ...(kinds.has('job') ? ['jobs run again when they are due next, those of a date at the next start'] : []),
    ]
    this.#options.log('WARNING', `Draining waits no longer for ${names}: ${fates.join('; ')}`)
  }

  /** Null when there is nothing. */
  #names(): string | null {
    const works = this.#options.works().sort((a, b) => b.for_ms - a.for_ms)
    const names = works.slice(0, NAMED_MAX).map(({ kind, name, plugin, for_ms }) => {
      const what = kind === 'request' ? name : `${kind} ${name}`
      return `${what} (${plugin}, for ${seconds(for_ms)})`
    })
    if (works.length > NAMED_MAX) names.push(`${works.length - NAMED_MAX} more`)
    const queued = this.#options.queued()
    if (queued > 0) names.push(`${queued} events that wait for a thread`)
    return names.length === 0 ? null : names.join(', ')
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
