import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { startHeddle } from '../support/heddle.ts'
import { allUp, boxesOf, deathsIn, lanesOf } from './deadly.ts'

const DOMAINS = ['../fixtures/leaky', '../../domains'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
const MEMORY_MB = 128
/** Many times what a lane may keep. */
const USED_MIB = 16 * MEMORY_MB

const LEAKS = [
  ['buffers', /^its buffers took more than 128 MiB$/],
  ['heap', /^its heap took more than 128 MiB$/],
] as const

for (const [what, message] of LEAKS) {
  test(`memory that is kept over many turns (${what}) ends its lane, and no other`, { timeout: 120_000 }, async (t) => {
    const heddle = await startHeddle(t, { domains: DOMAINS, env: { LANE_MEMORY_MB: String(MEMORY_MB) } })
    const before = await lanesOf(heddle)
    const answer = await heddle.json(`/use/${what}?mib=${USED_MIB}`)
    assert.equal(answer.status, 500)
    await allUp(heddle)
    const [box, ...others] = await boxesOf(heddle)
    assert.deepEqual(others, [])
    assert.equal(box!.reason, 'memory')
    assert.match(box!.message, message)
    assert.deepEqual([box!.guilty?.plugin, box!.guilty?.handler], ['leaks.LeakMemory', 'GET /use/:what'])
    const after = await lanesOf(heddle)
    const isSame = ({ index, started_at, restarts }: LaneInfo) =>
      restarts === 0 && started_at === before.find((lane) => lane.index === index)!.started_at
    assert.deepEqual(after.map(isSame).sort(), [false, true])
    assert.equal((await heddle.json('/calm')).status, 200)
    assert.equal(await heddle.stop(), 0)
  })
}

test('as much memory that is not kept ends no lane', { timeout: 120_000 }, async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, env: { LANE_MEMORY_MB: String(MEMORY_MB) } })
  for (const piece of [1, 32]) {
    const path = `/use/short-lived?mib=${USED_MIB}&piece_mib=${piece}`
    for (let n = 0; n < 3; n++) assert.equal((await heddle.json(path)).status, 200, `pieces of ${piece} MiB`)
  }
  assert.deepEqual(deathsIn(heddle), [])
  assert.equal(await heddle.stop(), 0)
})
