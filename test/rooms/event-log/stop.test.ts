import assert from 'node:assert/strict'
import { test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { onSqlite } from './databases.ts'

const SHUTDOWN_TIMEOUT_MS = 5000

test('a stop says who holds it and what becomes of that, and keeps to its time', async (t) => {
  const store = await onSqlite(t)
  assert.ok(store)
  const env = { EVENT_BUS_DRIVER: 'database', HOLD: 'wait handled', SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS) }
  const heddle = await store.start(env)
  await post(heddle, '/events', { event: 'order.handled', payload: { id: 'a' } })
  const stoppedMs = performance.now()
  assert.equal(await heddle.stop(), 0)
  assert.ok(performance.now() - stoppedMs < SHUTDOWN_TIMEOUT_MS)
  const [waits, given] = heddle.logs.filter(({ msg }) => msg.startsWith('Draining waits')).map(({ msg }) => msg)
  const held = /event order\.handled \(shop\.TakeOrders, for \d+\.\d s\)/.source
  assert.match(waits!, new RegExp(`^Draining waits for ${held}: [23]\\.\\d s at most$`))
  const fate = 'events are handed back, and the next process delivers them again'
  assert.match(given!, new RegExp(`^Draining waits no longer for ${held}: ${fate}$`))
})

test('a stop whose time is up says what is lost with a process that keeps its events in memory', async (t) => {
  const store = await onSqlite(t)
  assert.ok(store)
  const env = { EVENT_BUS_DRIVER: 'in_process', HOLD: 'wait handled', SHUTDOWN_TIMEOUT_MS: '500' }
  const heddle = await store.start(env)
  await post(heddle, '/events', { event: 'order.handled', payload: { id: 'a' } })
  assert.equal(await heddle.stop(), 0)
  const lost = heddle.logs.filter(({ msg }) => msg.includes('lost with this process')).map(({ msg }) => msg)
  assert.deepEqual(lost, ['1 event deliveries were not finished and are lost with this process'])
})
