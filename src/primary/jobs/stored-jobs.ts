// Jobs in the database, and which of several processes fires them.

import { randomUUID } from 'node:crypto'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Missed, Schedule } from '../../contracts/scheduler.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { firstDueMs, nextDueMs } from '../../core/schedule/cron.ts'
import { RepeatingTask } from '../../core/schedule/repeating-task.ts'
import { CLOCK_MS, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { identityIn, isKnownDead, ownIdentity } from '../event-store/process-identity.ts'

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
  database: StoreDatabase
  fence: number
  /** When this process looked at the database for the first time, by the database's clock. */
  bootMs: number
  /** When this process began to run jobs, by its own clock: what was due before was due while it was not there. */
  startedMs: number
  /** A date is given up when it was begun this often and its process died in it. */
  maxAttempts: number
  log: (level: LogLevel, message: string) => void
}

/** A run that is due so much later than its schedule says was stored before the clock was set back, milliseconds. */
const SET_BACK_MS = 1000

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
    // The clock was set back while no process ran.
    const firstMs = firstDueMs(job.schedule, Date.now())
    if (firstMs !== null && stored.dueMs > firstMs + SET_BACK_MS) return { dueMs: firstMs, attempts: 0 }
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
      if (rowCount === 0) continue
      await database.execute('DELETE FROM heddle_job_run WHERE job = $1', [key])
      this.#known.delete(key)
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

/** How long the leader counts as living after its last renewal, by the database's clock, milliseconds. */
export const LEASE_MS = 10_000
/** A lease that is the same for so long, by this process's steady clock, has lapsed: the database's clock was set back, or somebody else has written it. */
const STILL_MS = 2 * LEASE_MS
/** How often the leader renews, milliseconds. */
const RENEW_MS = 3000
/** How often the others look whether there is a leader, milliseconds. */
const LOOK_MS = 1000

export interface LeaderElectionOptions {
  /** Null while it cannot be used. */
  database: () => StoreDatabase | null
  /**
   * This process is the leader.
   * @param fence greater than that of any leader before
   * @param bootMs when this process looked at the database for the first time, by the database's clock
   */
  onElected: (database: StoreDatabase, fence: number, bootMs: number) => Promise<void>
  /** It is not any more. */
  onLost: () => void
  log: (level: LogLevel, message: string) => void
}

interface LeaseRow {
  holder: string | null
  identity: string | null
  expires_ms: number | null
  now_ms: number
}

/**
 * Elects the one process, of all that share a database, that fires jobs: by a lease in `heddle_lease`, by the database's clock.
 * The lease alone does not keep a process that stands still from firing when it wakes: the fence does, which each claim of a run names.
 * A file belongs to one process: there the last that comes has the lease until it ends, and nothing is renewed.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions
  readonly #task = new RepeatingTask(() => this.#look())
  readonly #holder = randomUUID()
  readonly #identity = JSON.stringify(ownIdentity())
  /** 0: another process has the lease. */
  #fence = 0
  #bootMs = 0
  /** It has been the leader: on a file it leaves the lease to the one that came after it, as long as that one lives. */
  #hasHeld = false
  #renewedMs = 0
  /** The lease of another one on a server, and since when it is as it is. */
  #seen = { lease: '', sinceMs: 0 }
  #fault: string | null = null
  /** False from the start of the election until its first look has ended. */
  #isKnown = true

  constructor(options: LeaderElectionOptions) {
    this.#options = options
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  start(): void {
    this.#isKnown = false
    this.#task.start(0)
  }

  /** A claim was refused: perhaps another process is the leader. Looks again. */
  doubt(): void {
    if (this.#fence === 0) return
    this.#fence = 0
    this.#options.onLost()
    this.#task.runWithin(0)
  }

  /** Gives the lease back, so that another process can take it at once. */
  async stop(): Promise<void> {
    await this.#task.stop()
    const database = this.#options.database()
    if (this.#fence === 0 || database === null) return
    const fence = this.#fence
    this.#fence = 0
    await database
      .execute("UPDATE heddle_lease SET expires_ms = 0 WHERE name = 'beat' AND holder = $1 AND fence = $2", [
        this.#holder,
        fence,
      ])
      // It lapses by itself.
      .catch(() => {})
  }

  async #look(): Promise<number> {
    const database = this.#options.database()
    if (database === null) return LOOK_MS
    try {
      if (this.#fence === 0) await this.#stand(database)
      else if (database.dialect === 'sqlite') await this.#check(database)
      else if (steadyMs() - this.#renewedMs >= RENEW_MS) await this.#renew(database)
      if (this.#fault !== null) this.#options.log('INFO', 'The database knows again which process runs the jobs')
      this.#fault = null
      this.#isKnown = true
    } catch (error) {
      const fault = messageOf(error)
      if (fault !== this.#fault) {
        this.#options.log('WARNING', `Which process runs the jobs is not known, it is asked again: ${fault}`)
      }
      this.#fault = fault
    }
    return LOOK_MS
  }

  /** Takes the lease if nobody has it. */
  async #stand(database: StoreDatabase): Promise<void> {
    const now = CLOCK_MS[database.dialect]
    const lease = await database.queryOne<LeaseRow>(
      `SELECT holder, identity, expires_ms, now_ms FROM (SELECT ${now} AS now_ms) AS clock
       LEFT JOIN heddle_lease ON name = 'beat'`,
    )
    const { holder, identity, expires_ms, now_ms } = lease!
    if (this.#bootMs === 0) this.#bootMs = Number(now_ms)
    if (holder !== null && holder !== this.#holder) {
      const hasLapsed = Number(expires_ms) <= Number(now_ms) || this.#standsStill(`${holder} ${expires_ms}`)
      const isBusy = database.dialect === 'sqlite' ? this.#hasHeld && Number(expires_ms) > 0 : !hasLapsed
      if (isBusy && !isKnownDead(identityIn(identity!))) return
    }
    // Where the holder is still who it was: of several that try this one succeeds.
    const { rows } = await database.execute<{ fence: number }>(
      `INSERT INTO heddle_lease (name, holder, identity, fence, expires_ms) VALUES ('beat', $1, $2, 1, ${now} + ${LEASE_MS})
       ON CONFLICT (name) DO UPDATE SET holder = $1, identity = $2, fence = heddle_lease.fence + 1, expires_ms = ${now} + ${LEASE_MS}
       WHERE heddle_lease.holder = $3 AND heddle_lease.expires_ms <= $4 RETURNING fence`,
      [this.#holder, this.#identity, holder ?? '', Number(expires_ms ?? 0)],
    )
    if (rows.length === 0) return
    const fence = Number(rows[0]!.fence)
    this.#renewedMs = steadyMs()
    this.#hasHeld = true
    this.#fence = fence
    try {
      await this.#options.onElected(database, fence, this.#bootMs)
    } catch (error) {
      // The lease is its own: it is taken again.
      this.#fence = 0
      throw error
    }
  }

  #standsStill(lease: string): boolean {
    if (this.#seen.lease !== lease) this.#seen = { lease, sinceMs: steadyMs() }
    return steadyMs() - this.#seen.sinceMs > STILL_MS
  }

  async #renew(database: StoreDatabase): Promise<void> {
    this.#renewedMs = steadyMs()
    const { rowCount } = await database.execute(
      `UPDATE heddle_lease SET expires_ms = ${CLOCK_MS[database.dialect]} + ${LEASE_MS}
       WHERE name = 'beat' AND holder = $1 AND fence = $2`,
      [this.#holder, this.#fence],
    )
    if (rowCount > 0) return
    this.#options.log('WARNING', 'Another process runs the jobs now: this one stood still, or was cut off')
    this.doubt()
  }

  /** On a file: does nobody else have the lease? */
  async #check(database: StoreDatabase): Promise<void> {
    const lease = await database.queryOne<{ holder: string }>("SELECT holder FROM heddle_lease WHERE name = 'beat'")
    if (lease === null || lease.holder === this.#holder) return
    this.#options.log('WARNING', 'Another process has the same file open and runs the jobs now')
    this.doubt()
  }
}
