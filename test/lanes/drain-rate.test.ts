import assert from 'node:assert/strict'
import { it } from 'node:test'
import { DrainRate } from '../../src/primary/dispatch/drain-rate.ts'

const LOOK_MS = 20
const FULL_LOAD = 300

/** Looks at a lane for a while that answers at a steady rate. */
function run(
  pace: DrainRate,
  { looks, answersPerLook, isFull }: { looks: number; answersPerLook: number; isFull: boolean },
) {
  for (let n = 0; n < looks; n++) {
    for (let answer = 0; answer < answersPerLook; answer++) pace.countAnswer()
    nowMs += LOOK_MS
    pace.look(nowMs, isFull)
  }
}

let nowMs = 1_000_000

it('knows nothing of a lane that is asked little', () => {
  const pace = new DrainRate(FULL_LOAD)
  run(pace, { looks: 50, answersPerLook: 1, isFull: false })
  assert.equal(pace.verdict, 'unknown')
})

it('is quick from a third of a full load in a tenth of a second on, and stays so while little is asked', () => {
  const pace = new DrainRate(FULL_LOAD)
  run(pace, { looks: 10, answersPerLook: 20, isFull: false })
  assert.equal(pace.verdict, 'quick')
  run(pace, { looks: 50, answersPerLook: 0, isFull: false })
  assert.equal(pace.verdict, 'quick')
})

it('is slow when it was full all the time and answered less', () => {
  const pace = new DrainRate(FULL_LOAD)
  run(pace, { looks: 10, answersPerLook: 20, isFull: true })
  assert.equal(pace.verdict, 'quick')
  run(pace, { looks: 10, answersPerLook: 19, isFull: true })
  assert.equal(pace.verdict, 'slow')
})

it('is quick again before a window ends when enough was answered', () => {
  const pace = new DrainRate(FULL_LOAD)
  run(pace, { looks: 10, answersPerLook: 1, isFull: true })
  assert.equal(pace.whenFull(), 'slow')
  for (let answer = 0; answer < FULL_LOAD / 3; answer++) pace.countAnswer()
  assert.equal(pace.whenFull(), 'quick')
})

it('does not take a primary that is held up for a slow lane', () => {
  const pace = new DrainRate(FULL_LOAD)
  for (let look = 0; look < 10; look++) {
    for (let answer = 0; answer < FULL_LOAD; answer++) pace.countAnswer()
    nowMs += 500
    pace.look(nowMs, true)
  }
  assert.equal(pace.verdict, 'quick')
})
