// Runs that a process asks of the one that runs the jobs, by a table of the database that they share.
import { fromWire, toWire, type WireError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { RepeatingTask } from '../../core/schedule/repeating-task.ts'
import { CLOCK_MS, type StoreDatabase } from '../../runtime/event-store/database.ts'
import { type Asked, notStarted } from './job-clock.ts'

/** How often the process that runs the jobs looks for asks, milliseconds. */
const LOOK_MS = 1000
/** How long a process waits for an answer, milliseconds: then it withdraws the ask. */
export const ANSWER_MS = 5000
/** The same once the other process has taken the ask. */
const TAKEN_MS = 10_000
/** How often it looks for the answer, milliseconds. */
const POLL_MS = 100
/** Asks of processes that have ended are removed after this time, milliseconds, and looked for as often. */
const STALE_MS = 60_000
/** Maximum asks taken in one look. */
const TAKE_MAX = 20

/** What the other process has answered. */
type Answer = { state: 'taken' } | { state: 'started'; replica: string } | { state: 'refused'; error: WireError }

interface AskRow {
  id: string
  job: string
  asked_by: string
}

/**
 * Asks the process that runs the jobs for a run.
 * @returns its REPLICA_ID
 * @throws what it answers, JOB_NOT_STARTED if no process has taken the ask in time, DbError
 */
export async function askForRun(
  database: StoreDatabase,
  key: string,
  { id, askedBy }: Asked,
  { answerMs = ANSWER_MS, takenMs = TAKEN_MS } = {},
): Promise<string> {
  await database.execute(
    `INSERT INTO heddle_job_ask (id, job, asked_by, at_ms) VALUES ($1, $2, $3, ${CLOCK_MS[database.dialect]})`,
    [id, key, askedBy],
  )
  const askedMs = steadyMs()
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const row = await database.queryOne<{ answer: string | null }>('SELECT answer FROM heddle_job_ask WHERE id = $1', [
      id,
    ])
    const answer = row?.answer == null ? null : (JSON.parse(row.answer) as Answer)
    if (answer !== null && answer.state !== 'taken') {
      await database.execute('DELETE FROM heddle_job_ask WHERE id = $1', [id])
      if (answer.state === 'started') return answer.replica
      throw fromWire(answer.error)
    }
    const waitedMs = steadyMs() - askedMs
    if (answer !== null && waitedMs >= takenMs) {
      throw notStarted(key, 'the process that runs the jobs has taken the request and does not answer: see the history')
    }
    // It must not run when nobody expects it any more.
    if (answer === null && waitedMs >= answerMs && (row === null || (await withdraw(database, id)))) {
      throw notStarted(key, `no process has taken the request within ${answerMs / 1000} s`)
    }
  }
}

/** @returns false when it was taken just now */
async function withdraw(database: StoreDatabase, id: string): Promise<boolean> {
  const { rowCount } = await database.execute('DELETE FROM heddle_job_ask WHERE id = $1 AND answer IS NULL', [id])
  return rowCount > 0
}

export interface AskedRunsOptions {
  /** Null while this process does not run the jobs, or the database cannot be used. */
  database: () => StoreDatabase | null
  replica: string
  /** @throws why the job cannot run now */
  run: (key: string, asked: Asked) => Promise<void>
  log: (level: 'DEBUG', message: string) => void
}

/** Takes the asks of other processes while this one runs the jobs. */
export class AskedRuns {
  readonly #options: AskedRunsOptions
  readonly #task = new RepeatingTask(() => this.#look())
  #sweptMs = Number.NEGATIVE_INFINITY

  constructor(options: AskedRunsOptions) {
    this.#options = options
  }

  start(): void {
    this.#task.start(LOOK_MS)
  }

  stop(): Promise<void> {
    return this.#task.stop()
  }

  async #look(): Promise<number> {
    const database = this.#options.database()
    if (database === null) return LOOK_MS
    const now = CLOCK_MS[database.dialect]
    try {
      const asks = await database.query<AskRow>(
        `SELECT id, job, asked_by FROM heddle_job_ask WHERE answer IS NULL AND at_ms > ${now} - ${ANSWER_MS} ORDER BY at_ms LIMIT ${TAKE_MAX}`,
      )
      for (const ask of asks) await this.#serve(database, ask)
      if (steadyMs() - this.#sweptMs >= STALE_MS) {
        await database.execute(`DELETE FROM heddle_job_ask WHERE at_ms < ${now} - ${STALE_MS}`)
        this.#sweptMs = steadyMs()
      }
    } catch (error) {
      // Whoever has asked is told that nobody has taken it.
      this.#options.log('DEBUG', `Whether other processes ask for runs of jobs is not known: ${messageOf(error)}`)
    }
    return LOOK_MS
  }

  async #serve(database: StoreDatabase, { id, job, asked_by: askedBy }: AskRow): Promise<void> {
    const { replica, run } = this.#options
    const { rowCount } = await database.execute(
      'UPDATE heddle_job_ask SET answer = $2 WHERE id = $1 AND answer IS NULL',
      [id, JSON.stringify({ state: 'taken' } satisfies Answer)],
    )
    if (rowCount === 0) return
    let answer: Answer
    try {
      await run(job, { id, askedBy })
      answer = { state: 'started', replica }
    } catch (error) {
      answer = { state: 'refused', error: toWire(error) }
    }
    await database.execute('UPDATE heddle_job_ask SET answer = $2 WHERE id = $1', [id, JSON.stringify(answer)])
  }
}
