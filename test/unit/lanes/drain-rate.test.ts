import assert from 'node:assert/strict'
import { it } from 'node:test'
import { DrainRate } from '../../../src/primary/dispatch/drain-rate.ts'

const LOOK_MS = 20
const FULL_LOAD = 300

/** Looks at a lane for a while that answers at a steady rate. */
function run(
  drainRate: DrainRate,
  { looks, answersPerLook, isFull }: { looks: number; answersPerLook: number; isFull: boolean },
) {
  for (let n = 0; n < looks; n++) {
    for (let answer = 0; answer < answersPerLook; answer++) drainRate.countAnswer()
    nowMs += LOOK_MS
    drainRate.sample(nowMs, isFull)
  }
}

let nowMs = 1_000_000

it('knows nothing of a lane that is asked little', () => {
  const drainRate = new DrainRate(FULL_LOAD)
  run(drainRate, { looks: 50, answersPerLook: 1, isFull: false })
  assert.equal(drainRate.speed, 'unknown')
})

it('is fast from a third of a full load in a tenth of a second on, and stays so while little is asked', () => {
  const drainRate = new DrainRate(FULL_LOAD)
  run(drainRate, { looks: 10, answersPerLook: 20, isFull: false })
  assert.equal(drainRate.speed, 'fast')
  run(drainRate, { looks: 50, answersPerLook: 0, isFull: false })
  assert.equal(drainRate.speed, 'fast')
})

it('is slow when it was full all the time and answered less', () => {
  const drainRate = new DrainRate(FULL_LOAD)
  run(drainRate, { looks: 10, answersPerLook: 20, isFull: true })
  assert.equal(drainRate.speed, 'fast')
  run(drainRate, { looks: 10, answersPerLook: 19, isFull: true })
  assert.equal(drainRate.speed, 'slow')
})

it('is fast again before a window ends when enough was answered', () => {
  const drainRate = new DrainRate(FULL_LOAD)
  run(drainRate, { looks: 10, answersPerLook: 1, isFull: true })
  assert.equal(drainRate.speedWhenFull(), 'slow')
  for (let answer = 0; answer < FULL_LOAD / 3; answer++) drainRate.countAnswer()
  assert.equal(drainRate.speedWhenFull(), 'fast')
})

it('does not take a primary that is held up for a slow lane', () => {
  const drainRate = new DrainRate(FULL_LOAD)
  for (let look = 0; look < 10; look++) {
    for (let answer = 0; answer < FULL_LOAD; answer++) drainRate.countAnswer()
    nowMs += 500
    drainRate.sample(nowMs, true)
  }
  assert.equal(drainRate.speed, 'fast')
})
