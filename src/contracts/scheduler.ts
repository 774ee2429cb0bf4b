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
  /** False in a process without `SCHEDULER_ENABLED`: the job is known there, and another process runs it. */
  fires_here: boolean
  /** ISO 8601 UTC, or null when it will not run again, or not here. A date in the past is due and waits until it can run. */
  next_run: string | null
  /** Runs that were begun. */
  runs: number
  /** Times it was due and left out: its last run was still going, its plugin was set aside, or no lane that hosts it was up. */
  skipped: number
  running: boolean
}

/**
 * Jobs by the clock. They register everywhere and fire once per process, where `SCHEDULER_ENABLED` is true; one that is still
 * running is not started again. `cron` and `every`: at most once per due time. `at`: at least once, see there.
 */
export interface Scheduler {
  /** @param expression five or six cron fields, in UTC */
  cron(name: string, expression: string, handler: JobHandler): void
  /** @param everyMs at least 10 */
  every(name: string, everyMs: number, handler: JobHandler): void
  /**
   * Runs once, at once when the date is past. Until its handler has come to its end (or thrown) it is tried again: when its lane dies in it, at most
   * three times, and when its plugin is back that was set aside. So the handler must bear to be called more than once.
   */
  at(name: string, date: Date, handler: JobHandler): void
  list(): Awaitable<JobInfo[]>
}
