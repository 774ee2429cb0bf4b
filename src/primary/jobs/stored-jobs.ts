// Jobs in the database.

import type { LogLevel } from '../../contracts/logger.ts'
import type { Missed, Schedule } from '../../contracts/scheduler.ts'
import { firstDueMs, nextDueMs } from '../../core/schedule/cron.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { CLOCK_MS } from '../../runtime/event-log/tables.ts'

/** When a job runs next, and what is known of that run. */
interface Placement {
  /** Milliseconds since the epoch; null: it is over. */
  dueMs: number | null
  /** How often that run has begun before. */
  attempts: number
}

/** A run that is about to begin. Times are milliseconds since the epoch. */
interface Claim {
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

/** Where the clock keeps the times of jobs while this process is the leader. */
export type JobStore = Pick<StoredJobs, 'fence' | 'place' | 'claim' | 'waits' | 'done'>

/** A stored job that nobody registers is removed at the first election after this time, milliseconds: one that fails to boot comes back. */
const KEPT_MS = 24 * 60 * 60 * 1000

/** A row of `heddle_job`, without what is only for people. */
interface JobRow {
  name: string
  spec: string
  due_ms: number | null
  last_due_ms: number | null
  attempts: number
  as_of_ms: number
}

interface StoredJobsOptions {
  database: LogDatabase
  fence: number
  /** When this process looked at the database for the first time, by the database's clock. */
  bootMs: number
  /** When this process began to run jobs, by its own clock: what was due before was due while it was not there. */
  startedMs: number
  /** A date is given up when it was begun this often and its process died in it. */
  maxAttempts: number
  log: (level: LogLevel, message: string) => void
}

/**
 * The jobs in the database, for the one process that fires them: the leader. Each row has the fence of the leader that has placed it, and every
 * statement of a leader names its own: one that has stood still while another was elected changes no row, and so begins no run.
 */
export class StoredJobs {
  /** Grows with each process that becomes the leader. */
  readonly fence: number
  readonly #options: StoredJobsOptions
  readonly #now: string
  /** The jobs that were stored when this process was elected. */
  #known = new Set<string>()

  constructor(options: StoredJobsOptions) {
    this.#options = options
    this.fence = options.fence
    this.#now = CLOCK_MS[options.database.dialect]
  }

  /** Reads which jobs are stored. It comes first. @throws DbError */
  async open(): Promise<void> {
    const rows = await this.#options.database.query<{ name: string }>('SELECT name FROM heddle_job')
    this.#known = new Set(rows.map(({ name }) => name))
  }

  /** Stores a job, or takes up what is stored of it. Null when another process is the leader now. @throws DbError */
  async place(key: string, job: StorableJob): Promise<Placement | null> {
    const { database, bootMs } = this.#options
    const spec = JSON.stringify(job.schedule)
    const { rows } = await database.execute<JobRow>(
      `INSERT INTO heddle_job (name, spec, due_ms, fence, as_of_ms) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (name) DO UPDATE SET fence = $4, gone_ms = NULL WHERE heddle_job.fence <= $4
       RETURNING name, spec, due_ms, last_due_ms, attempts, as_of_ms`,
      [key, spec, firstDueMs(job.schedule, Date.now()), this.fence, bootMs],
    )
    const row = rows[0]
    if (row === undefined) return null
    const stored = { dueMs: row.due_ms === null ? null : Number(row.due_ms), attempts: Number(row.attempts) }
    if (!this.#known.has(key)) {
      this.#known.add(key)
      return stored
    }
    // Perhaps each process computes its date. One that has booted since sets it anew; to the others it is the job that is stored.
    const isOther = row.spec !== spec && (job.schedule.kind !== 'at' || Number(row.as_of_ms) < bootMs)
    const placement = isOther
      ? { dueMs: firstDueMs(job.schedule, Date.now()), attempts: 0 }
      : this.#placementOf(job, row, stored)
    if (placement === stored) return stored
    const { rowCount } = await database.execute(
      'UPDATE heddle_job SET spec = $3, due_ms = $4, attempts = $5, as_of_ms = $6 WHERE name = $1 AND fence = $2',
      [
        key,
        this.fence,
        isOther ? spec : row.spec,
        placement.dueMs,
        placement.attempts,
        isOther ? bootMs : Number(row.as_of_ms),
      ],
    )
    return rowCount === 0 ? null : placement
  }

  /** @returns `stored` itself when nothing changes */
  #placementOf(job: StorableJob, row: JobRow, stored: Placement): Placement {
    if (job.schedule.kind === 'at') return this.#dateOf(job, row, stored)
    if (stored.dueMs === null) return { dueMs: firstDueMs(job.schedule, Date.now()), attempts: 0 }
    if (stored.dueMs >= this.#options.startedMs || job.missed === 'once') return stored
    return { dueMs: nextDueMs(job.schedule, stored.dueMs, Date.now()), attempts: 0 }
  }

  #dateOf(job: StorableJob, row: JobRow, stored: Placement): Placement {
    const { startedMs, maxAttempts, log } = this.#options
    const { dueMs, attempts } = stored
    if (dueMs === null) return stored
    const what = `Job ${job.name} of ${job.plugin}`
    if (attempts >= maxAttempts) {
      log('ERROR', `${what} is given up: its process ended in it, at attempt ${attempts}`)
      return { dueMs: null, attempts }
    }
    if (attempts > 0) {
      log('WARNING', `${what}: its process ended in it; it is tried again`)
      return stored
    }
    const hasWaited = row.last_due_ms !== null && Number(row.last_due_ms) === dueMs
    if (dueMs >= startedMs || hasWaited || job.missed === 'once') return stored
    log('WARNING', `${what} was due at ${toIso(dueMs)}, while no process ran, and is left out: missed is 'skip'`)
    return { dueMs: null, attempts }
  }

  /** Writes that a run begins. False when another process is the leader now: the run must not begin. @throws DbError */
  async claim(key: string, { schedule, missed }: StorableJob, run: Claim): Promise<boolean> {
    const { database } = this.#options
    // One process has the file, and the times of the schedule tell the next one all that it asks.
    if (database.dialect === 'sqlite' && schedule.kind !== 'at' && missed === 'skip') return true
    const { rowCount } = await database.execute(
      `UPDATE heddle_job SET due_ms = $3, last_due_ms = $4, attempts = $5, as_of_ms = ${this.#now}
       WHERE name = $1 AND fence = $2`,
      [key, this.fence, schedule.kind === 'at' ? run.dueMs : run.nextMs, run.dueMs, attemptsOf(schedule, run)],
    )
    return rowCount > 0
  }

  /** Writes that a date is due and waits: it has not been missed. @throws DbError */
  async waits(key: string): Promise<void> {
    await this.#options.database.execute('UPDATE heddle_job SET last_due_ms = due_ms WHERE name = $1 AND fence = $2', [
      key,
      this.fence,
    ])
  }

  /** A date has had its run, or is given up. @throws DbError */
  async done(key: string): Promise<void> {
    await this.#options.database.execute(
      `UPDATE heddle_job SET due_ms = NULL, as_of_ms = ${this.#now} WHERE name = $1 AND fence = $2`,
      [key, this.fence],
    )
  }

  /** Marks stored jobs that nobody registers, and removes those that were marked a day ago. @throws DbError */
  async sweep(isRegistered: (key: string) => boolean): Promise<void> {
    const { database } = this.#options
    for (const key of this.#known) {
      if (isRegistered(key)) continue
      await database.execute(
        `UPDATE heddle_job SET gone_ms = ${this.#now} WHERE name = $1 AND fence <= $2 AND gone_ms IS NULL`,
        [key, this.fence],
      )
      const { rowCount } = await database.execute(
        `DELETE FROM heddle_job WHERE name = $1 AND fence <= $2 AND gone_ms < ${this.#now} - ${KEPT_MS}`,
        [key, this.fence],
      )
      if (rowCount > 0) this.#known.delete(key)
    }
  }
}

/** Only a date has a run that is begun and not done. */
const attemptsOf = (schedule: Schedule, { attempt }: Claim): number => (schedule.kind === 'at' ? attempt : 0)

/** What JavaScript cannot write is a number. */
function toIso(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString()
}
