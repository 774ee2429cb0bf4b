import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertWhole, Orders, settle, shown } from '../rooms/elastic/accounts.ts'
import { Fleet, type Replica } from '../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../support/servers/both-of-suite.ts'
import { until } from '../support/until.ts'

const NAME = 'a replica that is killed'
const CLAIM_IDLE_MS = 1000

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let a: Replica
  let b: Replica

  test('boot', async () => {
    fleet = await Fleet.start(owner, {
      postgres,
      redis,
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(CLAIM_IDLE_MS) },
    })
    ;[a, b] = await Promise.all([fleet.replica('a', { lanes: 2 }), fleet.replica('b')])
  })

  test('kill -9 under load loses nothing: the survivor takes over what the dead one had in hand', async (t) => {
    const replicas = [a, b]
    const orders = new Orders(t, replicas, { payload: { ms: 400 } })
    const inHandOfB = async (): Promise<number> => {
      const [stream, group] = ['heddle:event:order.taken', 'fleet.ShipOrders.ship']
      return (await fleet.redis.xpending(stream, group, '-', '+', 1000, 'b:hub')).length
    }
    await orders.until(100)
    // Asked before: the survivor takes it over as soon as it sees that the process is gone.
    let left = 0
    await until(async () => {
      left = await inHandOfB()
      return left >= 5
    }, 'it has something in hand')
    await b.kill()
    replicas.splice(1)
    await orders.until(orders.acknowledged + 100)
    await orders.stop()
    const account = await settle(fleet, orders)
    t.diagnostic(`${left} were in its hand; ${shown(account)}`)
    assertWhole(account)
    assert.equal(account.deadLetters, 0)
  })
})
