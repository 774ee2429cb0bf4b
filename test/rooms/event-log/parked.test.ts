import assert from 'node:assert/strict'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, STORES } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const FOLLOWERS = 5

const shipped = (heddle: Heddle, name = 'shipping') => heddle.logs.filter(({ msg }) => msg === name).map(({ id }) => id)

async function publish(heddle: Heddle, ids: readonly string[], key = 'van 1'): Promise<void> {
  for (const id of ids) await post(heddle, '/events', { event: 'order.shipped', payload: { id }, options: { key } })
}

const letterOf = (heddle: Heddle) =>
  until(async () => (await heddle.json('/dead-letters')).body.letters[0], 'the dead letter')

const named = (prefix: string) => Array.from({ length: FOLLOWERS }, (_, n) => `${prefix} ${n}`)

for (const [name, storeOf] of STORES) {
  const testOn = testWith(storeOf)
  testOn(
    `a parked key and what waits for it outlive the process, and go on in their order (${name})`,
    async (store) => {
      const { start, rows } = store
      const first = await start({ ...DATABASE, HOLD: 'fail shipping' })
      await publish(first, ['bad', ...named('first')])
      const letter = await letterOf(first)
      assert.equal(letter.parked, true)
      await until(() => shipped(first, 'shipping-too').length === FOLLOWERS + 1, 'the other subscriber')
      assert.deepEqual(shipped(first), ['bad'])
      await kill(first)

      const second = await start({ ...DATABASE, HOLD: 'wait shipping' })
      await publish(second, named('second'))
      await until(() => named('second').every((id) => shipped(second, 'shipping-too').includes(id)), 'the others')
      assert.deepEqual(shipped(second), [], 'they wait in this process, too')
      assert.equal((await post(second, `/dead-letters/${letter.id}/replay`)).done, true)
      await until(() => shipped(second).length === 1, 'the replay')
      await kill(second)

      const third = await start({ ...DATABASE, HOLD: 'fail shipping' })
      const again = await letterOf(third)
      assert.deepEqual([again.event_id, again.parked, again.id === letter.id], [letter.event_id, true, false])
      assert.deepEqual(shipped(third), ['bad'], 'the replay goes on, before what waits for it')
      await kill(third)

      const fourth = await start(DATABASE)
      // On a server it takes over what the third one has left, and new events do not wait for that.
      const isTakenOver = () => fourth.logs.some(({ msg }) => msg.includes('events that the ended process'))
      if (store.server !== null) await until(isTakenOver, 'the events of the third process')
      assert.equal((await post(fourth, `/dead-letters/${again.id}/replay`)).done, true)
      await publish(fourth, named('third'))
      const expected = ['bad', ...named('first'), ...named('second'), ...named('third')]
      await until(() => shipped(fourth).length >= expected.length, 'all handled')
      assert.deepEqual(shipped(fourth), expected)
      await isEmpty(store)
      const [replayed] = await rows<{ replay: string; payload: string }>(
        `SELECT replay, payload FROM heddle_dead WHERE id = '${again.id}'`,
      )
      assert.deepEqual(replayed, { replay: 'done', payload: '' })
      assert.equal(await fourth.stop(), 0)
    },
  )

  testOn(
    `what waits for a dead letter takes half of the log at most, and leaves the rest to the others (${name})`,
    async (store) => {
      const heddle = await store.start({ ...DATABASE, HOLD: 'fail shipping', EVENT_BUS_MAX_STORED: '20' })
      const followers = Array.from({ length: 10 }, (_, n) => `order ${n}`)
      await publish(heddle, ['bad', ...followers])
      const letter = await letterOf(heddle)
      await until(() => shipped(heddle, 'shipping-too').length === 11, 'the other subscriber has all')
      const more = { event: 'order.shipped', payload: { id: 'more' }, options: { key: 'van 1' } }
      const [blocked] = (await heddle.json('/dead-letters?parked=true')).body.letters
      assert.deepEqual([blocked.id, blocked.key, blocked.waiting], [letter.id, 'van 1', 10])
      const refusal = async () => (await post(heddle, '/events', more)).error
      await until(async () => /^10 events wait behind dead letters/.test((await refusal()) ?? ''), 'a refusal')
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
    assert.match(refused[0]!.error!, /^1\d events wait behind dead letters, or as such/)
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

  testOn(`what waits for a dead letter waits in the log, beyond what the hub holds (${name})`, async (store) => {
    const { start } = store
    const heddle = await start({ ...DATABASE, HOLD: 'fail shipping', EVENT_BUS_MAX_QUEUE: '20' })
    const followers = Array.from({ length: 60 }, (_, n) => `order ${n}`)
    await publish(heddle, ['bad', ...followers])
    const letter = await letterOf(heddle)
    await until(() => shipped(heddle, 'shipping-too').length === 61, 'the other subscriber has all')
    const answer = await heddle.json(`/dead-letters/${letter.id}`, { method: 'DELETE' })
    assert.equal(answer.body.done, true)
    await until(() => shipped(heddle).length === 61, 'all handled')
    assert.deepEqual(shipped(heddle), ['bad', ...followers])
    await isEmpty(store)
  })
}
