import assert from 'node:assert/strict'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, STORES } from './databases.ts'

for (const [name, storeOf] of STORES) {
  const testOn = testWith(storeOf)
  for (const driver of ['in_process', 'database']) {
    testOn(
      `what a transaction has published outlives the process, under its id (${name}, ${driver})`,
      async (store) => {
        const { start } = store
        const first = await start({ EVENT_BUS_DRIVER: driver, HOLD: 'wait' })
        const ids = new Map<string, string>()
        for (const id of ['a', 'b', 'c']) ids.set(id, (await post(first, '/orders', { id })).id)
        await kill(first)
        const second = await start({ EVENT_BUS_DRIVER: driver })
        await until(async () => (await handledBy(second)).length === 6, 'all orders handled')
        const handled = await handledBy(second)
        for (const [id, eventId] of ids) {
          assert.equal(handled.find(({ order_id }) => order_id === id)?.event_id, eventId)
          assert.equal(handled.find(({ order_id }) => order_id === `${id} after`)?.parent, eventId)
        }
        await isEmpty(store)
        assert.equal(await second.stop(), 0)
      },
    )
  }

  testOn(`a transaction that is rolled back has published nothing (${name})`, async (store) => {
    const { start } = store
    const heddle = await start()
    assert.equal((await post(heddle, '/orders', { id: 'a', fail: true })).success, false)
    await post(heddle, '/orders', { id: 'b' })
    await until(async () => (await handledBy(heddle)).length === 2, 'the other order handled')
    assert.deepEqual(
      (await handledBy(heddle)).map(({ order_id }) => order_id),
      ['b', 'b after'],
    )
    await isEmpty(store)
  })

  testOn(`an event of which the subscriber is not there any more waits in the log (${name})`, async (store) => {
    const { start, rows } = store
    const first = await start({ EVENT_BUS_DRIVER: 'database', HOLD: 'wait' })
    await post(first, '/orders', { id: 'a' })
    await kill(first)
    const second = await start({ EVENT_BUS_DRIVER: 'database', HOLD: 'nobody' })
    await until(
      () => second.logs.some(({ msg }) => msg.startsWith('shop.TakeOrders.onTaken is not here: 1 ')),
      'a warning',
    )
    assert.equal(await second.stop(), 0)
    assert.equal((await rows('SELECT seq FROM heddle_event')).length, 1)
    const third = await start({ EVENT_BUS_DRIVER: 'database' })
    await until(async () => (await handledBy(third)).length === 2, 'the order handled')
    await isEmpty(store)
  })
}
