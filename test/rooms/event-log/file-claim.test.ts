import assert from 'node:assert/strict'
import { once } from 'node:events'
import { symlink } from 'node:fs/promises'
import { test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onSqlite } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }

test('a second process on the file ends with status 78 and says why, until the first is gone', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start({ ...DATABASE, HOLD: 'wait' })
  await post(first, '/orders', { id: 'a' })
  const link = `${store.path}-link`
  await symlink(store.path!, link)
  for (const SQLITE_PATH of [store.path!, link]) {
    const { child, errors, logs } = await store.spawn({ ...DATABASE, SQLITE_PATH })
    assert.deepEqual(await once(child, 'exit'), [78, null])
    assert.match(errors.join(''), /Another process has the event log of this database file/)
    const held = logs.filter(({ msg }) => msg.includes('do not end'))
    assert.deepEqual(held, [], 'its lanes end with it, though they have not begun')
  }
  assert.equal((await store.rows('SELECT seq FROM heddle_event')).length, 1, 'it has taken nothing')
  await kill(first)
  const second = await store.start(DATABASE)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

test('with the bus in memory a second process cannot publish in transactions, and is not ready, before the first is gone', async (t) => {
  const store = (await onSqlite(t))!
  const env = { EVENT_BUS_DRIVER: 'in_process' }
  const first = await store.start(env)
  const second = await store.start(env)
  const told = 'the event log is not open: Another process has the event log of this database file'
  assert.ok(second.logs.some(({ msg }) => msg.startsWith(told)))
  const refused = await post(second, '/orders', { id: 'a' })
  assert.equal(refused.success, false)
  const { ready, reasons } = (await second.json('/readiness')).body
  assert.equal(ready, false)
  assert.match(reasons.join(), /^event bus: the event log is not open: Another process has the event log/)
  assert.equal(await first.stop(), 0)
  await until(() => second.logs.some(({ msg }) => msg === 'The event log is open'), 'the log')
  assert.equal((await second.json('/readiness')).body.ready, true)
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})
