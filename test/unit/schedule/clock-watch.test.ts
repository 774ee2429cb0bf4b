import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK, TIMER_MAX_MS } from '../../../src/core/schedule/clock.ts'
import { ClockWatch, jumpText } from '../../../src/core/schedule/clock-watch.ts'
import { RepeatingTask } from '../../../src/core/schedule/repeating-task.ts'
import { until } from '../../support/until.ts'

test('ClockWatch: reports a clock that is set back or ahead once, and no drift', async (t) => {
  const realNow = Date.now
  let aheadMs = 0
  t.mock.method(Date, 'now', () => realNow() + aheadMs)
  const jumps: number[] = []
  // Ten seconds are what a machine may correct or lag meanwhile.
  const watch = new ClockWatch((jumpMs) => jumps.push(Math.round(jumpMs / 10_000) * 10))
  t.after(() => watch.end())
  aheadMs = -4 * 3_600_000
  await until(() => jumps.length === 1, 'the first jump')
  aheadMs += 500
  await new Promise((resolve) => setTimeout(resolve, 1200))
  aheadMs = 60_000
  await until(() => jumps.length === 2, 'the second jump')
  assert.deepEqual(jumps, [-14_400, 14_460])
})

test('jumpText(): names direction and distance', () => {
  assert.equal(jumpText(-14_400_000), "The system's clock was set back by 4 h")
  assert.equal(jumpText(90_000), "The system's clock was set ahead by 1.5 min, or the machine was suspended")
})

test('timers for longer than Node takes wait, and can be cancelled', async () => {
  let runs = 0
  const timer = SYSTEM_CLOCK.after(TIMER_MAX_MS + 1, () => runs++).unref()
  const task = new RepeatingTask(async () => {
    runs++
    return 1e12
  })
  task.start(1e12)
  await new Promise((resolve) => setTimeout(resolve, 50))
  SYSTEM_CLOCK.cancel(timer)
  await task.stop()
  assert.equal(runs, 0)
})
