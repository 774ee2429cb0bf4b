import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import type { Heddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { deathOf, starterOn } from './lasting-database.ts'

interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

interface Sent {
  key?: string
  path?: string
  method?: string
  token?: string
}

async function send(heddle: Heddle, body: object, { key, path = '/orders', method = 'POST', token }: Sent) {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (key !== undefined) headers['idempotency-key'] = key
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  const response = await heddle.fetch(path, { method, headers, body: JSON.stringify(body) })
  const answer: Answer = {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: Buffer.from(await response.arrayBuffer()).toString('latin1'),
  }
  return answer
}

/** What a client may rely on to be the same. */
function lasting({ status, headers, body }: Answer) {
  const { date, 'x-request-id': id, 'idempotency-replayed': replayed, ...same } = headers
  return { status, headers: same, body }
}

function isReplay(again: Answer, first: Answer): void {
  assert.equal(again.headers['idempotency-replayed'], 'true')
  assert.deepEqual(lasting(again), lasting(first))
}

interface Done {
  orders: { id: string; item: string }[]
  runs: number
  refused: number
}

const ordersOf = async (heddle: Heddle): Promise<Done> => (await heddle.json('/orders')).body

/** @returns tells what has come since now */
async function doneSince(heddle: Heddle): Promise<() => Promise<Done>> {
  const before = await ordersOf(heddle)
  const known = new Set(before.orders.map(({ id }) => id))
  return async () => {
    const { orders, runs, refused } = await ordersOf(heddle)
    return {
      orders: orders.filter(({ id }) => !known.has(id)),
      runs: runs - before.runs,
      refused: refused - before.refused,
    }
  }
}

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
      const hasty = { path: '/orders/hasty', key: 'k' }
      const order = { item: 'a', wait: true }
      assert.equal((await send(one, order, hasty)).status, 504)
      await send(two, {}, { path: '/gate' })
      assert.equal((await send(two, order, hasty)).status, 409)
      let taken: Answer | undefined
      await until(async () => {
        taken = await send(two, order, hasty)
        // Its own time may be up, too, on a slow machine: then the next one gets its answer.
        return taken.status !== 409 && taken.status !== 504
      }, 'the key')
      assert.equal(taken!.status, 201)
      // The first one goes on only now.
      await send(one, {}, { path: '/gate' })
      await until(async () => (await ordersOf(one)).refused === 1, 'the end of the first one')
      assert.equal((await send(one, order, hasty)).body, taken!.body)
      assert.equal((await ordersOf(one)).orders.length, 1)
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
