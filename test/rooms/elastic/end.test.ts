import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fleet, type Replica } from '../../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../../support/servers/both-of-suite.ts'
import { until } from '../../support/until.ts'
import { assertWhole, Orders, settle, shown } from './accounts.ts'

const NAME = 'two replicas, one of which is told to end'

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let a: Replica
  let b: Replica

  test('boot', async () => {
    fleet = await Fleet.start(owner, { postgres, redis })
    ;[a, b] = await Promise.all([fleet.replica('a'), fleet.replica('b')])
  })

  test('one that is told to end under load puts down what it has in hand: nothing is lost and nothing waits', async (t) => {
    const replicas = [a, b]
    // Each is in hand for a while, and the usual time until others claim is a minute.
    const orders = new Orders(t, replicas, { payload: { ms: 150 } })
    await orders.until(60)
    replicas.splice(1)
    const stopping = b.stop()
    await orders.until(orders.acknowledged + 60)
    assert.equal(await stopping, 0)
    await orders.stop()
    const startedMs = performance.now()
    const account = await settle(fleet, orders, 20_000)
    t.diagnostic(`${shown(account)}; settled in ${Math.round(performance.now() - startedMs)} ms`)
    assertWhole(account)
    assert.equal(account.repeated.size, 0)
    assert.ok(account.shares.get('b')! > 0)
  })

  test('what is still in hand when the time to drain is over goes to the other one at once', async (t) => {
    await fleet.sql('TRUNCATE fleet_orders, fleet_seen')
    const c = await fleet.replica('c', { env: { SHUTDOWN_TIMEOUT_MS: '300' } })
    const orders = new Orders(t, [c], { payload: { ms: 1000 } })
    const begun = async () => (await fleet.seen('order.taken', 'begins')).filter(({ replica }) => replica === 'c')
    await until(async () => (await begun()).length >= 5, 'some are in its hand')
    await orders.stop()
    assert.equal(await c.stop(), 0)
    const startedMs = performance.now()
    const account = await settle(fleet, orders)
    const tookMs = Math.round(performance.now() - startedMs)
    t.diagnostic(`${shown(account)}; settled in ${tookMs} ms`)
    assertWhole(account)
    // A minute is what others wait for one that says nothing.
    assert.ok(tookMs < 30_000)
  })
})
