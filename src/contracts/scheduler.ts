// The tool `scheduler`: jobs and when they are due.
import type { Awaitable, Owner } from './common.ts'

/** Which run of a job it is. */
export interface JobTime {
  /** Id of the run: `job_…`. The history of requests has it under this id. */
  id: string
  /** Who asked for it by `runNow`; null for a run by its schedule. */
  askedBy: string | null
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
  /** With `list({ upcoming: true })`. Null where only the process that runs the jobs knows it, and cannot be asked. */
  upcoming?: UpcomingRuns | null
  /** With `list({ noted: true })`: the last 10 runs, newest first, whichever process ran them. Empty but on PostgreSQL. */
  noted?: NotedRun[]
}

/** A run as all processes on a PostgreSQL database see it. What it did is in the history of its process. */
export interface NotedRun {
  /** `job_…` */
  id: string
  /** ISO 8601 UTC. */
  began_at: string
  /** Null: it has not ended, or its process died before. */
  duration_ms: number | null
  /** `unfinished`: its process died, or another process was elected. */
  outcome: 'running' | 'done' | 'failed' | 'unfinished'
  error: string | null
  thread: 'primary' | number | null
  /** REPLICA_ID of the process. */
  replica: string
  /** Null: it ran by its schedule. */
  asked_by: string | null
}

/** The runs of a job in the next hour. ISO 8601 UTC. */
export interface UpcomingRuns {
  /** At most 20. */
  runs: string[]
  /** How many there are until `until`. */
  count: number
  /** There are more than `count`. */
  more: boolean
  until: string
}

export interface ListOptions {
  /** With the runs of the next hour. Default: false. */
  upcoming?: boolean
  /** With the last runs in all processes on the database. Default: false. */
  noted?: boolean
}

export interface RunNowOptions {
  /** The plugin that has registered the job. Default: the one that asks. */
  plugin?: string
  /** Who wants it, 1 to 200 characters: the history and the handler are told. Default: the name of the plugin that asks. */
  askedBy?: string
}

/** A run that has begun because somebody asked for it. */
export interface StartedRun {
  /** Its id in the history of requests: `job_…`. */
  id: string
  /** The process that runs it, by its REPLICA_ID. */
  replica: string
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
  /**
   * Runs a job now, once, in the process that runs the jobs. An interval and a cron expression keep their times; a date has had its run then.
   * @returns when the run has begun; it does not wait for its end
   * @throws JOB_UNKNOWN if no plugin has registered it, JOB_RUNNING if its last run is still going, JOB_NOT_STARTED with the reason if it cannot
   * run now
   */
  runNow(name: string, options?: RunNowOptions): Promise<StartedRun>
  list(options?: ListOptions): Awaitable<JobInfo[]>
}
