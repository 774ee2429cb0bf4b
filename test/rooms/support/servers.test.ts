import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { LOADER } from '../../support/loader.ts'
import { serversNeededBy } from '../../support/servers/needed.ts'
import { type PostgresServer, postgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { isRunning, processTree } from '../../support/servers/process-tree.ts'
import { programFor } from '../../support/servers/provide.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

describeOnPostgres(
  'PostgreSQL of the tests',
  (server) => {
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
  },
  { own: true },
)

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
  assert.deepEqual(serversNeededBy([fileURLToPath(import.meta.url)]).sort(), ['postgres', 'redis'])
  assert.deepEqual(serversNeededBy([join(ROOT, 'test/rooms/config/load.test.ts')]), [])
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
