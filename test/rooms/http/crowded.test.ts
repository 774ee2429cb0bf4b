import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/crowded', import.meta.url)), SYSTEM_ROUTES]
const MAX_QUEUE = 40
/** One more than three quarters of it. */
const CROWD = 31

const lines = (heddle: Heddle, msg: string) => heddle.logs.filter((line) => line.msg === msg)
const held = (heddle: Heddle, event: string) => lines(heddle, 'held').filter((line) => line.event === event).length

test('while the event queue is crowded, lanes take no new requests, and what is under way comes to its end', {
  timeout: 60_000,
}, async (t) => {
  const heddle = await startHeddle(t, {
    domains: DOMAINS,
    lanes: 1,
    // In the database they would wait for room.
    env: { EVENT_BUS_DRIVER: 'in_process', EVENT_BUS_MAX_QUEUE: String(MAX_QUEUE) },
  })

  await t.test('requests are refused from three quarters on, with the time to come again', async () => {
    for (let n = 0; n < CROWD; n++) assert.equal((await heddle.post('/orders', { n })).status, 200)
    for (const answer of [await heddle.post('/orders', { n: CROWD }), await heddle.json('/orders')]) {
      assert.equal(answer.status, 503)
      assert.deepEqual(answer.body, { success: false, error: 'The service is overloaded' })
      assert.match(answer.headers.get('retry-after')!, /^[1-9]\d*$/)
    }
    await until(() => held(heddle, 'order.placed') === CROWD, 'all orders at work')
  })

  await t.test('the primary answers all the same', async () => {
    for (const path of ['/system/status', '/system/lanes', '/system/health/ready'])
      assert.equal((await heddle.json(path)).status, 200)
  })

  await t.test('chains that are under way publish', async () => {
    await heddle.post('/gate', { event: 'order.placed', count: 5 })
    await until(() => lines(heddle, 'stored').length === 5, 'five steps further')
    await until(() => held(heddle, 'order.stored') === 5, 'their events at work')
    assert.equal((await heddle.json('/orders')).status, 503, 'that made no room for new ones')
  })

  await t.test('requests are served again as soon as it has drained', async () => {
    await heddle.post('/gate', { event: 'order.stored', count: 5 })
    await until(async () => (await heddle.json('/orders')).status === 200, 'a request that is served')
    assert.equal(lines(heddle, 'done').length, 5)
  })

  await t.test('nothing that was accepted is lost', async () => {
    for (let taken = 5; taken < CROWD; ) {
      const count = Math.min(5, CROWD - taken)
      taken += count
      await heddle.post('/gate', { event: 'order.placed', count })
      await until(() => held(heddle, 'order.stored') === taken, 'the second step')
      await heddle.post('/gate', { event: 'order.stored', count })
    }
    await until(() => lines(heddle, 'done').length === CROWD, 'all orders')
    assert.deepEqual((await heddle.json('/system/dead-letters')).body, [])
    const placed = new Set(
      (await heddle.json('/system/traces/flat')).body
        .filter(({ event }: { event: string }) => event === 'order.placed')
        .map(({ id }: { id: string }) => id),
    )
    assert.deepEqual(new Set(lines(heddle, 'done').map(({ parent_id }) => parent_id)), placed)
  })
  assert.equal(await heddle.stop(), 0)
})
