// Which of several processes fires the jobs.
import { randomUUID } from 'node:crypto'
import type { LogLevel } from '../../contracts/logger.ts'
import { messageOf } from '../../core/errors/description.ts'
import { RepeatingTask } from '../../core/schedule/repeating-task.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { CLOCK_MS } from '../../runtime/event-log/tables.ts'
import { identityIn, isKnownDead, ownIdentity } from '../streams/process-identity.ts'

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
  database: () => LogDatabase | null
  /**
   * This process is the leader.
   * @param fence greater than that of any leader before
   * @param bootMs when this process looked at the database for the first time, by the database's clock
   */
  onElected: (database: LogDatabase, fence: number, bootMs: number) => Promise<void>
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

  constructor(options: LeaderElectionOptions) {
    this.#options = options
  }

  start(): void {
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
  async #stand(database: LogDatabase): Promise<void> {
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

  async #renew(database: LogDatabase): Promise<void> {
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
  async #check(database: LogDatabase): Promise<void> {
    const lease = await database.queryOne<{ holder: string }>("SELECT holder FROM heddle_lease WHERE name = 'beat'")
    if (lease === null || lease.holder === this.#holder) return
    this.#options.log('WARNING', 'Another process has the same file open and runs the jobs now')
    this.doubt()
  }
}
