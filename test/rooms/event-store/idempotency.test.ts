import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { type Answer, doneSince, isReplay, ordersOf, send } from './keyed-requests.ts'
import { starterOn } from './lasting-database.ts'

describeOnDatabases('requests with an Idempotency-Key', (database) => {
  /** Of all tests that need no process of their own: each has its keys. */
  const shared = shareService(async (owner) => (await starterOn(owner, database)).start())

  test('what one user has sent is not what another gets', async () => {
    const heddle = shared()
    const mine = { key: 'mine', path: '/orders/mine' }
    const first = await send(heddle, { item: 'a' }, { ...mine, token: 'u1-first' })
    isReplay(await send(heddle, { item: 'a' }, { ...mine, token: 'u1-later' }), first)
    const guests = ['guest-1', 'guest-2', 'u2']
    const others = await Promise.all(guests.map((token) => send(heddle, { item: 'a' }, { ...mine, token })))
    assert.equal(new Set([first, ...others].map(({ body }) => body)).size, 4)
    assert.equal((await send(heddle, { item: 'a' }, mine)).status, 401)
  })

  test('keys that are missing or malformed are refused', async () => {
    const heddle = shared()
    const path = '/orders/required'
    assert.equal((await send(heddle, { item: 'a' }, { path })).status, 400)
    for (const key of ['', 'a b', 'ü', 'k'.repeat(256)]) {
      for (const route of [path, '/orders']) {
        assert.equal((await send(heddle, { item: 'a' }, { path: route, key })).status, 400, JSON.stringify(key))
      }
    }
    assert.equal((await send(heddle, { item: 'a' }, { path, key: `"${'k'.repeat(253)}"` })).status, 201)
  })

  test('while a request runs its repetition is told to wait, and then gets the answer', async () => {
    const heddle = shared()
    const done = await doneSince(heddle)
    const running = send(heddle, { item: 'a', wait: true }, { key: 'running' })
    await until(async () => (await done()).runs === 1, 'the handler')
    const meanwhile = await send(heddle, { item: 'a', wait: true }, { key: 'running' })
    assert.deepEqual([meanwhile.status, meanwhile.headers['retry-after']], [409, '1'])
    assert.equal((await send(heddle, { item: 'b' }, { key: 'running' })).status, 422)
    await send(heddle, {}, { path: '/gate' })
    const first = await running
    isReplay(await send(heddle, { item: 'a', wait: true }, { key: 'running' }), first)
    assert.equal((await done()).runs, 1)
  })

  test('many at a time run once', async (t) => {
    const { start } = await starterOn(t, database, 2)
    const heddle = await start()
    const answers = await Promise.all(Array.from({ length: 12 }, () => send(heddle, { item: 'a' }, { key: 'k' })))
    const ran = answers.filter(({ status, headers }) => status === 201 && headers['idempotency-replayed'] === undefined)
    assert.equal(ran.length, 1)
    for (const answer of answers) {
      if (answer.status === 201 && answer !== ran[0]) isReplay(answer, ran[0]!)
      else if (answer !== ran[0]) assert.equal(answer.status, 409)
    }
    assert.equal((await ordersOf(heddle)).orders.length, 1)
  })

  test('every kind of answer below 500 is stored, and no other', async () => {
    const heddle = shared()
    const done = await doneSince(heddle)
    const path = '/orders/odd'
    const twice = async (how: string): Promise<Answer[]> => [
      await send(heddle, { how, item: how }, { path, key: how.replace(' ', '-') }),
      await send(heddle, { how, item: how }, { path, key: how.replace(' ', '-') }),
    ]
    const itemsOf = async (item: string) => (await done()).orders.filter((order) => order.item === item).length

    const [refused, refusedAgain] = await twice('refuse')
    assert.equal(refused!.status, 400)
    isReplay(refusedAgain!, refused!)

    for (const { status, headers } of await twice('later')) {
      assert.deepEqual([status, headers['idempotency-replayed']], [429, undefined])
    }

    const [bytes, bytesAgain] = await twice('bytes')
    assert.deepEqual([bytes!.body, bytes!.headers['content-type']], ['\x00\xff\n', 'application/x-odd'])
    isReplay(bytesAgain!, bytes!)

    // The effects decide: what is sent is what is stored with them.
    const [otherwise, otherwiseAgain] = await twice('otherwise')
    assert.equal(otherwise!.status, 201)
    isReplay(otherwiseAgain!, otherwise!)
    assert.equal(heddle.logs.filter(({ msg }) => msg.startsWith('A handler answers otherwise')).length, 1)

    for (const how of ['fail', 'unavailable', 'broken']) {
      for (const { status, headers } of await twice(how)) {
        assert.deepEqual([status, headers['idempotency-replayed']], [500, undefined], how)
      }
      assert.equal(await itemsOf(how), 0)
    }
    for (const how of ['fail after', 'twice']) {
      const [failed, stored] = await twice(how)
      assert.deepEqual([failed!.status, stored!.status], [500, 201], how)
      assert.equal(await itemsOf(how), 1, how)
    }
  })

  if (database.name === 'PostgreSQL') {
    test('the key of a request in another replica is free when its time is up, and it cannot commit any more', async (t) => {
      const { start } = await starterOn(t, database)
      const [one, two] = await Promise.all([start({ REPLICA_ID: 'one' }), start({ REPLICA_ID: 'two' })])
      await send(two, {}, { path: '/gate' })
      let tries = 0
      // On a busy machine its time may be up before the other one asks.
      const { hasty, order } = await until(async () => {
        const hasty = { path: '/orders/hasty', key: `k${++tries}` }
        const order = { item: hasty.key, wait: true }
        assert.equal((await send(one, order, hasty)).status, 504)
        return (await send(two, order, hasty)).status === 409 ? { hasty, order } : undefined
      }, 'a key that is held')
      let taken: Answer | undefined
      await until(async () => {
        taken = await send(two, order, hasty)
        // Its own time may be up, too, on a slow machine: then the next one gets its answer.
        return taken.status !== 409 && taken.status !== 504
      }, 'the key')
      assert.equal(taken!.status, 201)
      // The first one goes on only now.
      await send(one, {}, { path: '/gate' })
      // Of some the time may have been up before their handlers began.
      const haveEnded = async () => {
        const { runs, refused } = await ordersOf(one)
        return runs > 0 && refused === runs
      }
      await until(haveEnded, 'the end of the first one')
      assert.equal((await send(one, order, hasty)).body, taken!.body)
      assert.equal((await ordersOf(one)).orders.filter(({ item }) => item === hasty.key).length, 1)
    })

    test('a transaction that the database runs again stores the answer of its last run', async () => {
      const heddle = shared()
      const done = await doneSince(heddle)
      const { 'x-order': rival } = (await send(heddle, { item: 'a' }, {})).headers
      for (const key of [undefined, 'rival']) {
        const sent = key === undefined ? {} : { key }
        const answer = await send(heddle, { item: `with ${key}`, rival }, sent)
        const { id, runs } = JSON.parse(answer.body)
        assert.deepEqual([answer.status, runs, answer.headers['x-order']], [201, 2, id])
        assert.equal(answer.headers['set-cookie']!.split('order=').length, 2)
        if (key !== undefined) isReplay(await send(heddle, { item: `with ${key}`, rival }, sent), answer)
      }
      const { orders } = await done()
      assert.deepEqual(orders.map(({ item }) => item).sort(), ['changed', 'with rival', 'with undefined'])
    })
  }

  test('an answer is kept for its time', async () => {
    const heddle = shared()
    const brief = { key: 'brief', path: '/orders/brief' }
    const first = await send(heddle, { item: 'a' }, brief)
    await until(async () => (await send(heddle, { item: 'a' }, brief)).body !== first.body, 'an answer of its own')
    assert.equal((await send(heddle, { item: 'b' }, { ...brief, key: 'brief-2' })).status, 201)
  })

  test('the key of a request whose lane has died is free again', async (t) => {
    const { start } = await starterOn(t, database)
    const heddle = await start()
    const odd = { path: '/orders/odd', key: 'k' }
    assert.equal((await send(heddle, { how: 'crash', item: 'a' }, odd)).status, 500)
    let again: Answer | undefined
    await until(async () => {
      again = await send(heddle, { how: 'crash', item: 'a' }, odd)
      return again.status !== 503
    }, 'the next lane')
    assert.equal(again!.status, 201)
  })
})
