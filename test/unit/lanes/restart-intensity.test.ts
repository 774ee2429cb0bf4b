import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  RESTART_INTENSITY,
  RESTART_MAX_PAUSE_MS,
  RESTART_WINDOW_MS,
  RestartIntensity,
} from '../../../src/primary/supervision/lane-set.ts'

test('the first deaths of a minute are made up for at once, each further one waits twice as long, half a minute at most', () => {
  const intensity = new RestartIntensity()
  const pauses = Array.from({ length: 12 }, (_, n) => intensity.recordDeath(n))
  assert.deepEqual(pauses, [0, 0, 0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  assert.equal(intensity.recent, 12)
  assert.equal(Math.max(...pauses), RESTART_MAX_PAUSE_MS)
})

test('deaths are forgotten when they are a minute old', () => {
  const intensity = new RestartIntensity()
  for (let n = 0; n <= RESTART_INTENSITY; n++) intensity.recordDeath(0)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS - 1), 2000)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS), 0)
  assert.equal(intensity.recent, 2)
})

test('a lane that dies now and then is never slowed down', () => {
  const intensity = new RestartIntensity()
  for (let nowMs = 0; nowMs < 100 * RESTART_WINDOW_MS; nowMs += RESTART_WINDOW_MS / RESTART_INTENSITY)
    assert.equal(intensity.recordDeath(nowMs), 0)
})
