import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { deathsIn, publish, startDeadly } from './deadly.ts'

test('suspects are tried one at a time', { timeout: 120_000 }, async (t) => {
  const heddle = await startDeadly(t, { lanes: 1 })
  // So long that none has ended when the lane is given up, on a busy machine too. One that turns would finish them.
  const ids = await Promise.all(Array.from({ length: 6 }, () => publish(heddle, 'peace.asked', { ms: 2500 })))
  const lines = (msg: string) => heddle.logs.filter((line) => line.msg === msg)
  await until(() => lines('peace begins').length === 6, 'all at once')
  await heddle.json('/harm/native')
  await until(() => lines('peace ends').length === 6, 'all of them', 60_000)
  const story = heddle.logs.filter(({ msg }) => /^peace (?:begins|ends)$/.test(msg)).slice(6)
  assert.deepEqual(
    story.map(({ msg }) => msg),
    ids.flatMap(() => ['peace begins', 'peace ends']),
  )
  assert.equal(deathsIn(heddle).length, 1)
  assert.deepEqual((await heddle.json('/system/dead-letters')).body, [])
  assert.equal(await heddle.stop(), 0)
})
