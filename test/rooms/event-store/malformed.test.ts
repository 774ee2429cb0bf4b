import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, STORES } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }

const lettersOf = async (heddle: Heddle): Promise<{ id: string; error: string; event_id: string }[]> =>
  (await heddle.json('/dead-letters')).body.letters

const told = (heddle: Heddle, table: string) =>
  heddle.logs.filter(({ msg }) => msg.startsWith(`A row of ${table} was quarantined`)).map(({ msg }) => msg)

/** What an event may be overwritten with, as SQL for its row. */
const OVERWRITTEN = ["envelope = '{'", "envelope = '[]'", "envelope = '[1,2,3,4,5,6]'", "key = 'van'", "key = '7'"]

for (const [name, storeOf] of STORES) {
  test(`rows that hold no event are dead letters, and all others of their page are delivered (${name})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const first = await store.start({ ...DATABASE, HOLD: 'wait' })
    const ids: string[] = []
    for (let n = 0; n < 20; n++) {
      const options = n % 3 === 0 ? { key: `van ${n}` } : {}
      ids.push((await post(first, '/events', { event: 'order.taken', payload: { id: `${n}` }, options })).id)
    }
    await kill(first)
    for (const [n, change] of OVERWRITTEN.entries())
      await store.rows(`UPDATE heddle_delivery SET ${change} WHERE event_id = '${ids[n * 3]}'`)
    const second = await store.start(DATABASE)
    // Each with the event of its own that its subscriber publishes.
    await until(async () => (await handledBy(second)).length === 2 * (ids.length - OVERWRITTEN.length), 'all others')
    await until(async () => (await lettersOf(second)).length >= OVERWRITTEN.length, 'the dead letters')
    const letters = await lettersOf(second)
    assert.deepEqual(letters.map(({ event_id }) => event_id).sort(), OVERWRITTEN.map((_, n) => ids[n * 3]!).sort())
    for (const { error } of letters) assert.match(error, /^It is no event, and nobody got it: its (envelope|key) is/)
    assert.equal(told(second, 'heddle_delivery').length, OVERWRITTEN.length)
    await isEmpty(store)
    for (const { id } of letters) await second.json(`/dead-letters/${id}`, { method: 'DELETE' })
    assert.deepEqual(await lettersOf(second), [])
  })

  test(`a letter that is none keeps no log from opening, and is listed among the others (${name})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const first = await store.start({ ...DATABASE, HOLD: 'fail shipping' })
    for (const key of ['a', 'b', 'c'])
      await post(first, '/events', { event: 'order.shipped', payload: { id: 'bad' }, options: { key } })
    await until(async () => (await lettersOf(first)).length === 3, 'the letters')
    const [a, b, c] = (await lettersOf(first)).map(({ id }) => id)
    await kill(first)
    await store.rows(`UPDATE heddle_dead SET key = 'a' WHERE id = '${a}'`)
    await store.rows(`UPDATE heddle_dead SET envelope = 'none' WHERE id = '${b}'`)
    const second = await store.start(DATABASE)
    assert.deepEqual(
      (await lettersOf(second)).map(({ id }) => id),
      [a, b, c],
    )
    // Blocked keys have a table of their own.
    assert.equal(told(second, 'heddle_dead').length, 0)
    assert.match((await lettersOf(second))[1]!.error, /its row in heddle_dead holds no event: its envelope is invalid/)
    assert.deepEqual((await post(second, `/dead-letters/${b}/replay`)).done, false)
    for (const id of [a, b]) {
      const { body } = await second.json(`/dead-letters/${id}`, { method: 'DELETE' })
      assert.equal(body.done, true)
    }
    assert.equal((await post(second, `/dead-letters/${c}/replay`)).done, true)
    await isEmpty(store)
  })
}
