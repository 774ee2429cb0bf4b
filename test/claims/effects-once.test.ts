import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDoneOnce } from '../rooms/event-store/inbox.ts'
import { doneSince, isReplay, ordersOf, send } from '../rooms/event-store/keyed-requests.ts'
import { deathOf, starterOn } from '../rooms/event-store/lasting-database.ts'
import { describeOnDatabases } from '../support/databases.ts'
import { shareService } from '../support/shared-service.ts'

describeOnDatabases('requests with an Idempotency-Key', (database) => {
  /** Of all tests that need no process of their own: each has its keys. */
  const shared = shareService(async (owner) => (await starterOn(owner, database)).start())

  test('a repetition gets the stored answer, and other requests do not', async () => {
    const heddle = shared()
    const done = await doneSince(heddle)
    const first = await send(heddle, { item: 'a' }, { key: 'again' })
    assert.equal(first.status, 201)
    assert.equal(first.headers['idempotency-replayed'], undefined)
    assert.match(first.headers['set-cookie']!, /^order=/)
    isReplay(await send(heddle, { item: 'a' }, { key: 'again' }), first)
    assert.equal((await done()).runs, 1)

    for (const [body, sent] of [
      [{ item: 'b' }, {}],
      [{ item: 'a' }, { path: '/orders?more=1' }],
    ] as const) {
      const other = await send(heddle, body, { key: 'again', ...sent })
      assert.deepEqual([other.status, JSON.parse(other.body).success], [422, false], other.body)
    }
    // Another route, and another key, are another operation.
    assert.equal((await send(heddle, { item: 'a' }, { key: 'again', path: '/orders/required' })).status, 201)
    assert.equal((await send(heddle, { item: 'a' }, { key: 'again-2' })).status, 201)
    const { id } = JSON.parse(first.body)
    const put = { key: 'again', method: 'PUT' }
    assert.equal((await send(heddle, { item: 'c' }, { ...put, path: `/orders/${id}` })).status, 200)
    assert.equal((await send(heddle, { item: 'c' }, { ...put, path: '/orders/other' })).status, 422)

    // Without a key each request is one of its own.
    const plain = [await send(heddle, { item: 'p' }, {}), await send(heddle, { item: 'p' }, {})]
    assert.notEqual(plain[0]!.body, plain[1]!.body)
    assert.deepEqual((await done()).orders.map(({ item }) => item).sort(), ['a', 'a', 'c', 'p', 'p'])
  })

  test('a process that dies after the commit has answered, one that dies before has not', async (t) => {
    const { start } = await starterOn(t, database)
    const env = { REPLICA_ID: 'one' }
    const first = await start({ ...env, DIE_AT: 'order.placed' })
    await assert.rejects(send(first, { item: 'a' }, { key: 'k' }))
    assert.equal(await deathOf(first), 'SIGKILL')

    const second = await start({ ...env, DIE_AT: 'order.begun' })
    const stored = await send(second, { item: 'a' }, { key: 'k' })
    const [order] = (await ordersOf(second)).orders
    assert.deepEqual([stored.status, stored.headers['x-order']], [201, order!.id])
    assert.deepEqual(JSON.parse(stored.body), { success: true, id: order!.id, runs: 1 })
    assert.equal(stored.headers['idempotency-replayed'], 'true')
    await assert.rejects(send(second, { item: 'b', begun: true }, { key: 'k2' }))
    assert.equal(await deathOf(second), 'SIGKILL')

    const third = await start(env)
    const taken = await send(third, { item: 'b', begun: true }, { key: 'k2' })
    assert.deepEqual([taken.status, taken.headers['idempotency-replayed']], [201, undefined])
    isReplay(await send(third, { item: 'a' }, { key: 'k' }), stored)
    assert.deepEqual((await ordersOf(third)).orders.map(({ item }) => item).sort(), ['a', 'b'])
  })
})

describeOnDatabases('transactional subscribers', (database) => {
  test('a process that dies after the commit has done it once', (t) => isDoneOnce(t, database, 'database'))
})
