import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { startHeddle } from '../support/heddle.ts'
import { boxesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

/** Short enough for a lane that has to share its core with so many. */
const STALL_MS = 150

test('a lane that has no core is starved, not stuck: it is not replaced, and nobody is blamed', {
  timeout: 120_000,
}, async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS) } })
  const before = await heddle.json('/system/lanes')
  assert.equal((await heddle.fetch(`/starve?threads=${24 * availableParallelism()}&ms=4000`)).status, 200)
  const endMs = performance.now() + 5000
  let longestMs = 0
  while (performance.now() < endMs) {
    const sentMs = performance.now()
    await heddle.fetch('/good').then((response) => response.arrayBuffer())
    longestMs = Math.max(longestMs, performance.now() - sentMs)
  }
  t.diagnostic(`an innocent request took ${Math.round(longestMs)} ms at most`)
  assert.ok(longestMs > STALL_MS, 'the lanes have stood still for longer than is allowed')
  assert.deepEqual(await boxesOf(heddle), [])
  const started = (lanes: { started_at: string }[]) => lanes.map(({ started_at }) => started_at)
  assert.deepEqual(started((await heddle.json('/system/lanes')).body), started(before.body))
})
