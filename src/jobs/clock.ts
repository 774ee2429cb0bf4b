import type { LogLevel } from '../contracts/logger.ts'
import type { JobInfo, Schedule } from '../contracts/scheduler.ts'
import { messageOf } from '../errors/wire.ts'
import { nextCronRun } from './cron.ts'

// Longer waits are taken in steps: Node's timers end at 2^31 ms, and a wall clock that was set is noticed within a minute.
const MAX_SLEEP_MS = 60_000

export interface JobClockOptions {
  /** False on a replica that is not the beat: jobs are listed and never fire. */
  enabled: boolean
  /** Runs the job wherever its plugin lives. */
  run: (key: string) => Promise<void>
  log: (level: LogLevel, message: string, fields?: Record<string, unknown>) => void
}

interface Job {
  plugin: string
  name: string
  schedule: Schedule
  /** On the job's own time line (see `nowFor`); null: it will not run again. */
  dueMs: number | null
  timer: NodeJS.Timeout | undefined
  running: Promise<void> | undefined
  runs: number
  skipped: number
}

/**
 * Fires the jobs of the process: one clock, in the primary.
 * A job never overlaps itself: a run that is due while the last one is still going counts as skipped.
 * Runs that were missed (a blocked thread, a machine asleep) are made up for by one run, not by all.
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
   * A key that comes again with another cron or interval (new code in a replaced lane) takes the new one; a date stays,
   * so that a job at a date runs once.
   */
  add(key: string, plugin: string, name: string, schedule: Schedule): void {
    const known = this.#jobs.get(key)
    if (known && (known.schedule.kind === 'at' || isSame(known.schedule, schedule))) return
    if (known) {
      clearTimeout(known.timer)
      known.schedule = schedule
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
    }
    this.#jobs.set(key, job)
    if (this.#status === 'started') this.#begin(key, job)
  }

  /** Takes away the jobs that are not wanted any more; a run that is under way goes on. */
  keep(isWanted: (key: string) => boolean): void {
    for (const [key, job] of this.#jobs) {
      if (isWanted(key)) continue
      clearTimeout(job.timer)
      job.dueMs = null
      this.#jobs.delete(key)
    }
  }

  /** Starts the clock; what was due before runs once, now. */
  start(): void {
    if (this.#status !== 'idle' || !this.#options.enabled) return
    this.#status = 'started'
    for (const [key, job] of this.#jobs) this.#begin(key, job)
  }

  /** No run starts any more. Resolves when those under way have settled: wait for it with a deadline. */
  async stop(): Promise<void> {
    this.#status = 'stopped'
    for (const job of this.#jobs.values()) {
      clearTimeout(job.timer)
      job.dueMs = null
    }
    await Promise.all([...this.#jobs.values()].map((job) => job.running))
  }

  list(): JobInfo[] {
    return [...this.#jobs.values()].map(({ plugin, name, schedule, dueMs, running, runs, skipped }) => ({
      plugin,
      name,
      schedule,
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
    const waitMs = Math.max(0, job.dueMs - nowFor(job.schedule))
    job.timer = setTimeout(() => this.#wake(key, job), Math.min(Math.ceil(waitMs), MAX_SLEEP_MS))
  }

  #wake(key: string, job: Job): void {
    if (this.#status !== 'started' || job.dueMs === null) return
    // Also after a timer that came a millisecond early: a run before its time would be followed by a second one.
    if (nowFor(job.schedule) >= job.dueMs) {
      job.dueMs = nextDueMs(job.schedule, job.dueMs)
      this.#fire(key, job)
    }
    this.#sleep(key, job)
  }

  #fire(key: string, job: Job): void {
    if (job.running) {
      job.skipped++
      return
    }
    job.runs++
    job.running = this.#run(key, job).finally(() => {
      job.running = undefined
    })
  }

  async #run(key: string, job: Job): Promise<void> {
    try {
      await this.#options.run(key)
    } catch (error) {
      const stack = error instanceof Error ? error.stack : undefined
      this.#options.log('ERROR', `Job ${job.name} of ${job.plugin} failed: ${messageOf(error)}`, { stack })
    }
  }
}

/** Intervals are measured on the monotonic clock, dates and cron expressions on the wall clock. */
function nowFor(schedule: Schedule): number {
  return schedule.kind === 'every' ? performance.now() : Date.now()
}

/** The next time on the job's grid that lies in the future, so that nothing drifts and nothing piles up. */
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

function isSame(a: Schedule, b: Schedule): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** Null for a date that JavaScript cannot write. */
function toIso(ms: number): string | null {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
