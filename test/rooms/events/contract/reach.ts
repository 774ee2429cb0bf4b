import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { LANES, post, seen, seenOften, settled } from './driving.ts'

/** Who gets an event. */
export async function reachesSubscribers(t: TestContext, heddle: Heddle): Promise<void> {
  for (const from of ['/publish', '/primary/publish']) {
    await t.test(`an event reaches each subscriber once, whatever the number of lanes (${from})`, async () => {
      const tag = `once${from}`
      const ids = new Set<string>()
      for (let n = 0; n < 20; n++) ids.add((await post(heddle, from, { event: 'plain', payload: { tag, n } })).id)
      assert.equal(ids.size, 20)
      await seenOften(heddle, 'plain', tag, 60)
      await settled(heddle)
      const all = seen(heddle, 'plain', tag)
      for (const by of ['watch', 'watch-too', 'primary']) {
        assert.equal(all.filter((line) => line.by === by).length, 20, by)
      }
      for (const { event } of all.filter(({ by }) => by === 'watch')) {
        assert.ok(ids.has(event.id))
        assert.match(event.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        assert.equal(event.attempt, 1)
        assert.equal(event.event, 'plain')
        assert.equal(event.emitter, from === '/publish' ? 'bus.Drive' : 'bus.DrivePrimary')
      }
    })
  }

  await t.test('subscribers of one group share the events alike', async () => {
    for (let n = 0; n < 20; n++) await post(heddle, '/publish', { event: 'grouped', payload: { tag: 'g', n } })
    await seenOften(heddle, 'grouped', 'g', 20)
    await settled(heddle)
    const numbers = seen(heddle, 'grouped', 'g').map(({ n }) => n)
    assert.deepEqual(
      numbers.sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, n) => n),
    )
    // In each thread they take turns.
    const first = seen(heddle, 'grouped', 'g').filter(({ by }) => by === 'watch').length
    assert.ok(Math.abs(20 - 2 * first) <= LANES, `${first} of 20`)
  })

  await t.test('a broadcast reaches every lane', async () => {
    await post(heddle, '/publish', { event: 'wide', payload: { tag: 'w' } })
    await seenOften(heddle, 'wide', 'w', LANES)
    await settled(heddle)
    const threads = seen(heddle, 'wide', 'w').map(({ thread }) => thread)
    assert.equal(threads.length, LANES)
    assert.equal(new Set(threads).size, LANES)
  })

  await t.test('a subscription made after the boot works, and ends when it is left', async () => {
    const { thread } = await post(heddle, '/subscribe-later')
    await until(
      async () => (await heddle.json('/topology')).body.topology.later?.subscribers.length === 1,
      'the instance',
    )
    for (let n = 0; n < 5; n++) await post(heddle, '/publish', { event: 'later', payload: { tag: 'on', n } })
    await seenOften(heddle, 'later', 'on', 5)
    assert.deepEqual([...new Set(seen(heddle, 'later', 'on').map((line) => line.thread))], [thread])
    // The least loaded lane has each request: of so many at once some reach it.
    const leave = () => Promise.all(Array.from({ length: 2 * LANES }, () => post(heddle, '/unsubscribe-later')))
    await until(async () => (await leave()).some((answer) => answer.thread === thread), 'the lane that subscribed')
    await until(async () => (await heddle.json('/topology')).body.topology.later.subscribers.length === 0, 'nobody')
    await post(heddle, '/publish', { event: 'later', payload: { tag: 'off' } })
    await settled(heddle)
    assert.deepEqual(seen(heddle, 'later', 'off'), [])
  })
}
