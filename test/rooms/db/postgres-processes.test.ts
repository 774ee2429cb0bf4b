import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { keepAsking } from '../../support/load.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { writeFiles } from './fixture.ts'

const run = promisify(execFile)
/** Time between an answer and the next request of one client of a load. */
const EVERY_MS = 10

describeOnPostgres('processes on PostgreSQL', runTests, { own: true })

function runTests(server: PostgresServer): void {
  /** Environment and an administrator's look at a new database, with migrations of its own. */
  async function withDatabase(t: TestContext, migrations: Record<string, string> = {}) {
    const database = await server.createDatabase()
    const folder = temporaryFolder(t)
    await mkdir(join(folder, 'shop', 'migrations'), { recursive: true })
    await writeFiles(join(folder, 'shop', 'migrations'), migrations)
    const env: Record<string, string> = {
      ...server.env,
      RDB_DATABASE: database,
      TOOLS_DIR: await toolsDirWith(t, 'postgres'),
      AUTH_SECRET_KEY: 'a secret key for the tests of processes',
    }
    const { host, port, user, password } = server
    const query = async (sql: string) => {
      const client = new pg.Client({ host, port, user, password, database })
      client.on('error', () => {})
      await client.connect()
      try {
        return (await client.query(sql)).rows
      } finally {
        await client.end()
      }
    }
    // Without the runtime's own.
    const tables = async () =>
      (await query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`))
        .map(({ name }) => name as string)
        .filter((name) => !name.startsWith('heddle_'))
        .sort()
    return { env, folder, query, tables, database }
  }

  /** `npm start -- --boot-tool db`, to its end. */
  async function bootTool(t: TestContext, env: Record<string, string>, folder: string) {
    const { child, errors } = await spawnHeddle(t, { env, domains: [folder], args: ['--boot-tool', 'db'] })
    const [code] = await once(child, 'close')
    return { code: code as number, told: errors.join('') }
  }

  test('what is wrong with a migration or the access ends the step with 1, and is told with what to do', async (t) => {
    const { env, folder, tables } = await withDatabase(t, {
      '001_one.sql': 'CREATE TABLE one (id TEXT);',
      '002_two.sql': 'CREATE TABLE two (id TEXT);\nINSERT INTO none VALUES (1);',
      '003_three.sql': 'CREATE TABLE three (id TEXT);',
    })
    const faults: [env: Record<string, string>, told: RegExp][] = [
      [{}, /shop\/002_two failed and was rolled back: relation "none" does not exist in line 2 \(.*002_two\.sql\)/],
      [{ RDB_DATABASE: 'not_there' }, /createdb .* not_there/],
      [{ RDB_PASSWORD: 'wrong' }, /RDB_PASSWORD/],
    ]
    for (const [own, message] of faults) {
      const { code, told } = await bootTool(t, { ...env, ...own }, folder)
      assert.equal(code, 1)
      assert.match(told, message)
      assert.doesNotMatch(told, /wrong"/)
    }
    assert.deepEqual(await tables(), ['_migrations', 'one'])
  })

  test('with DB_AUTO_MIGRATE=false a process starts on an empty database, says what is pending and changes nothing', async (t) => {
    const { env, tables } = await withDatabase(t)
    const heddle = await startHeddle(t, { lanes: 1, env: { ...env, DB_AUTO_MIGRATE: 'false' } })
    const line = heddle.logs.find(({ msg }) => /Migrations are pending/.test(msg))
    assert.deepEqual(line?.migrations, ['users/001_users', 'users/002_sessions'])
    const { status, body } = await heddle.json('/system/health/ready')
    assert.equal(status, 503)
    assert.match(JSON.stringify(body), /the event store is not open: its tables are missing/)
    assert.equal(await heddle.stop(), 0)
    assert.deepEqual(await tables(), [])
    const inProcess = { ...env, DB_AUTO_MIGRATE: 'false', EVENT_BUS_DRIVER: 'in_process' }
    const other = await startHeddle(t, { lanes: 1, env: inProcess })
    const { status: inMemory, body: told } = await other.json('/system/health/ready')
    assert.equal(inMemory, 503)
    assert.match(JSON.stringify(told), /migrations are pending, and DB_AUTO_MIGRATE is false: users\/001_users/)
    assert.equal(await other.stop(), 0)
    assert.deepEqual(await tables(), [])
    const isTold = () => heddle.logs.some(({ msg }) => /event store is not open: its tables are missing/.test(msg))
    await until(isTold, 'it is told of')
  })

  test('a process of more threads than connections says so, and works', async (t) => {
    const { env, query } = await withDatabase(t)
    const heddle = await startHeddle(t, { lanes: 2, env: { ...env, RDB_MAX_POOL: '2' } })
    assert.ok(
      heddle.logs.some(({ msg }) =>
        /RDB_MAX_POOL is 2, but each of 3 threads needs a connection, and notifications one: up to 4/.test(msg),
      ),
    )
    assert.deepEqual((await heddle.json('/users/nobody')).status, 404)
    const [{ n }] = await query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name LIKE 'heddle %'`,
    )
    assert.ok(n <= 4)
  })

  test('a server that accepts fewer connections than the process may open is told at the start, with both figures', async (t) => {
    const { env, query } = await withDatabase(t)
    const [{ most }] = await query("SELECT current_setting('max_connections')::int AS most")
    const told = async (maxPool: number) => {
      const heddle = await startHeddle(t, { lanes: 1, env: { ...env, RDB_MAX_POOL: String(maxPool) } })
      const line = heddle.logs.find(({ msg }) => msg.startsWith('PostgreSQL accepts'))
      assert.equal(await heddle.stop(), 0)
      return line?.msg
    }
    assert.match(
      (await told(most + 1)) ?? '',
      new RegExp(`^PostgreSQL accepts \\d+ connections of this user, and this service may open ${most + 1} `),
    )
    assert.equal(await told(4), undefined)
  })

  test('a server that is restarted under load costs what is under way; the process goes on, and its tool recovers', async (t) => {
    const { env, database } = await withDatabase(t)
    const heddle = await startHeddle(t, { lanes: 1, env: { ...env, HEALTH_CHECK_INTERVAL: '0.2' } })
    const dbStatus = async () =>
      (await heddle.json('/system/status')).body.tools.db as { status: string; message: string }
    const ask = async () => (await heddle.fetch('/users/nobody')).status
    const { statuses, stop } = keepAsking(ask, { clients: 8, everyMs: EVERY_MS })
    await until(() => (statuses.get(404) ?? 0) > 100, 'load')
    await server.stop('fast')
    await until(async () => (await dbStatus()).status === 'DEAD', 'a dead tool')
    await server.start()
    await until(async () => (await dbStatus()).status === 'OK', 'a healthy tool', 20_000)
    const before = statuses.get(404)!
    await until(() => statuses.get(404)! > before + 100, 'load again')
    await stop()
    assert.deepEqual([...statuses.keys()].sort(), [404, 503], `on ${database}`)
    await until(async () => (await heddle.fetch('/system/health/ready')).status === 200, 'ready')
    assert.equal(await heddle.stop(), 0)
  })

  test('a database that comes after the process: it serves, says why it is not ready, and migrates when it can', async (t) => {
    const { env } = await withDatabase(t)
    await server.stop()
    let heddle: Heddle
    try {
      heddle = await startHeddle(t, { lanes: 1, env })
      const { status, body } = await heddle.json('/system/health/ready')
      assert.equal(status, 503)
      assert.match(body.reasons.join(), /tool db did not boot: .*ECONNREFUSED.*RDB_PORT/)
      assert.equal((await heddle.fetch('/hello/world')).status, 200)
      assert.equal((await heddle.fetch('/users/nobody')).status, 503)
    } finally {
      await server.start()
    }
    const told = once(heddle.process, 'message')
    await until(async () => (await heddle.fetch('/system/health/ready')).status === 200, 'ready', 20_000)
    assert.deepEqual((await told)[0], 'ready')
    await until(() => heddle.logs.some(({ msg }) => msg === 'Applied migration users/001_users'), 'the migration')
    assert.equal((await heddle.fetch('/users/nobody')).status, 404)
    const { tools, plugins } = (await heddle.json('/system/status')).body
    assert.equal(tools.db.status, 'OK')
    assert.ok(Object.values(plugins as Record<string, { status: string }>).every(({ status }) => status === 'OK'))
    assert.equal(heddle.logs.filter(({ msg }) => msg.startsWith('Tool db did not boot')).length, 1)
    assert.equal(await heddle.stop(), 0)
  })

  test('a checkout is moved to PostgreSQL and back by one command each, with the same domains', async (t) => {
    const root = temporaryFolder(t)
    const project = join(import.meta.dirname, '../../..')
    await run('cp', ['-R', 'src', 'domains', 'workers', 'package.json', 'tsconfig.json', root], { cwd: project })
    await symlink(join(project, 'node_modules'), join(root, 'node_modules'))
    const { env, tables } = await withDatabase(t)
    const { TOOLS_DIR: _, ...rest } = env
    const use = async (implementation: string) => {
      await run(process.execPath, ['src/heddle.cjs', 'tools', 'use', implementation], {
        cwd: root,
      })
    }
    /** What a new process answers to so many sign-ups of one user. */
    const signUps = async (count: number) => {
      const heddle = await startHeddle(t, { project: root, lanes: 1, env: rest })
      const user = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
      const statuses: number[] = []
      while (statuses.length < count) {
        statuses.push((await heddle.post('/users', user)).status)
      }
      assert.equal(await heddle.stop(), 0)
      return statuses
    }
    await use('postgres')
    assert.deepEqual(await signUps(2), [201, 409])
    assert.deepEqual(await tables(), ['_migrations', 'sessions', 'users'])
    await use('sqlite')
    assert.deepEqual(await signUps(1), [201])
    await use('postgres')
    assert.deepEqual(await signUps(1), [409])
  })
}
