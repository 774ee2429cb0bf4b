// The last runs of each job in the database that several processes share: each of them has a history of its own.
import type { NotedRun } from '../../contracts/scheduler.ts'
import { messageOf } from '../../core/errors/description.ts'
import { withoutSecretStrings } from '../../core/schemas/secret-fields.ts'
import type { StoreDatabase } from '../../runtime/event-store/database.ts'

/** Runs of each job that are noted: the last ones. */
export const NOTED_MAX = 10
/** How often the runs of a job are written at most, milliseconds: one may run a hundred times a second. */
const WRITE_MS = 1000
/** Characters of an error. */
const ERROR_MAX = 500

interface NotedRow {
  job: string
  runs: string
}

interface NotedRunsOptions {
  database: StoreDatabase
  /** Of the process that runs the jobs. */
  fence: number
  log: (level: 'DEBUG', message: string) => void
}

/** Notes the runs of this process while it runs the jobs. */
export class NotedRuns {
  readonly #options: NotedRunsOptions
  /** By job, newest first. */
  readonly #runs = new Map<string, NotedRun[]>()
  readonly #unwritten = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: NotedRunsOptions) {
    this.#options = options
  }

  /** Reads what others have noted. It comes first. @throws DbError */
  async open(): Promise<void> {
    for (const [job, runs] of await readNoted(this.#options.database)) {
      // Nobody else runs jobs now.
      this.#runs.set(
        job,
        runs.map((run) => (run.outcome === 'running' ? { ...run, outcome: 'unfinished' } : run)),
      )
      if (runs.some(({ outcome }) => outcome === 'running')) this.#writeSoon(job)
    }
  }

  /** @param key `<plugin>/<job>` @returns notes its end */
  begin(key: string, facts: Pick<NotedRun, 'id' | 'asked_by' | 'thread' | 'replica'>): (error: string | null) => void {
    const atMs = Date.now()
    const run: NotedRun = {
      ...facts,
      began_at: new Date(atMs).toISOString(),
      duration_ms: null,
      outcome: 'running',
      error: null,
    }
    this.#runs.set(key, [run, ...(this.#runs.get(key) ?? [])].slice(0, NOTED_MAX))
    this.#writeSoon(key)
    return (error) => {
      run.duration_ms = Date.now() - atMs
      run.outcome = error === null ? 'done' : 'failed'
      run.error = error?.slice(0, ERROR_MAX) ?? null
      this.#writeSoon(key)
    }
  }

  #writeSoon(key: string): void {
    this.#unwritten.add(key)
    this.#arm()
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => void this.#write(), WRITE_MS).unref()
  }

  /** Writes what is not written yet; then nothing is written any more. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#write()
  }

  async #write(): Promise<void> {
    const { database, fence, log } = this.#options
    const keys = [...this.#unwritten]
    this.#unwritten.clear()
    for (const key of keys) {
      const runs = withoutSecretStrings(JSON.stringify(this.#runs.get(key)))
      try {
        await database.execute(
          `INSERT INTO heddle_job_run (job, fence, runs) VALUES ($1, $2, $3)
           ON CONFLICT (job) DO UPDATE SET fence = $2, runs = $3 WHERE heddle_job_run.fence <= $2`,
          [key, fence, runs],
        )
      } catch (error) {
        // The next run of the job is written with it.
        log('DEBUG', `The runs of ${key} are not noted: ${messageOf(error)}`)
      }
    }
    this.#timer = undefined
    if (this.#unwritten.size > 0) this.#arm()
  }
}

/** The last runs of each job, newest first. @throws DbError */
export async function readNoted(database: StoreDatabase): Promise<Map<string, NotedRun[]>> {
  const rows = await database.query<NotedRow>('SELECT job, runs FROM heddle_job_run')
  return new Map(rows.map(({ job, runs }) => [job, parsed(runs)]))
}

/** A neighbour in the database may have written anything. */
function parsed(json: string): NotedRun[] {
  try {
    const runs: unknown = JSON.parse(json)
    return Array.isArray(runs) ? runs.filter((run) => typeof run?.id === 'string').slice(0, NOTED_MAX) : []
  } catch {
    return []
  }
}
