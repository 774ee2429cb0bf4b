import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { startHeddle } from '../support/heddle.ts'
import { boxesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

/** Short enough for a lane that has to share its core with so many. */
const STALL_MS = 150

test('nobody is blamed for a lane that others leave no core', {
  timeout: 120_000,
}, async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS) } })
  await heddle.fetch(`/starve?threads=${24 * availableParallelism()}&ms=4000`)
  const endMs = performance.now() + 5000
  let longestMs = 0
  while (performance.now() < endMs) {
    const sentMs = performance.now()
    await heddle.fetch('/good').then((response) => response.arrayBuffer())
    longestMs = Math.max(longestMs, performance.now() - sentMs)
  }
  t.diagnostic(`an innocent request took ${Math.round(longestMs)} ms at most`)
  assert.ok(longestMs > STALL_MS, 'the lanes have stood still for longer than is allowed')
  // With so short a time a lane may wait for another starved thread, and count as stuck. Whoever was at work in it has not done that.
  const blamed = (await boxesOf(heddle)).filter(({ guilty }) => guilty?.handler?.includes('/good'))
  assert.deepEqual(blamed, [])
})
