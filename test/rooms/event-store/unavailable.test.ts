import assert from 'node:assert/strict'
import { once } from 'node:events'
import { symlink } from 'node:fs/promises'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onPostgres, onSqlite } from './databases.ts'

const IN_MEMORY = { EVENT_BUS_DRIVER: 'in_process' }
const DATABASE = { EVENT_BUS_DRIVER: 'database' }

const late = (id: string) => ({ event: 'order.handled', payload: { id }, options: { delayMs: 1500 } })

const readiness = async (heddle: Heddle): Promise<{ ready: boolean; reasons: string[] }> =>
  (await heddle.json('/readiness')).body

test('while the server is away publishers are told, readiness says so, and nothing accepted is lost', async (t) => {
  const store = await onPostgres(t, true)
  if (store === null) return
  const heddle = await store.start(DATABASE)
  const { id } = await post(heddle, '/events', late('a'))
  await store.server!.stop('immediate')
  const told = await until(async () => {
    const found = await readiness(heddle)
    return found.reasons.length > 0 ? found : undefined
  }, 'a reason')
  assert.match(told.reasons.join(), /event bus: the event store cannot be used: /)
  assert.equal(told.ready, false, 'it takes no events')
  const refused = await post(heddle, '/events', late('b'))
  assert.equal(refused.success, false)
  await store.server!.start()
  await until(async () => (await readiness(heddle)).reasons.length === 0, 'no reason')
  await post(heddle, '/events', late('c'))
  await until(async () => (await handledBy(heddle)).some(({ order_id }) => order_id === 'c after'), 'the last one')
  await isEmpty(store)
  assert.equal((await handledBy(heddle)).find(({ order_id }) => order_id === 'a after')?.event_id, id)
})

test('tables of another version are left alone, and the process is not ready', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start({ ...DATABASE, HOLD: 'wait', SHUTDOWN_TIMEOUT_MS: '500' })
  await post(first, '/events', { event: 'order.taken', payload: { id: 'a' } })
  assert.equal(await first.stop(), 0)
  const versionIs = (version: number | string) =>
    store.rows(`UPDATE heddle_log SET value = ${version} WHERE name = 'version'`)
  const [{ value: version }] = (await store.rows<{ value: number }>(
    "SELECT value FROM heddle_log WHERE name = 'version'",
  )) as [{ value: number }]
  await versionIs(99)
  const second = await store.start(DATABASE)
  const { ready, reasons } = await readiness(second)
  assert.equal(ready, false)
  assert.match(reasons.join(), /The event store in the database has version 99/)
  assert.equal(await second.stop(), 0)
  await versionIs("'two'")
  const other = await store.start(DATABASE)
  const told = (await readiness(other)).reasons.join()
  assert.match(
    told,
    /The event store in the database has no version \(heddle_log: "two"\), and this release reads version \d+: if this/,
  )
  assert.equal(await other.stop(), 0)
  await versionIs(version)
  const third = await store.start(DATABASE)
  await until(async () => (await handledBy(third)).length === 2, 'the event handled')
  await isEmpty(store)
})

test('a second process on the file ends with status 78 and says why, until the first is gone', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start({ ...DATABASE, HOLD: 'wait' })
  await post(first, '/orders', { id: 'a' })
  const link = `${store.path}-link`
  await symlink(store.path!, link)
  for (const SQLITE_PATH of [store.path!, link]) {
    const { child, errors, logs } = await store.spawn({ ...DATABASE, SQLITE_PATH })
    assert.deepEqual(await once(child, 'close'), [78, null])
    assert.match(errors.join(''), /Another process has the event store of this database file/)
    const held = logs.filter(({ msg }) => msg.includes('do not end'))
    assert.deepEqual(held, [], 'its lanes end with it, though they have not begun')
  }
  assert.equal((await store.rows('SELECT seq FROM heddle_delivery')).length, 1, 'it has taken nothing')
  await kill(first)
  const second = await store.start(DATABASE)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

test('with the bus in memory a second process on SQLite is not ready before the first is gone', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start(IN_MEMORY)
  const second = await store.start(IN_MEMORY)
  const told = 'the event store is not open: Another process has the event store of this database file'
  assert.ok(second.logs.some(({ msg }) => msg.startsWith(told)))
  assert.equal((await post(second, '/orders', { id: 'a' })).success, false)
  const { ready, reasons } = await readiness(second)
  assert.equal(ready, false)
  assert.match(reasons.join(), new RegExp(`^event bus: ${told}`))
  assert.equal(await first.stop(), 0)
  await until(() => second.logs.some(({ msg }) => msg === 'The event store is open'), 'the log')
  assert.equal((await readiness(second)).ready, true)
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

for (const EVENT_BUS_DRIVER of ['in_process', 'database']) {
  test(`a second process that would share the port of the first is refused on SQLite under ${EVENT_BUS_DRIVER}`, async (t) => {
    const store = (await onSqlite(t))!
    const env = { EVENT_BUS_DRIVER, HTTP_REUSE_PORT: 'true', AUTH_SECRET_KEY: 'x'.repeat(32) }
    const first = await store.start(env)
    await assert.rejects(store.start(env), /Another process has the event store of this database file/)
    await post(first, '/orders', { id: 'a' })
    await until(async () => (await handledBy(first)).length === 2, 'the order handled')
  })
}
