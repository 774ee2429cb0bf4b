import type { Awaitable } from './awaitable.ts'
import type { Owner } from './owner.ts'

export type JobHandler = () => unknown | Promise<unknown>

/** When a job runs. */
export type Schedule =
  | { kind: 'cron'; expression: string }
  | { kind: 'every'; everyMs: number }
  | { kind: 'at'; atMs: number }

export interface JobDefinition {
  owner: Owner
  /** Unique within the plugin. */
  name: string
  schedule: Schedule
  handler: JobHandler
}

/** A job as `list()` shows it. */
export interface JobInfo {
  plugin: string
  name: string
  schedule: Schedule
  /** False in a process without `SCHEDULER_ENABLED`: the job is registered there, but another process runs it. */
  fires_here: boolean
  /** ISO 8601 UTC; null when the job will not run again, or not in this process. A date in the past: the job is due and waits until it can run. */
  next_run: string | null
  /** How many runs have begun. */
  runs: number
  /** How often the job was due but did not run, because its last run had not ended, its plugin was set aside, or no lane that hosts it was up. */
  skipped: number
  running: boolean
}

/**
 * Runs jobs at given times. Every thread registers them; each runs once per process in which `SCHEDULER_ENABLED` is true. A job that is
 * still running is not started again. `cron` and `every` run at most once per due time, `at` at least once.
 */
export interface Scheduler {
  /** @param expression five or six cron fields, in UTC */
  cron(name: string, expression: string, handler: JobHandler): void
  /** @param everyMs at least 10 */
  every(name: string, everyMs: number, handler: JobHandler): void
  /**
   * Runs once; immediately when the date is in the past. It is run again, at most three times, when its lane dies before the handler has
   * returned or thrown; and it waits while its plugin is set aside. So the handler may be called more than once.
   */
  at(name: string, date: Date, handler: JobHandler): void
  list(): Awaitable<JobInfo[]>
}
