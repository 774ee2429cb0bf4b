// The tool `scheduler`: jobs and when they are due.
import type { Awaitable, Owner } from './common.ts'

/** Which run of a job it is. */
export interface JobTime {
  /** The time that the run is for, however late it begins. */
  due: Date
  /** 1, and one more for each time that the run of a date was cut off before. */
  attempt: number
  /**
   * Grows with each process that takes over the jobs, so that a store that remembers the highest one it has seen can refuse a process that
   * has stood still. 0 where jobs are not stored.
   */
  fence: number
}

/** What a handler learns of its run. */
export interface JobRun extends JobTime {
  /**
   * Aborted when the handler should end: the process stops and does not wait, or another process runs the jobs now. `signal.reason` is DELIVERY_LOST,
   * with `details: { reason }`, a `LostReason`. A job at a date that throws after that is not done: it is run again.
   */
  readonly signal: AbortSignal
}

export type JobHandler = (run: JobRun) => unknown | Promise<unknown>

/** What becomes of a time that passed while no process ran: it is left out, or one run makes up for all of them. */
export type Missed = 'skip' | 'once'

export interface JobOptions {
  /** Default: `skip`. It takes a database: without one nobody knows what was missed. */
  missed?: Missed
}

export interface CronOptions extends JobOptions {
  /**
   * Whose clocks the expression means: a name of the IANA data base, such as `Europe/Vienna`. Default UTC. Where these clocks are set forward, a
   * time that is left out is due at the end of the gap; where they are set back, a time that comes twice is due once, at the first, unless the
   * hours of the expression begin with `*`.
   */
  timeZone?: string
}

/** When a job runs. */
export type Schedule =
  | { kind: 'cron'; expression: string; timeZone?: string }
  | { kind: 'every'; everyMs: number }
  | { kind: 'at'; atMs: number }

export interface JobDefinition {
  owner: Owner
  /** Unique within the plugin. */
  name: string
  schedule: Schedule
  missed: Missed
  handler: JobHandler
}

/** A job as `list()` shows it. */
export interface JobInfo {
  plugin: string
  name: string
  schedule: Schedule
  /** False where another process runs it: without `SCHEDULER_ENABLED`, and while another one is elected. */
  fires_here: boolean
  /** ISO 8601 UTC; null when the job will not run again, or not in this process. A date in the past: the job is due and waits until it can run. */
  next_run: string | null
  /** How many runs have begun in this process. */
  runs: number
  /** How many of them have failed: the handler threw, or its lane died of it. */
  failures: number
  /** How often the job was due but did not run, because its last run had not ended, its plugin was set aside, or no lane that hosts it was up. */
  skipped: number
  running: boolean
}

/**
 * Runs jobs at given times. Every thread registers them. With a database they are stored, and of all processes on it in which
 * `SCHEDULER_ENABLED` is true one runs them; without one each such process does. A job that is still running is not started again.
 * `cron` and `every` run at most once per due time, `at` at least once.
 */
export interface Scheduler {
  /** @param expression five or six cron fields, in UTC unless `timeZone` says otherwise */
  cron(name: string, expression: string, handler: JobHandler, options?: CronOptions): void
  /** @param everyMs at least 10 */
  every(name: string, everyMs: number, handler: JobHandler, options?: JobOptions): void
  /**
   * Runs once; immediately when the date is in the past and new. With a database it does not run again in later processes, unless they
   * give it another date. It is run again, at most three times, when its lane or its process dies before the handler has returned or thrown;
   * and it waits while its plugin is set aside. So the handler may be called more than once.
   */
  at(name: string, date: Date, handler: JobHandler, options?: JobOptions): void
  list(): Awaitable<JobInfo[]>
}
