import assert from 'node:assert/strict'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, STORES } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }

const shipped = (heddle: Heddle, name = 'shipping') => heddle.logs.filter(({ msg }) => msg === name).map(({ id }) => id)

async function publish(heddle: Heddle, ids: readonly string[], key = 'van 1'): Promise<void> {
  for (const id of ids) {
    const event = { event: 'order.shipped', payload: { id }, options: { key } }
    await until(async () => (await post(heddle, '/events', event)).error === undefined, `${id} is taken`)
  }
}

/** While the store is three quarters full, requests are refused. */
const letterOf = (heddle: Heddle, query = '') =>
  until(async () => (await heddle.json(`/dead-letters${query}`)).body.letters?.[0], 'the dead letter')

for (const [name, storeOf] of STORES) {
  const testOn = testWith(storeOf)
  testOn(
    `what waits for a dead letter takes half of the log at most, and leaves the rest to the others (${name})`,
    async (store) => {
      const heddle = await store.start({ ...DATABASE, HOLD: 'fail shipping', EVENT_BUS_MAX_STORED: '20' })
      const followers = Array.from({ length: 10 }, (_, n) => `order ${n}`)
      await publish(heddle, ['bad', ...followers])
      const letter = await letterOf(heddle)
      await until(() => shipped(heddle, 'shipping-too').length === 11, 'the other subscriber has all')
      const more = { event: 'order.shipped', payload: { id: 'more' }, options: { key: 'van 1' } }
      const blocked = await letterOf(heddle, '?parked=true')
      assert.deepEqual([blocked.id, blocked.key, blocked.waiting], [letter.id, 'van 1', 10])
      const refusal = async () => (await post(heddle, '/events', more)).error
      await until(async () => /^1\d events wait behind dead letters/.test((await refusal()) ?? ''), 'a refusal')
      await post(heddle, '/orders', { id: 'without a key' })
      await until(async () => (await handledBy(heddle)).length === 2, 'an event without a key')
      await heddle.json(`/dead-letters/${letter.id}`, { method: 'DELETE' })
      await until(() => shipped(heddle).length >= 11, 'they go on')
      await until(async () => (await refusal()) === undefined, 'room')
      await isEmpty(store)
    },
  )

  testOn(`letters that hold up keys have a bound, and are listed by their keys (${name})`, async (store) => {
    const heddle = await store.start({ ...DATABASE, HOLD: 'fail shipping', EVENT_BUS_MAX_STORED: '20' })
    const answers: { error?: string }[] = []
    for (let n = 0; n < 30; n++) {
      const options = { key: `van ${n}` }
      answers.push(await post(heddle, '/events', { event: 'order.shipped', payload: { id: 'bad' }, options }))
      const isLetter = async () => (await heddle.json('/dead-letters')).body.letters.length > n
      if (answers[n]!.error === undefined) await until(isLetter, 'the letter')
    }
    const refused = answers.filter(({ error }) => error !== undefined)
    assert.ok(refused.length >= 19, `${refused.length} refused`)
    assert.match(refused[0]!.error!, /^1\d events wait behind dead letters, dead letters included/)
    const { letters } = (await heddle.json('/dead-letters?parked=true')).body
    assert.deepEqual(
      letters.map(({ key, waiting }: { key: string; waiting: number }) => [key, waiting]),
      Array.from({ length: 30 - refused.length }, (_, n) => [`van ${n}`, 0]),
    )
    assert.deepEqual((await heddle.json('/dead-letters?parked=false')).body.letters, [])
    for (const { id } of letters) await heddle.json(`/dead-letters/${id}`, { method: 'DELETE' })
    const more = { event: 'order.shipped', payload: { id: 'good' }, options: { key: 'van 1' } }
    await until(async () => (await post(heddle, '/events', more)).error === undefined, 'room')
  })
}
