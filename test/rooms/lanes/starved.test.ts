import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { boxesOf } from './deadly.ts'
import { NATIVE } from './native.ts'

const THREADS_PER_CORE = 24
const STALL_MS = 500

test('a lane that others leave no core is neither replaced nor blamed', async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 2, env: { LANE_STALL_MS: String(STALL_MS) } })
  await heddle.fetch(`/starve?threads=${THREADS_PER_CORE * availableParallelism()}&ms=${2 * STALL_MS}`)
  const endMs = performance.now() + 2 * STALL_MS + 1000
  let longestMs = 0
  while (performance.now() < endMs) {
    const sentMs = performance.now()
    const response = await heddle.fetch('/good')
    await response.arrayBuffer()
    assert.equal(response.status, 200)
    longestMs = Math.max(longestMs, performance.now() - sentMs)
  }
  t.diagnostic(`an innocent request took ${Math.round(longestMs)} ms at most`)
  assert.deepEqual(await boxesOf(heddle), [])
  const lanes: { restarts: number }[] = (await heddle.json('/system/lanes')).body
  assert.deepEqual(
    lanes.map(({ restarts }) => restarts),
    [0, 0],
  )
})

for (const way of ['spin-timer', 'wait']) {
  test(`a lane that stands still by ${way} is found among others that want the cores`, async (t) => {
    const heddle = await startHeddle(t, { domains: NATIVE, lanes: 2, env: { LANE_STALL_MS: '300' } })
    await heddle.fetch(`/starve?threads=${4 * availableParallelism()}&ms=60000`)
    void heddle.fetch(`/end/${way}`).catch(() => {})
    await until(async () => (await boxesOf(heddle)).length > 0, 'it is found', 60_000)
    const [{ reason, guilty }] = (await boxesOf(heddle)) as [Awaited<ReturnType<typeof boxesOf>>[number]]
    assert.equal(reason, 'stalled')
    assert.equal(guilty?.plugin, 'fatal.EndLane')
  })
}
