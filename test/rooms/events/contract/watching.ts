import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { LANES, post } from './driving.ts'

/** What listeners and the history tell. */
export async function busIsWatched(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test("a lane's listener hears its own events at once, others' soon, and each once", async () => {
    const published: string[] = []
    for (let n = 0; n < 12; n++) {
      const { id, atOnce } = await post(heddle, '/publish-heard')
      assert.equal(atOnce, 1)
      published.push(id)
    }
    published.push((await post(heddle, '/primary/publish', { event: 'heard', payload: {} })).id)
    const lastMs = Date.now()
    const perThread = new Map<number, string[]>()
    await until(async () => {
      // At once, and each for a while: so that every lane gets one.
      const answers = await Promise.all(Array.from({ length: LANES }, () => heddle.json('/heard')))
      for (const { body } of answers) perThread.set(body.thread, body.ids)
      return perThread.size === LANES && [...perThread.values()].every((list) => list.length >= published.length)
    }, 'all lanes have heard all')
    assert.ok(Date.now() - lastMs < 1000, 'soon')
    for (const ids of perThread.values()) assert.deepEqual([...ids].sort(), [...published].sort())
  })

  await t.test('the history and the topology tell names, never values', async () => {
    const { records } = (await heddle.json('/history')).body
    assert.ok(records.length <= 500)
    assert.doesNotMatch(JSON.stringify(records), /"s"/)
    const record = records.find(({ event }: { event: string }) => event === 'wide')
    assert.ok(record === undefined || record.payload_keys[0] === 'tag')
    const { topology } = (await heddle.json('/topology')).body
    assert.deepEqual(topology.grouped, {
      emitters: ['bus.Drive'],
      subscribers: topology.grouped.subscribers,
      fire_count: 20,
    })
    assert.deepEqual([...topology.grouped.subscribers].sort(), ['bus.Watch', 'bus.WatchToo'])
  })
}
