import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JobInfo } from '../../src/contracts/scheduler.ts'
import { folderOf, toolsWith } from '../support/folder.ts'
import { type Heddle, spawnHeddle, startHeddle } from '../support/heddle.ts'
import { SseClient } from '../support/sse-client.ts'
import { until } from '../support/until.ts'
import { fixture, SHIPPED } from './support.ts'

const DOMAINS = [fixture('deployed')]

test('jobs fire on the beat alone, once whatever the number of lanes, and never beside themselves', async (t) => {
  const [beat, other] = await Promise.all(
    ['true', 'false'].map((enabled) =>
      startHeddle(t, { domains: DOMAINS, lanes: 3, env: { SCHEDULER_ENABLED: enabled } }),
    ),
  )
  const jobsOf = async (heddle: typeof beat): Promise<JobInfo[]> => (await heddle!.json('/jobs')).body.jobs
  const lines = (message: string) => beat!.logs.filter(({ msg }) => msg === message)
  await until(() => lines('tick').length >= 8 && lines('long ends').length >= 3, 'some runs')

  const ticks = lines('tick').map(({ time }) => time as number)
  const tookMs = ticks.at(-1)! - ticks[0]!
  assert.ok(ticks.length <= tookMs / 100 + 2, `${ticks.length} runs in ${tookMs} ms`)
  const long = beat!.logs.map(({ msg }) => msg).filter((msg) => msg.startsWith('long '))
  for (const [n, msg] of long.entries()) assert.equal(msg, n % 2 === 0 ? 'long begins' : 'long ends')
  const [skipping] = (await jobsOf(beat)).filter(({ name }) => name === 'long')
  assert.ok(skipping!.skipped > 0)

  const idle = await jobsOf(other)
  assert.deepEqual(
    idle.map(({ plugin, name, next_run, runs }) => [plugin, name, next_run, runs]),
    [
      ['fleet.RunJobs', 'tick', null, 0],
      ['fleet.RunJobs', 'long', null, 0],
    ],
  )
  assert.ok(!other!.logs.some(({ msg }) => msg === 'tick' || msg.startsWith('long ')))
})

test('with DB_AUTO_MIGRATE=false replicas leave the database alone, and the boot step migrates it by dependency', async (t) => {
  // By name alone, alpha would come before what it refers to.
  const migrations = await folderOf(t, {
    'alpha/migrations/001_a.sql':
      '-- depends: beta/001_b\nCREATE TABLE a (id TEXT REFERENCES b); INSERT INTO a SELECT id FROM b;',
    'beta/migrations/001_b.sql': "CREATE TABLE b (id TEXT PRIMARY KEY); INSERT INTO b VALUES ('one');",
  })
  const domains = [...DOMAINS, migrations]
  const replica = await startHeddle(t, { domains, lanes: 1, env: { DB_AUTO_MIGRATE: 'false' } })
  const tables = async () => (await replica.json('/tables')).body.tables.map(({ name }: { name: string }) => name)
  const bootStep = async (autoMigrate: string) => {
    const env = { DB_AUTO_MIGRATE: autoMigrate, SQLITE_PATH: join(replica.directory, 'service.db') }
    const { child } = await spawnHeddle(t, { domains, env, args: ['--boot-tool', 'db'] })
    return (await once(child, 'exit'))[0]
  }
  assert.deepEqual(await tables(), [])
  assert.equal(await bootStep('false'), 0)
  assert.deepEqual(await tables(), [])
  assert.equal(await bootStep('true'), 0)
  assert.deepEqual(await tables(), ['a', 'b'])
})

test('LOG_LEVEL rules what is written, not what the log stream sends; tools log under their own name', async (t) => {
  const domains = await folderOf(t, {
    'a/plugins/speak.ts': `export default class Speak {
      constructor({ http, logger, crier }) {
        http.addEndpoint('/speak', 'GET', () => { logger.info('quiet'); logger.error('loud'); crier.cry(); return {} }) } }`,
    'a/plugins/first.ts': `export default class First {
      static thread = 'primary'
      constructor({ logger, config }) { this.log = logger; this.port = config.get('HTTP_PORT') }
      async onReady() {
        const { status } = await fetch('http://127.0.0.1:' + this.port + '/nowhere')
        this.log.error('onReady was answered ' + status)
      } }`,
  })
  const crier = `export default class Crier {
    name = 'crier'
    constructor(runtime) { this.runtime = runtime }
    cry() { this.runtime.log('WARNING', 'from a tool') } }`
  const port = await freePort(t)
  const { child, logs } = await spawnHeddle(t, {
    domains: [domains, SHIPPED],
    lanes: 1,
    env: {
      HTTP_PORT: String(port),
      LOG_LEVEL: 'error',
      REPLICA_ID: 'replica-7',
      TOOLS_DIR: await toolsWith(t, { 'crier/index.ts': crier }),
    },
  })
  assert.deepEqual((await once(child, 'message'))[0], 'ready')
  const url = `http://127.0.0.1:${port}`
  const reach = { fetch: (path: string, init?: RequestInit) => fetch(url + path, init) } as Heddle
  const clients = [await SseClient.open(t, reach, '/system/logs/stream')]
  clients.push(await SseClient.open(t, reach, '/system/logs/stream'))
  const from = logs.length
  await fetch(`${url}/speak`)
  for (const client of clients) {
    await client.until(() => client.frames.length >= 3, 'three lines')
    assert.deepEqual(
      client.frames.map(({ level, message, identity }) => [level, message, identity]),
      [
        ['INFO', 'quiet', 'a.Speak'],
        ['ERROR', 'loud', 'a.Speak'],
        ['WARNING', 'from a tool', 'crier'],
      ],
    )
  }
  assert.deepEqual(
    logs.slice(from).map(({ msg, identity, replica }) => [msg, identity, replica]),
    [['loud', 'a.Speak', 'replica-7']],
  )
  assert.ok(
    logs.some(({ msg, identity }) => identity === 'a.First' && msg === 'onReady was answered 404'),
    'onReady runs when the listener is up',
  )
})

test('handlers and the shutdown have their time, and a lane its memory', async (t) => {
  const heddle = await startHeddle(t, {
    domains: [...DOMAINS, SHIPPED],
    lanes: 1,
    env: { HTTP_HANDLER_TIMEOUT_MS: '200', SHUTDOWN_TIMEOUT_MS: '500', LANE_MEMORY_MB: '64' },
  })
  const startedMs = Date.now()
  const { status, body } = await heddle.json('/never')
  assert.deepEqual([status, body], [504, { success: false, error: 'The handler did not answer in time' }])
  assert.ok(Date.now() - startedMs < 2000)

  await heddle.json('/take-memory')
  const death = await until(() => heddle.logs.find(({ msg }) => msg.startsWith('Lane 0 died')), 'the death')
  assert.match(death.msg, /memory/i)
  await until(async () => (await heddle.json('/dump')).status === 200, 'the next lane')
  const [lane] = (await heddle.json('/system/lanes')).body
  assert.equal(lane.deaths[0].reason, 'memory')

  const begun = heddle.logs.filter(({ msg }) => msg === 'begun').length
  const hanging = heddle.fetch('/never-long').catch(() => null)
  await until(() => heddle.logs.filter(({ msg }) => msg === 'begun').length > begun, 'the handler')
  const stoppedMs = Date.now()
  assert.equal(await heddle.stop(), 0)
  const tookMs = Date.now() - stoppedMs
  assert.ok(tookMs >= 250 && tookMs < 3000, `${tookMs} ms`)
  await hanging
})

async function freePort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
