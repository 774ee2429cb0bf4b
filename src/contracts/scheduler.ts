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
  /** ISO 8601 UTC, or null when it will not run again (or this process is not the beat). */
  next_run: string | null
  runs: number
  /** Times it was due while its last run was still going. */
  skipped: number
  running: boolean
}

/** Jobs by the clock. A job fires once per process, where `SCHEDULER_ENABLED` is true; one that is still running is not started again. */
export interface Scheduler {
  /** @param expression five or six cron fields, in UTC */
  cron(name: string, expression: string, handler: JobHandler): void
  /** @param everyMs at least 10 */
  every(name: string, everyMs: number, handler: JobHandler): void
  at(name: string, date: Date, handler: JobHandler): void
  list(): Awaitable<JobInfo[]>
}
