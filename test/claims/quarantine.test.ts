import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { boxesOf, deathsIn, lanesOf, publish, startDeadly } from '../rooms/lanes/deadly.ts'
import { until } from '../support/until.ts'

test('poison kills three lanes and no more; its neighbours are handled, and none is taken for it', async (t) => {
  const heddle = await startDeadly(t)
  const innocents = await Promise.all(Array.from({ length: 12 }, () => publish(heddle, 'peace.asked', { ms: 300 })))
  const begun = () => heddle.logs.filter(({ msg }) => msg === 'peace begins')
  await until(() => begun().length >= 12, 'the neighbours at work')
  const poison = await publish(heddle, 'harm.asked', { way: 'exit' })
  const { body } = await until(
    async () => {
      const letters = await heddle.json('/system/dead-letters')
      return letters.body.length > 0 ? letters : undefined
    },
    'the dead letter',
    60_000,
  )
  assert.equal(deathsIn(heddle).length, 3)

  const [letter, ...others] = body
  assert.deepEqual(others, [])
  assert.equal(letter.event_id, poison)
  assert.match(
    letter.error,
    /died 3 times while it handled this event: process\.exit\(3\) was called \(.*do-harm\.ts:\d+:\d+\)/,
  )
  assert.equal(letter.black_box.guilty.plugin, 'harm.DoHarm')
  assert.deepEqual(letter.black_box.steps, [])
  assert.deepEqual(letter.payload_keys, ['way'])

  // The first death had company; from then on it was alone, in the quarantine lane.
  const [last, second] = await boxesOf(heddle)
  for (const box of [last!, second!]) {
    assert.equal(box.lane, 2)
    assert.deepEqual(
      box.in_flight.map(({ id }) => id),
      [poison],
    )
  }
  await until(() => {
    const ended = new Set(heddle.logs.filter(({ msg }) => msg === 'peace ends').map(({ event }) => event))
    return innocents.every((id) => ended.has(id))
  }, 'all neighbours')
  const quarantine = (await lanesOf(heddle)).find(({ role }: LaneInfo) => role === 'quarantine')
  assert.equal(quarantine?.index, 2)
  const status = (await heddle.json('/system/status')).body
  assert.deepEqual(
    status.lanes,
    { starting: 0, ready: 2, draining: 0, dead: 0 },
    'the quarantine lane is none of the two',
  )
  await until(async () => (await lanesOf(heddle))[2]?.state === 'idle', 'the quarantine lane leaves', 30_000)
  assert.equal(await heddle.stop(), 0)
})
