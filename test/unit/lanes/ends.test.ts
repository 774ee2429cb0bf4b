import assert from 'node:assert/strict'
import { it, test } from 'node:test'
import { Lane } from '../../../src/primary/dispatch/lane.ts'
import { DrainRate } from '../../../src/primary/dispatch/request-slots.ts'
import {
  RESTART_INTENSITY,
  RESTART_MAX_PAUSE_MS,
  RESTART_WINDOW_MS,
  RestartIntensity,
} from '../../../src/primary/supervision/lane-set.ts'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'

test('the last acknowledgements of a dead lane are read, and nothing is sent to it any more while they are', () => {
  const seen: [deliveryId: number, state: string][] = []
  const ignored = (): void => {}
  const lane: Lane = new Lane({
    index: 0,
    role: 'regular',
    generation: 0,
    maxInFlight: 16,
    listener: {
      onMessage: ignored,
      onPublish: ignored,
      onStored: ignored,
      onRecord: ignored,
      deliveries: { delivered: (id) => seen.push([id, lane.state]), reply: ignored, failed: ignored },
      onCall: ignored,
      onLog: ignored,
      onFault: ignored,
    },
  })
  const { outbound, port, bulk } = lane.threadSide
  lane.state = 'ready'
  const thread = new Outbox(outbound, port, bulk)
  const at = thread.begin(4, false)
  thread.words[at >> 2] = 7
  thread.end(4, KIND.DELIVERED, 0)
  assert.deepEqual(lane.dispose(), { requests: [], unreadDeliveries: new Set() })
  assert.deepEqual(seen, [[7, 'dead']])
  thread.close()
})

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

test('the first deaths of a minute are made up for at once, each further one waits twice as long, half a minute at most', () => {
  const intensity = new RestartIntensity()
  const pauses = Array.from({ length: 12 }, (_, n) => intensity.recordDeath(n))
  assert.deepEqual(pauses, [0, 0, 0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  assert.equal(intensity.size, 12)
  assert.equal(Math.max(...pauses), RESTART_MAX_PAUSE_MS)
})

test('deaths are forgotten when they are a minute old', () => {
  const intensity = new RestartIntensity()
  for (let n = 0; n <= RESTART_INTENSITY; n++) intensity.recordDeath(0)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS - 1), 2000)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS), 0)
  assert.equal(intensity.size, 2)
})

test('a lane that dies now and then is never slowed down', () => {
  const intensity = new RestartIntensity()
  for (let nowMs = 0; nowMs < 100 * RESTART_WINDOW_MS; nowMs += RESTART_WINDOW_MS / RESTART_INTENSITY)
    assert.equal(intensity.recordDeath(nowMs), 0)
})
