import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { type Query, rowsOfFile, rowsOfServer } from '../../support/rows.ts'
import { type PostgresServer, postgresServer } from '../../support/servers/postgres.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/logged', import.meta.url))

/** A database that outlives the processes on it. */
export interface LogStore {
  /** Starts a process on it, with one lane. */
  start(env?: Record<string, string>): Promise<Heddle>
  /** Applies the migrations in another process. */
  migrate(): Promise<void>
  /** A process that is to fail as it starts. */
  spawn(env?: Record<string, string>): ReturnType<typeof spawnHeddle>
  /** Sends a statement behind the back of the processes. */
  readonly rows: Query
  readonly domains: string
  /** SQLITE_PATH; null on a server. */
  readonly path: string | null
  /** Null on a file. */
  readonly server: PostgresServer | null
}

/** Null where there is no such server: the test is skipped. */
export type StoreMaker = (t: TestContext) => Promise<LogStore | null>

function storeOn(
  t: TestContext,
  own: Record<string, string>,
  rest: Pick<LogStore, 'rows' | 'path' | 'server'>,
  domains = DOMAINS,
): LogStore {
  const optionsOf = (env: Record<string, string>) => ({
    domains: [domains],
    lanes: 1,
    env: { LANE_ENV: 'HOLD', ...own, ...env },
  })
  return {
    start: (env = {}) => startHeddle(t, optionsOf(env)),
    spawn: (env = {}) => spawnHeddle(t, optionsOf(env)),
    migrate: async () => {
      const { child, errors } = await spawnHeddle(t, { ...optionsOf({}), args: ['--boot-tool', 'db'] })
      const [code] = await once(child, 'close')
      assert.equal(code, 0, errors.join(''))
    },
    domains,
    ...rest,
  }
}

export async function onSqlite(t: TestContext, domains = DOMAINS): Promise<LogStore | null> {
  const folder = temporaryFolder(t)
  const path = join(folder, 'service.db')
  return storeOn(t, { SQLITE_PATH: path }, { rows: rowsOfFile(path), path, server: null }, domains)
}

/** @param isOwn the server is the test's own: it can be stopped */
export async function onPostgres(t: TestContext, isOwn = false, domains = DOMAINS): Promise<LogStore | null> {
  // What it has acknowledged must outlive its crash.
  const server = await postgresServer(t, { own: isOwn, durable: isOwn })
  if (server === null) return null
  const tools = await toolsDirWith(t, 'postgres')
  const env = { ...server.env, RDB_DATABASE: server.database, TOOLS_DIR: tools }
  return storeOn(t, env, { rows: rowsOfServer(t, server), path: null, server }, domains)
}

export const STORES: [name: string, make: StoreMaker][] = [
  ['SQLite', (t) => onSqlite(t)],
  ['PostgreSQL', (t) => onPostgres(t)],
]

/** What a subscriber of the fixture has written down. */
export interface Handled {
  event_id: string
  order_id: string
  attempt: number
  parent: string | null
}

export const handledBy = async (heddle: Heddle): Promise<Handled[]> => (await heddle.json('/orders')).body.handled ?? []

/** Nothing waits in the log any more. */
export const isEmpty = (store: LogStore): Promise<unknown> =>
  until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'an empty log')

export async function kill(heddle: Heddle): Promise<void> {
  const exited = once(heddle.process, 'exit')
  heddle.process.kill('SIGKILL')
  await exited
}
