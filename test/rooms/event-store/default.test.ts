import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import type { Heddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { post, startWith } from '../../support/started-service.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { kill, onSqlite } from './databases.ts'

const CHOSEN = /Events end with this process: no tool db is installed that could keep them/

const handledBy = async (heddle: Heddle): Promise<string[]> => (await heddle.json('/notes')).body.handled

test('events outlive the process where nothing is set', async (t) => {
  const folder = temporaryFolder(t)
  const env = { SQLITE_PATH: join(folder, 'service.db'), EVENT_BUS_DRIVER: '' }
  const first = await startWith(t, 'noted', { env })
  await post(first, '/notes', { text: 'late', delayMs: 3000 })
  await kill(first)
  const second = await startWith(t, 'noted', { env })
  await until(async () => (await handledBy(second)).includes('late'), 'the note of the first process')
  assert.ok(!second.logs.some(({ msg }) => CHOSEN.test(msg)))
})

test('without a tool db events stay in the process, unless the database was chosen', async (t) => {
  const tools = await toolsDirWith(t)
  await rm(join(tools, 'sqlite'), { recursive: true })
  const heddle = await startWith(t, 'noted', { env: { TOOLS_DIR: tools, EVENT_BUS_DRIVER: '' } })
  assert.match((await post(heddle, '/notes', { text: 'now' })).id, /^evt_/)
  await until(async () => (await handledBy(heddle)).includes('now'), 'the note')
  assert.ok(heddle.logs.some(({ msg }) => CHOSEN.test(msg)))
  assert.equal((await heddle.json('/system/health/ready')).status, 200)
  const { plugins } = (await heddle.json('/system/status')).body
  assert.deepEqual(
    [plugins['users.CreateUser'].status, plugins['users.CreateUser'].error],
    ['DEAD', 'Missing tool: db'],
    'its handler calls context.commit',
  )
  assert.equal((await heddle.fetch('/users', { method: 'POST' })).status, 404)

  const chosen = await startWith(t, 'noted', { env: { TOOLS_DIR: tools, EVENT_BUS_DRIVER: 'database' } })
  const refused = await post(chosen, '/notes', { text: 'never' })
  assert.equal(refused.success, false)
})

test('without a tool db Redis has the events, and those with a key or a delay are refused at once', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  const tools = await toolsDirWith(t)
  await rm(join(tools, 'sqlite'), { recursive: true })
  const env = { ...redis.env, TOOLS_DIR: tools, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const heddle = await startWith(t, 'noted', { env })
  assert.ok(heddle.logs.some(({ msg }) => /^Events with a key or a delay are refused: /.test(msg)))
  assert.match((await post(heddle, '/notes', { text: 'now' })).id, /^evt_/)
  await until(async () => (await handledBy(heddle)).includes('now'), 'the note')
  assert.equal((await post(heddle, '/notes', { text: 'later', delayMs: 10 })).success, false)
  await until(() => heddle.logs.some(({ msg }) => /No installed tool db can store events/.test(msg)), 'the reason')
})

test('event_bus.publish in a transaction on SQLite is refused at once, and rolls it back', async (t) => {
  const store = (await onSqlite(t))!
  const heddle = await store.start({ EVENT_BUS_DRIVER: 'database' })
  assert.equal((await post(heddle, '/orders', { id: 'a', beside: true })).success, false)
  await until(
    () => heddle.logs.some(({ msg }) => /would wait for the transaction around it.*tx/.test(msg)),
    'the reason in the log',
  )
  await post(heddle, '/orders', { id: 'b' })
  assert.deepEqual(await store.rows('SELECT id FROM orders'), [{ id: 'b' }])
})
