import type { LogLevel } from '../../contracts/logger.ts'
import type { JobInfo, Schedule } from '../../contracts/scheduler.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { nextCronRun } from '../../core/schedule/cron.ts'

// Longer waits are taken in steps: Node's timers end at 2^31 ms, and a change of the wall clock is noticed within a minute.
const MAX_SLEEP_MS = 60_000
/** A job at a date that is due and cannot run is tried again this often, milliseconds. */
const TRY_AGAIN_MS = 250

/** How a run ended that did not throw: `cut-off` when its thread was ended, `fatal` when its thread died and the job may be the cause. */
export type RunEnd = 'done' | 'cut-off' | 'fatal'

export interface JobClockOptions {
  /** False on a replica that does not run jobs: they are listed and never fire. */
  enabled: boolean
  /** A job at a date is given up when this many threads have died in it. */
  maxDeaths: number
  /** Why the job cannot run now; null when it can. */
  obstacleTo: (key: string) => string | null
  /** Runs the job in a thread that hosts its plugin. Rejects with the error of its handler. */
  run: (key: string) => Promise<RunEnd>
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

interface Job {
  plugin: string
  name: string
  schedule: Schedule
  /** On the job's own clock (see `nowFor`); null: it will not run again. */
  dueMs: number | null
  timer: NodeJS.Timeout | undefined
  running: Promise<void> | undefined
  runs: number
  skipped: number
  /** Threads that died while they ran it. */
  deaths: number
  /** Why it did not run when it was last due; for a job at a date: what it waits for. */
  obstacle: string | null
  /** False when the job was removed while a run was still going. If the job comes back, that run counts as its own. */
  isWanted: boolean
}

/**
 * Fires the jobs of the process: one clock, in the primary.
 * A job never overlaps itself: a run that is due while the last one is still going counts as skipped.
 * Runs that were missed (a blocked thread, a machine asleep) are made up for by one run, not by all.
 * A run of a cron expression or an interval that cannot start, or is cut off, is skipped: the next one comes. A job at a date has no
 * next run: it is due until one run has ended, so its handler may be called more than once.
 */
export class JobClock {
  #options: JobClockOptions
  #jobs = new Map<string, Job>()
  #status: 'idle' | 'started' | 'stopped' = 'idle'

  constructor(options: JobClockOptions) {
    this.#options = options
  }

  /**
   * Adds a job. Every lane that hosts the plugin adds it: the same key is the same job.
   * When a key comes again with another cron expression or interval (new code in a replaced lane), that one counts. A date stays, so
   * that a job at a date runs once.
   */
  add(key: string, plugin: string, name: string, schedule: Schedule): void {
    const known = this.#jobs.get(key)
    if (known) {
      const isKept = known.isWanted || schedule.kind === 'at'
      known.isWanted = true
      if (isKept && isSame(known.schedule, schedule)) return
      clearTimeout(known.timer)
      known.schedule = schedule
      known.obstacle = null
    }
    const job = known ?? {
      plugin,
      name,
      schedule,
      dueMs: null,
      timer: undefined,
      running: undefined,
      runs: 0,
      skipped: 0,
      deaths: 0,
      obstacle: null,
      isWanted: true,
    }
    this.#jobs.set(key, job)
    if (this.#status === 'started') this.#begin(key, job)
  }

  /** Removes the jobs that are not wanted any more. A run that is under way goes on. */
  keep(isWanted: (key: string) => boolean): void {
    for (const [key, job] of this.#jobs) {
      if (isWanted(key)) continue
      clearTimeout(job.timer)
      job.dueMs = null
      job.isWanted = false
      if (job.running === undefined) this.#jobs.delete(key)
    }
  }

  /** Starts the clock. A job that was due before runs once, now. */
  start(): void {
    if (this.#status !== 'idle' || !this.#options.enabled) return
    this.#status = 'started'
    for (const [key, job] of this.#jobs) this.#begin(key, job)
  }

  /** No run starts any more. Resolves when the runs under way have ended: wait for it with a deadline. */
  async stop(): Promise<void> {
    this.#status = 'stopped'
    for (const job of this.#jobs.values()) {
      clearTimeout(job.timer)
      if (job.schedule.kind === 'at' && job.obstacle !== null && job.dueMs !== null) this.#sayUndone(job)
      job.dueMs = null
    }
    await Promise.all([...this.#jobs.values()].map((job) => job.running))
  }

  list(): JobInfo[] {
    const wanted = [...this.#jobs.values()].filter(({ isWanted }) => isWanted)
    return wanted.map(({ plugin, name, schedule, dueMs, running, runs, skipped }) => ({
      plugin,
      name,
      schedule,
      fires_here: this.#options.enabled,
      next_run: dueMs === null ? null : toIso(Date.now() + dueMs - nowFor(schedule)),
      runs,
      skipped,
      running: running !== undefined,
    }))
  }

  #begin(key: string, job: Job): void {
    const { schedule } = job
    job.dueMs = schedule.kind === 'at' ? schedule.atMs : nextDueMs(schedule, nowFor(schedule))
    this.#sleep(key, job)
  }

  #sleep(key: string, job: Job): void {
    if (job.dueMs === null) return
    const isLate = job.schedule.kind === 'at' && job.obstacle !== null
    const waitMs = isLate ? TRY_AGAIN_MS : Math.max(0, job.dueMs - nowFor(job.schedule))
    job.timer = setTimeout(() => this.#wake(key, job), Math.min(Math.ceil(waitMs), MAX_SLEEP_MS))
  }

  #wake(key: string, job: Job): void {
    if (this.#status !== 'started' || job.dueMs === null) return
    // A timer may come a millisecond early: a run before its time would be followed by a second one.
    if (nowFor(job.schedule) >= job.dueMs) this.#due(key, job, job.dueMs)
    this.#sleep(key, job)
  }

  #due(key: string, job: Job, dueMs: number): void {
    const obstacle = job.running ? STILL_GOING : this.#options.obstacleTo(key)
    const isDate = job.schedule.kind === 'at'
    if (obstacle === null || !isDate) job.dueMs = nextDueMs(job.schedule, dueMs)
    if (obstacle === null) {
      job.obstacle = null
      return this.#fire(key, job)
    }
    if (!isDate) job.skipped++
    // Not each time that it is due: that may be a hundred times a second.
    if (job.obstacle === null && obstacle !== STILL_GOING) {
      this.#options.log('WARNING', `${nameOf(job)} is due and ${isDate ? 'waits' : 'is skipped'}: ${obstacle}`)
    }
    if (isDate || obstacle !== STILL_GOING) job.obstacle = obstacle
  }

  #fire(key: string, job: Job): void {
    job.runs++
    job.running = this.#run(key, job).then((end) => {
      job.running = undefined
      if (!job.isWanted) this.#jobs.delete(key)
      else if (end !== 'done') this.#lost(key, job, end)
    })
  }

  async #run(key: string, job: Job): Promise<RunEnd> {
    try {
      return await this.#options.run(key)
    } catch (error) {
      this.#options.log('ERROR', `${nameOf(job)} failed: ${messageOf(error)}`, { stack: stackOf(error) })
      return 'done'
    }
  }

  /** The run was cut off: a job at a date is tried again, unless it kills threads. */
  #lost(key: string, job: Job, end: RunEnd): void {
    const { log, maxDeaths } = this.#options
    if (end === 'fatal') job.deaths++
    const what = `${nameOf(job)}: its lane ${end === 'fatal' ? 'died' : 'ended'} in it`
    if (job.schedule.kind !== 'at') return log('ERROR', `${what}; it runs again when it is due next`)
    // New code has given it another date.
    if (job.dueMs !== null) return
    if (job.deaths >= maxDeaths) return log('ERROR', `${nameOf(job)} is given up: ${maxDeaths} lanes died in it`)
    if (this.#status !== 'started') return this.#sayUndone(job)
    log('WARNING', `${what}; it is tried again`)
    job.dueMs = job.schedule.atMs
    job.obstacle = 'its lane ended'
    this.#sleep(key, job)
  }

  #sayUndone(job: Job): void {
    this.#options.log(
      'WARNING',
      `${nameOf(job)} was due and has not come to its end: this process does not run it any more`,
    )
  }
}

const STILL_GOING = 'its last run is still going'

const nameOf = ({ name, plugin }: Job): string => `Job ${name} of ${plugin}`

/** Intervals are measured on the monotonic clock, dates and cron expressions on the wall clock. */
function nowFor(schedule: Schedule): number {
  return schedule.kind === 'every' ? performance.now() : Date.now()
}

/** The next time of the schedule that lies in the future: nothing drifts, and missed runs do not pile up. */
function nextDueMs(schedule: Schedule, dueMs: number): number | null {
  const nowMs = nowFor(schedule)
  switch (schedule.kind) {
    case 'at':
      return null
    case 'cron':
      return nextCronRun(schedule.expression, Math.max(nowMs, dueMs))
    case 'every':
      return dueMs + schedule.everyMs * Math.max(1, Math.ceil((nowMs - dueMs) / schedule.everyMs))
  }
}

/** Two dates count as the same: each lane that boots may compute its own from the current time. */
function isSame(a: Schedule, b: Schedule): boolean {
  return (a.kind === 'at' && b.kind === 'at') || JSON.stringify(a) === JSON.stringify(b)
}

/** Null for a date that JavaScript cannot write. */
function toIso(ms: number): string | null {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
