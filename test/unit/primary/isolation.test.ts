import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { LaneRole } from '../../../src/primary/dispatch/lane.ts'
import type { Routing } from '../../../src/primary/http/routes.ts'
import { Isolation } from '../../../src/primary/supervision/isolation.ts'
import { LaneSet, LaneSlot, type LaneThread } from '../../../src/primary/supervision/lane-set.ts'
import { type PlacementParts, placeRequests } from '../../../src/primary/supervision/request-placement.ts'
import { FlightRecorder, STEP_REQUEST } from '../../../src/transport/memory/flight-recorder.ts'
import { laneOf } from '../../support/fake-lane.ts'

const FILES = { 'a.Bad': '/srv/a/bad.ts', 'a.Good': '/srv/a/good.ts' }
const ROUTES = [
  { number: 0, method: 'GET', path: '/bad', plugin: 'a.Bad', servedBy: 'lanes' },
  { number: 1, method: 'GET', path: '/good', plugin: 'a.Good', servedBy: 'lanes' },
]
const MINUTE_MS = 60_000
const crashOf = (plugin: string | null): BlackBox =>
  ({
    message: 'it threw',
    guilty: plugin && { plugin, handler: null, line: null, evidence: 'stack' },
  }) as unknown as BlackBox

/** Two regular lanes that serve the routes of two plugins, and a clock that the test sets. */
function build(t: TestContext) {
  let laterMs = 0
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + laterMs)
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout', 'Date'] })
  const lanes = new LaneSet(2)
  const threadOf = (role: LaneRole, index: number): LaneThread => {
    const lane = Object.assign(laneOf(t, { role, index, manifest: { files: FILES } }), { isLost: false })
    lane.hostsRoute.fill(1, 0, 2)
    return lane as unknown as LaneThread
  }
  lanes.slots.push(new LaneSlot(threadOf('regular', 0)), new LaneSlot(threadOf('regular', 1)))
  const routing = {
    table: { list: () => ROUTES, numbered: (number: number) => ROUTES[number] },
  } as unknown as Routing
  const logged: string[] = []
  const isolation: Isolation = new Isolation({
    routing,
    lanes,
    onCircuit: () => {},
    onChange: () => {
      const ignored = { dispatcher: { setLanes: () => {} }, events: { hub: { subscribersChanged: () => {} } } }
      placeRequests({ lanes, isolation, routing, ...ignored } as unknown as PlacementParts)
    },
    log: (_, message) => logged.push(message),
  })
  const [first, second] = lanes.slots.map(({ thread }) => thread) as [LaneThread, LaneThread]
  return {
    isolation,
    lanes,
    logged,
    first,
    second,
    probationUp: (): LaneThread => {
      const thread = threadOf('probation', 3)
      lanes.probation.slot = new LaneSlot(thread)
      t.mock.timers.tick(1000)
      return thread
    },
    pass: (ms: number) => {
      laterMs += ms
      t.mock.timers.tick(1000)
    },
  }
}

const WITHOUT_BAD = [
  [0, 1],
  [0, 1],
]

/** Whether lanes serve the routes of the bad and of the good plugin. */
const served = (...lanes: LaneThread[]) => lanes.map(({ servesRoute }) => [...servesRoute.subarray(0, 2)])

test('a plugin that is proved to have crashed a lane has the probation lane for a minute after its last crash', (t) => {
  const { isolation, lanes, first, second, probationUp, pass } = build(t)
  isolation.recordCrash(first, crashOf('a.Bad'))
  assert.equal(lanes.probation.isWanted, true)
  assert.deepEqual(served(first, second), WITHOUT_BAD)
  const probation = probationUp()
  const apart = [...WITHOUT_BAD, [1, 0]]
  assert.deepEqual(served(first, second, probation), apart)
  pass(MINUTE_MS / 2)
  isolation.recordCrash(probation, crashOf('a.Bad'))
  pass(MINUTE_MS - 1000)
  assert.deepEqual(served(first, second, probation), apart)
  pass(1001)
  assert.equal(lanes.probation.isWanted, false)
  assert.deepEqual(served(first, second, probation), [
    [1, 1],
    [1, 1],
    [0, 0],
  ])
})

test('a crash that nothing proves isolates nobody', (t) => {
  const { isolation, lanes, first } = build(t)
  isolation.recordCrash(first, crashOf(null))
  assert.equal(lanes.probation.isWanted, false)
})

const frameIn = (file: string) => ({ function: 'f', file, line: 1, column: 1 })

test('a plugin whose code blocks a lane is isolated', (t) => {
  const { isolation, first, logged } = build(t)
  isolation.blocked(first, [frameIn('node:internal'), frameIn('/srv/runtime.ts')])
  assert.equal(isolation.has('a.Bad'), false, 'the runtime itself is at work')
  isolation.blocked(first, [frameIn('node:internal'), frameIn(FILES['a.Bad'])])
  isolation.blocked(first, [frameIn(FILES['a.Bad'])])
  assert.deepEqual(logged, ['a.Bad blocks lane 0: its requests get a lane of their own'])
})

test('a plugin that has only blocked a lane waits in it until the probation lane is up', (t) => {
  const { isolation, first, second, probationUp } = build(t)
  isolation.blocked(first, [frameIn(FILES['a.Bad'])])
  assert.deepEqual(served(first, second), [
    [1, 1],
    [0, 1],
  ])
  const probation = probationUp()
  assert.deepEqual(served(first, second, probation), [...WITHOUT_BAD, [1, 0]])
})

test('a plugin that has blocked one lane and crashed another waits in none', (t) => {
  const { isolation, first, second } = build(t)
  isolation.blocked(first, [frameIn(FILES['a.Bad'])])
  isolation.recordCrash(second, crashOf('a.Bad'))
  isolation.blocked(first, [frameIn(FILES['a.Bad'])])
  assert.deepEqual(served(first, second), WITHOUT_BAD)
})

test('a crash of the probation lane is proved where one plugin alone was at work, whatever its stack tells', (t) => {
  const { isolation, first, probationUp } = build(t)
  const probation = probationUp()
  const recorder = new FlightRecorder(probation.threadSide.flight)
  recorder.begin(STEP_REQUEST, 0, -1, 'r1', 1000)
  const { guilty } = isolation.attribute(probation, crashOf(null))
  assert.deepEqual(guilty, { plugin: 'a.Bad', handler: 'GET /bad', line: null, evidence: 'alone' })
  recorder.begin(STEP_REQUEST, 1, -1, 'r2', 1000)
  assert.equal(isolation.attribute(probation, crashOf(null)).guilty, null)
  new FlightRecorder(first.threadSide.flight).begin(STEP_REQUEST, 0, -1, 'r3', 1000)
  assert.equal(isolation.attribute(first, crashOf(null)).guilty, null, 'a regular lane')
})

test('new code is forgiven: nobody is isolated', (t) => {
  const { isolation, lanes, first } = build(t)
  isolation.recordCrash(first, crashOf('a.Bad'))
  isolation.reset()
  assert.equal(isolation.has('a.Bad'), false)
  assert.equal(lanes.probation.isWanted, false)
})
