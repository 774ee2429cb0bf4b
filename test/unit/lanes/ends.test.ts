import assert from 'node:assert/strict'
import { it, type TestContext, test } from 'node:test'
import { Dispatcher } from '../../../src/primary/dispatch/dispatcher.ts'
import { Lane, type UnfinishedWork } from '../../../src/primary/dispatch/lane.ts'
import { DrainRate } from '../../../src/primary/dispatch/request-slots.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { LaneChildren } from '../../../src/primary/supervision/lane-children.ts'
import type { LaneParts } from '../../../src/primary/supervision/lane-parts.ts'
import type { LaneRegistrar } from '../../../src/primary/supervision/lane-registrar.ts'
import {
  LaneSet,
  LaneSlot,
  LaneThread,
  RESTART_INTENSITY,
  RESTART_MAX_PAUSE_MS,
  RESTART_WINDOW_MS,
  RestartIntensity,
} from '../../../src/primary/supervision/lane-set.ts'
import { LEAVING_MAX_THREADS } from '../../../src/primary/supervision/lane-starter.ts'
import { Supervisor } from '../../../src/primary/supervision/supervisor.ts'
import type { Watchdog } from '../../../src/primary/supervision/watchdog.ts'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { RequestFrame } from '../../../src/transport/frames/request-frame.ts'
import { RingConsumer } from '../../../src/transport/memory/spsc-ring.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'
import { DEAF, laneOf, replacementOf } from '../../support/fake-lane.ts'
import { until } from '../../support/until.ts'

test('the last acknowledgements of a dead lane are read, and nothing is sent to it any more while they are', () => {
  const seen: [deliveryId: number, state: string][] = []
  const lane: Lane = new Lane({
    index: 0,
    role: 'regular',
    generation: 0,
    maxInFlight: 16,
    listener: { ...DEAF, deliveries: { ...DEAF.deliveries, delivered: (id) => seen.push([id, lane.state]) } },
  })
  const { outbound, port, bulk } = lane.threadSide
  lane.state = 'ready'
  const thread = new Outbox(outbound, port, bulk)
  const frame = thread.begin(KIND.DELIVERED, 0, 4)
  frame.words[frame.at >> 2] = 7
  frame.send(4)
  assert.deepEqual(lane.dispose(), { requests: [], unreadDeliveries: new Set() })
  assert.deepEqual(seen, [[7, 'dead']])
  thread.close()
})

/** A lane on demand that serves one route, and who keeps it. */
function onDemand(t: TestContext) {
  const lanes = new LaneSet(0)
  const options = { index: 1, role: 'probation', generation: 0, maxInFlight: 16, listener: DEAF } as const
  const watched = {
    isResponsive: true,
    terminationReason: null,
    check: () => null,
    checkLeaving: () => false,
  }
  const thread = new LaneThread(
    options,
    new Set(),
    new LaneChildren('/of-nobody', () => {}),
    () => watched as unknown as Watchdog,
  )
  thread.become('ready')
  thread.hostsRoute[0] = 1
  thread.servesRoute[0] = 1
  lanes.probation.slot = new LaneSlot(thread)
  // It stays for some seconds.
  lanes.probation.want(true)
  lanes.probation.want(false)
  const dispatcher = new Dispatcher((error) => assert.fail(String(error)))
  // The other one serves other routes.
  dispatcher.setLanes([thread, laneOf(t)])
  const gone: (UnfinishedWork & { thread: Lane })[] = []
  const registrar = {
    log: () => {},
    wornOut: () => {},
    gone: (thread: Lane, unfinished: UnfinishedWork) => gone.push({ thread, ...unfinished }),
  } as unknown as LaneRegistrar
  const kernel = { settings: { lanes: 1, laneMemoryMb: 64, laneEnv: [] } }
  const parts = { kernel, lanes, dispatcher, processDeaths: null } as unknown as LaneParts
  const supervisor = new Supervisor(registrar, parts)
  t.after(() => supervisor.stop(0))
  return { lanes, thread, dispatcher, supervisor, gone }
}

test('a lane on demand that is renewed leaves no request without an answer, and gives none back to itself', (t) => {
  const { lanes, thread, dispatcher, gone } = onDemand(t)
  const failures: (string | undefined)[] = []
  const exchangeOf = () =>
    ({
      deadlineMs: 0,
      assignTo: () => {},
      fail: (_code: string, why?: string) => failures.push(why),
    }) as unknown as Exchange
  const [begun, unread] = [exchangeOf(), exchangeOf()]
  const frame = new RequestFrame(0, 0, 2, 0, 5, 0, 0, 'id/path', null)
  dispatcher.send(frame, begun)
  new RingConsumer(thread.threadSide.inbound).drain(() => {}, 100)
  dispatcher.send(frame, unread)
  lanes.probation.renew()
  assert.equal(thread.state, 'dead')
  assert.deepEqual(failures, ['This part of the service waits for a lane of its own'])
  assert.equal(gone.length, 1)
  assert.equal(gone[0]!.thread, thread)
  assert.deepEqual(
    gone[0]!.requests.map(({ exchange }) => exchange === begun),
    [true],
  )
})

test('a lane is replaced whose requests, or whose sockets, are worn out', async (t) => {
  for (const worn of ['requests', 'sockets'] as const) {
    const { thread, supervisor, gone } = onDemand(t)
    thread[worn].isWornOut = () => true
    supervisor.start()
    await until(() => gone.length === 1, worn)
    assert.equal(thread.state, 'dead')
  }
})

/** A slot, beside which as many threads are leaving as may at a time. */
function crowded(t: TestContext) {
  const lanes = new LaneSet(1)
  const thread = Object.assign(laneOf(t), { watchdog: { ownMs: 5000 }, holder: null, isLost: false })
  const slot = new LaneSlot(thread as unknown as LaneThread)
  lanes.slots.push(slot)
  for (let n = 0; n < LEAVING_MAX_THREADS; n++)
    lanes.outside.add({ isLost: false, state: 'draining' } as unknown as LaneThread)
  return { slot, thread, ...replacementOf(lanes) }
}

test('a reload is refused after a minute in which no thread of too many has left', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  const { slot, replacement, started } = crowded(t)
  let fault: string | null = ''
  void replacement.replace([slot]).then((refused) => {
    fault = refused.fault
  })
  const look = async (): Promise<string | null> => {
    t.mock.timers.tick(1000)
    await new Promise((resolve) => setImmediate(resolve))
    return fault
  }
  laterMs = 59_000
  assert.equal(await look(), '')
  laterMs = 60_000
  assert.equal(await look(), '16 threads that were replaced have not left within 60 s')
  assert.deepEqual(started, [])
})

test('a lane that dies is restarted, though no standby may start beside the threads that are leaving', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { slot, thread, replacement, started } = crowded(t)
  thread.responsive = false
  replacement.onStill(slot.thread)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(started, [])
  Object.assign(thread, { isLost: true })
  replacement.died(slot.thread, false)
  t.mock.timers.tick(1)
  assert.deepEqual(started, [0])
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
  assert.equal(intensity.count(12), 12)
  assert.equal(Math.max(...pauses), RESTART_MAX_PAUSE_MS)
})

test('deaths are forgotten when they are a minute old', () => {
  const intensity = new RestartIntensity()
  for (let n = 0; n <= RESTART_INTENSITY; n++) intensity.recordDeath(0)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS - 1), 2000)
  assert.equal(intensity.recordDeath(RESTART_WINDOW_MS), 0)
  assert.equal(intensity.count(RESTART_WINDOW_MS), 2)
})

test('a lane that dies now and then is never slowed down', () => {
  const intensity = new RestartIntensity()
  for (let nowMs = 0; nowMs < 100 * RESTART_WINDOW_MS; nowMs += RESTART_WINDOW_MS / RESTART_INTENSITY)
    assert.equal(intensity.recordDeath(nowMs), 0)
})
