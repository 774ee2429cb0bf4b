import type { Missed, Schedule } from '../../contracts/scheduler.ts'

/** When a job runs next, and what is known of that run. */
export interface Placement {
  /** Milliseconds since the epoch; null: it is over. */
  dueMs: number | null
  /** How often that run has begun before. */
  attempts: number
}

/** A run that is about to begin. Times are milliseconds since the epoch. */
export interface Claim {
  dueMs: number
  /** Null: none. */
  nextMs: number | null
  attempt: number
}

/** A job as it is stored. */
export interface StorableJob {
  plugin: string
  name: string
  schedule: Schedule
  missed: Missed
}

/** Where the clock keeps the times of jobs while this process is the one that fires them. */
export interface JobStore {
  /** Grows with each process that becomes the one. */
  readonly fence: number
  /** Stores a job, or takes up what is stored of it. Null when another process is the one now. @throws DbError */
  place(key: string, job: StorableJob): Promise<Placement | null>
  /** Writes that a run begins. False when another process is the one now: the run must not begin. @throws DbError */
  claim(key: string, job: StorableJob, run: Claim): Promise<boolean>
  /** Writes that a date is due and waits: it has not been missed. @throws DbError */
  waits(key: string): Promise<void>
  /** A date has had its run, or is given up. @throws DbError */
  done(key: string): Promise<void>
}
