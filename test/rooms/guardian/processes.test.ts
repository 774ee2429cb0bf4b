import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import pg from 'pg'
import { type Heddle, spawnHeddle } from '../../support/heddle.ts'
import { freePort, freePorts } from '../../support/port.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { startGuarded } from './guarded.ts'
import { bothAt, place, START_MS, served, TWO } from './places.ts'

const FLEET = fixtureDomains('started/deployed')

test('on PostgreSQL with the database driver both serve, the first alone runs the jobs, and each has a port for /system', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const systemPort = await freePorts(2)
  const TOOLS_DIR = await toolsDirWith(t, 'postgres')
  const heddle = await startGuarded(
    t,
    { ...TWO, ...postgres.env, TOOLS_DIR, SYSTEM_PORT: String(systemPort), SCHEDULER_ENABLED: 'true' },
    [FLEET],
  )
  await until(() => served(heddle) === 2, 'both serve', START_MS)
  const ticks = (): LogLines => heddle.logs.filter(({ msg }) => msg === 'tick')
  await until(() => ticks().length > 20, 'the job')
  assert.deepEqual(new Set(ticks().map(({ replica }) => String(replica).at(-1))), new Set(['0']))
  assert.equal((await place(systemPort)).number, 0)
  assert.equal((await place(systemPort + 1)).number, 1)
  assert.equal(await heddle.stop(), 0)
})

test('a process that another one has taken over, since it was cut off from the database, is started again and blames nobody', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const TOOLS_DIR = await toolsDirWith(t, 'postgres')
  const heddle = await startGuarded(t, { ...postgres.env, TOOLS_DIR, EVENT_BUS_DRIVER: 'database' })
  const first = await heddle.pid()
  const { host, port, user, password, database } = postgres
  const client = new pg.Client({ host, port, user, password, database })
  await client.connect()
  await client.query('DELETE FROM heddle_member')
  await client.end()
  await heddle.pid(first)
  assert.match(heddle.errors.join(''), /has ended with code 75: it is started again/)
  assert.ok(!heddle.logs.some(({ msg }) => msg.startsWith('The process before this one is dead')))
  assert.equal(await heddle.stop(), 0)
})

type LogLines = Heddle['logs']

for (const EVENT_BUS_DRIVER of ['database', 'in_process']) {
  test(`PROCESSES=2 on SQLite: the start is refused under ${EVENT_BUS_DRIVER}, with what to do instead`, async (t) => {
    const env = { ...TWO, EVENT_BUS_DRIVER, HTTP_PORT: String(await freePort()) }
    const { child, errors, logs } = await spawnHeddle(t, { isGuarded: true, lanes: 1, env })
    assert.equal((await once(child, 'close'))[0], 78)
    assert.match(errors.join(''), /PROCESSES is 2, and SQLite keeps the events of one process: use PostgreSQL/)
    assert.doesNotMatch(errors.join(''), /started again/)
    assert.ok(!logs.some(({ msg }) => msg.startsWith('Serving')))
  })
}

test('without the guardian, which alone starts several, PROCESSES is refused', async (t) => {
  const env = { ...TWO, HTTP_PORT: String(await freePort()) }
  const { child, errors } = await spawnHeddle(t, { lanes: 1, env })
  assert.equal((await once(child, 'close'))[0], 78)
  assert.match(errors.join(''), /PROCESSES: expected 1 without the guardian/)
})

test('node:http shares the port, too', async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return
  const servers = { ...postgres.env, TOOLS: 'postgres' }
  const env = { ...TWO, ...servers, HTTP_LISTENER: 'node', HTTP_PORT: String(await freePort()) }
  const heddle = await startGuarded(t, env)
  await bothAt(heddle.port)
  assert.equal(await heddle.stop(), 0)
})
