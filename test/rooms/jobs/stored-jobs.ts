import { delimiter } from 'node:path'
import type { TestContext } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import type { LogStore, StoreMaker } from '../event-store/databases.ts'

/** A run as a job of `plugin` has written it down. */
export interface Run {
  name: string
  due: number
  attempt: number
  fence: number
  pid: number
}

/** A database with processes whose jobs write down their runs. */
export interface JobStage {
  readonly store: LogStore
  start(env?: Record<string, string>): Promise<Heddle>
  runs(name?: string): Promise<Run[]>
  /** All jobs are stored. */
  placed(count: number): Promise<unknown>
}

const RUNS = 'CREATE TABLE runs (name TEXT NOT NULL, due BIGINT NOT NULL, attempt INTEGER, fence BIGINT, pid INTEGER)'

/** @param body stands in the constructor: `run(name)` is a handler that writes its run down; `logger` is there, too */
const plugin = (body: string): string => `export default class Work {
  constructor({ db, http, logger, scheduler }) {
    const run = (name) => ({ due, attempt, fence }) =>
      db.execute('INSERT INTO runs (name, due, attempt, fence, pid) VALUES ($1, $2, $3, $4, $5)', [
        name, due.getTime(), attempt, fence, process.pid,
      ])
    http.addEndpoint('/work/jobs', 'GET', async () => ({ jobs: await scheduler.list() }))
    ${body}
  }
}
`

/** Null where there is no such server. @param domains further ones */
export async function stageOf(
  t: TestContext,
  storeOf: StoreMaker,
  body: string,
  domains: readonly string[] = [],
): Promise<JobStage | null> {
  const store = await storeOf(t)
  return store === null ? null : stageOn(t, store, body, domains)
}

/** The same database with other jobs. */
export async function stageOn(
  t: TestContext,
  store: LogStore,
  body: string,
  domains: readonly string[] = [],
): Promise<JobStage> {
  const folder = await folderOf(t, { 'work/migrations/001_runs.sql': RUNS, 'work/plugins/work.ts': plugin(body) })
  return {
    store,
    start: (env = {}) => store.start({ DOMAINS_DIR: [folder, ...domains].join(delimiter), ...env }),
    runs: async (name) => {
      const rows = await store.rows<Run>(`SELECT name, due, attempt, fence, pid FROM runs ORDER BY due, attempt`)
      return rows
        .filter((row) => name === undefined || row.name === name)
        .map((row) => ({ ...row, due: Number(row.due), fence: Number(row.fence) }))
    },
    placed: (count) =>
      until(async () => (await store.rows('SELECT name FROM heddle_job')).length === count, `${count} stored jobs`),
  }
}
