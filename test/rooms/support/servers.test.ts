import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { startHeddle } from '../../support/heddle.ts'
import { LOADER } from '../../support/loader.ts'
import { serversNeededBy } from '../../support/servers/needed.ts'
import { nginxServer } from '../../support/servers/nginx.ts'
import { type PostgresServer, postgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { isRunning, processTree } from '../../support/servers/process-tree.ts'
import { programFor } from '../../support/servers/provide.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** A frozen server must not answer for that long; it would within milliseconds. */
const SILENCE_MS = 300

describeOnPostgres(
  'PostgreSQL of the tests',
  (server) => {
    test('PostgreSQL keeps what it has over a stop and a start, and checks passwords', async () => {
      await query(server, 'CREATE TABLE kept (word text)')
      await query(server, "INSERT INTO kept VALUES ('heddle')")
      await server.stop()
      await assert.rejects(query(server, 'SELECT 1'), { code: 'ECONNREFUSED' })
      await server.start()
      assert.deepEqual(await query(server, 'SELECT word FROM kept'), [{ word: 'heddle' }])
      await server.stop('immediate')
      await server.start()
      assert.deepEqual(await query(server, 'SELECT word FROM kept'), [{ word: 'heddle' }])
      await assert.rejects(query({ ...server, password: 'wrong' }, 'SELECT 1'), { code: '28P01' })
    })

    test('a database made on a given PostgreSQL is dropped at the end, and the server is left alone', async (t) => {
      withEnvironment(t, { ...server.env, RDB_DATABASE: 'service' })
      const ends: (() => Promise<void>)[] = []
      const given = await postgresServer({ after: (end) => ends.push(end), skip: assert.fail })
      assert.equal(given?.isOwn, false)
      assert.equal(given.port, server.port)
      assert.throws(() => given.freeze(), /own: true/)
      const names = "SELECT datname FROM pg_database WHERE datname LIKE 'heddle_test_%'"
      assert.equal((await query(server, names)).length, 2)
      for (const end of ends) await end()
      assert.deepEqual(await query(server, names), [{ datname: server.database }])
    })

    test('a frozen PostgreSQL keeps its clients waiting until it thaws', async (t) => {
      const client = await connected(t, server)
      server.freeze()
      const answer = client.query('SELECT 1 AS one')
      assert.equal(await Promise.race([answer, silence()]), 'silence')
      server.thaw()
      assert.deepEqual((await answer).rows, [{ one: 1 }])
    })
  },
  { own: true },
)

test('every call for PostgreSQL and every createDatabase() yields an empty database', async (t) => {
  const server = await postgresServer(t)
  if (server === null) return
  await query(server, 'CREATE TABLE mine (id text)')
  const another = await server.createDatabase()
  assert.notEqual(another, server.database)
  await assert.rejects(query({ ...server, database: another }, 'SELECT * FROM mine'), { code: '42P01' })
  assert.equal(server.env.RDB_DATABASE, server.database)
})

test('Redis with its append-only file has after a kill what it had before', async (t) => {
  const server = await redisServer(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  if (server === null) return
  await clientOf(t, server).set('word', 'heddle')
  await server.stop('SIGKILL')
  await server.start()
  assert.equal(await clientOf(t, server).get('word'), 'heddle')
})

test('Redis without it comes back empty, and checks passwords', async (t) => {
  const server = await redisServer(t, { own: true })
  if (server === null) return
  await clientOf(t, server).set('word', 'heddle')
  await server.stop()
  await server.start()
  assert.equal(await clientOf(t, server).get('word'), null)
  await assert.rejects(clientOf(t, { ...server, password: 'wrong' }).get('word'))
})

test('a frozen Redis keeps its clients waiting until it thaws', async (t) => {
  const server = await redisServer(t, { own: true })
  if (server === null) return
  const client = clientOf(t, server)
  await client.ping()
  server.freeze()
  const answer = client.ping()
  assert.equal(await Promise.race([answer, silence()]), 'silence')
  server.thaw()
  assert.equal(await answer, 'PONG')
})

test('on a given Redis a test gets an empty database, which is emptied at the end, and the others are not touched', async (t) => {
  const server = await redisServer(t, { own: true })
  if (server === null) return
  const client = clientOf(t, server)
  await client.select(15)
  await client.set('precious', 'yes')
  const { KV_DB: _, ...environment } = server.env
  withEnvironment(t, environment)
  const ends: (() => Promise<void>)[] = []
  const owner = { after: (end: () => Promise<void>) => ends.push(end), skip: assert.fail }
  const [first, second] = await Promise.all([redisServer(owner), redisServer(owner)])
  assert.equal(first?.isOwn, false)
  assert.notEqual(first.env.KV_DB, '15')
  assert.notEqual(first.env.KV_DB, second?.env.KV_DB)
  await client.select(Number(first.env.KV_DB))
  await client.set('left', 'behind')
  for (const end of ends) await end()
  assert.equal(await client.dbsize(), 0)
  await client.select(15)
  assert.equal(await client.get('precious'), 'yes')
  withEnvironment(t, { KV_DB: '15' })
  await assert.rejects(redisServer(owner), /no empty database/)
})

test('nginx serves what it is configured for, and again after a stop', async (t) => {
  const server = await nginxServer(t, {
    configure: (directory, [port]) =>
      writeFile(
        join(directory, 'nginx.conf'),
        `pid nginx.pid; events {} http { access_log off; server { listen 127.0.0.1:${port}; return 204; } }`,
      ),
  })
  if (server === null) return
  const status = async () => (await fetch(`http://127.0.0.1:${server.ports[0]}/`)).status
  assert.equal(await status(), 204)
  await server.stop()
  await assert.rejects(status)
  await server.start()
  assert.equal(await status(), 204)
})

test('a server that cannot start says why', async (t) => {
  if ((await programFor(t, 'postgres')) === null) return
  await assert.rejects(postgresServer(t, { own: true, settings: { shared_buffers: 'no' } }), /shared_buffers/)
})

test('nothing is left of the servers of a run that is killed', async (t) => {
  const programs = [await programFor(t, 'postgres'), await programFor(t, 'redis'), await programFor(t, 'nginx')]
  if (programs.includes(null)) return
  const folder = await mkdtemp(join(tmpdir(), 'heddle-test-abandoned-'))
  // The servers of a run as root are not root.
  await chmod(folder, 0o755)
  const run = spawn(process.execPath, [...LOADER, 'test/support/fixtures/abandoned-servers.ts'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    // Programs that were fetched lie in the temporary folder, which is another one there.
    env: {
      ...process.env,
      TMPDIR: folder,
      PATH: [...programs.map((path) => dirname(path!)), process.env.PATH].join(delimiter),
    },
  })
  t.after(async () => {
    run.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  let output = ''
  run.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  await until(() => output.includes('started\n') || run.exitCode !== null, 'the servers are up', 120_000)
  const tree = processTree(run.pid!).filter((pid) => pid !== run.pid)
  assert.equal(run.exitCode, null, 'the run has ended by itself')
  // The warden, redis-server, the two or more of nginx, the many of PostgreSQL.
  assert.ok(tree.length > 5, `${tree.length} processes`)
  assert.equal(readdirSync(folder).filter((name) => name.startsWith('heddle-test-')).length, 3)
  const exited = once(run, 'exit')
  run.kill('SIGKILL')
  await exited
  await until(() => !tree.some(isRunning), 'the servers have ended', 30_000)
  await until(() => !readdirSync(folder).some((name) => name.startsWith('heddle-test-')), 'the folders are gone')
})

test('which servers are needed is read from what a test file and its fixtures import', () => {
  assert.deepEqual(serversNeededBy([fileURLToPath(import.meta.url)]).sort(), ['nginx', 'postgres', 'redis'])
  assert.deepEqual(serversNeededBy([join(ROOT, 'test/rooms/config/load.test.ts')]), [])
})

test('a tools folder made of links boots in the primary and in the lanes', async (t) => {
  const TOOLS_DIR = await toolsDirWith(t, 'sqlite', 'memory-state')
  assert.ok(existsSync(join(TOOLS_DIR, 'sqlite', 'index.ts')))
  const heddle = await startHeddle(t, { lanes: 1, env: { TOOLS_DIR } })
  const { status, body } = await heddle.json('/users', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Ada', email: 'ada@example.org', password: 'correct horse battery' }),
  })
  assert.equal(status, 201, JSON.stringify(body))
})

async function query(server: PostgresServer, sql: string): Promise<unknown[]> {
  const client = new pg.Client(server)
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function connected(t: TestContext, server: PostgresServer): Promise<pg.Client> {
  const client = new pg.Client(server)
  client.on('error', () => {}) // The server is stopped before its client.
  await client.connect()
  t.after(() => client.end())
  return client
}

function clientOf(t: TestContext, { host, port, password }: RedisServer): Redis {
  const client = new Redis({ host, port, password, retryStrategy: () => null })
  client.on('error', () => {})
  t.after(() => client.disconnect())
  return client
}

/** Sets variables of this process for the rest of a test. */
function withEnvironment(t: TestContext, variables: Record<string, string>): void {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
  Object.assign(process.env, variables)
  t.after(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
}

function silence(): Promise<'silence'> {
  return new Promise((resolve) => setTimeout(() => resolve('silence'), SILENCE_MS))
}
