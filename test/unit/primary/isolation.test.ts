import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { Dispatcher } from '../../../src/primary/dispatch/dispatcher.ts'
import type { LaneRole } from '../../../src/primary/dispatch/lane.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import type { Routing } from '../../../src/primary/http/routes.ts'
import {
  CRASH_WINDOW_MS,
  CRASHES_MAX,
  DISABLED_MAX_MS,
  DISABLED_MS,
  ISOLATION_MS,
  Isolation,
} from '../../../src/primary/supervision/isolation.ts'
import { LaneSet, LaneSlot, type LaneThread } from '../../../src/primary/supervision/lane-set.ts'
import { laneOf } from '../../support/fake-lane.ts'

const FILES = { 'a.Bad': '/srv/a/bad.ts', 'a.Good': '/srv/a/good.ts' }
const ROUTES = [
  { number: 0, method: 'GET', path: '/bad', plugin: 'a.Bad', servedBy: 'lanes' },
  { number: 1, method: 'GET', path: '/good', plugin: 'a.Good', servedBy: 'lanes' },
]
const BAD = 'a.Bad'
const crashOf = (plugin: string | null): BlackBox =>
  ({
    message: 'it threw',
    guilty: plugin && { plugin, handler: null, line: 'bad.ts:1:1', evidence: 'stack' },
  }) as unknown as BlackBox

/** Two regular lanes that serve the routes of two plugins, and a clock that the test moves. */
function build(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  t.mock.method(performance, 'now', () => Date.now())
  const lanes = new LaneSet(2)
  const threadOf = (role: LaneRole, index: number): LaneThread => {
    const lane = Object.assign(laneOf(t, { role, index, manifest: { files: FILES } }), { isLost: false })
    lane.hostsRoute.fill(1, 0, 2)
    return lane as unknown as LaneThread
  }
  lanes.slots.push(new LaneSlot(threadOf('regular', 0)), new LaneSlot(threadOf('regular', 1)))
  const logged: string[] = []
  const told: [plugin: string, pauseMs: number | null][] = []
  const reasons: string[] = []
  const isolation = new Isolation({
    lanes,
    routing: { table: { list: () => ROUTES } } as unknown as Routing,
    dispatcher: { setLanes: () => {} } as unknown as Dispatcher,
    hub: { subscribersChanged: () => {} } as unknown as Hub,
    onDisabled: (plugin, disabled) => {
      told.push([plugin, disabled === null ? null : disabled.untilMs - Date.now()])
      if (disabled !== null) reasons.push(disabled.reason)
    },
    log: (_, message) => logged.push(message),
  })
  const [first, second] = lanes.slots.map(({ thread }) => thread) as [LaneThread, LaneThread]
  return {
    ...{ isolation, lanes, logged, told, reasons, first, second },
    crash: (times: number, plugin = BAD) => {
      for (let n = 0; n < times; n++) isolation.recordCrash(crashOf(plugin))
    },
    probationUp: (): LaneThread => {
      const thread = threadOf('probation', 3)
      lanes.probation.slot = new LaneSlot(thread)
      isolation.placeRequests()
      return thread
    },
    pass: (ms: number) => t.mock.timers.tick(ms),
  }
}

const WITHOUT_BAD = [
  [0, 1],
  [0, 1],
]

/** Whether lanes serve the routes of the bad and of the good plugin. */
const served = (...lanes: LaneThread[]) => lanes.map(({ servesRoute }) => [...servesRoute.subarray(0, 2)])

test('a plugin that is proved to have crashed a lane has the probation lane for a minute after its last crash', (t) => {
  const { lanes, first, second, crash, probationUp, pass } = build(t)
  crash(1)
  assert.equal(lanes.probation.isWanted, true)
  assert.deepEqual(served(first, second), WITHOUT_BAD)
  const probation = probationUp()
  const apart = [...WITHOUT_BAD, [1, 0]]
  assert.deepEqual(served(first, second, probation), apart)
  pass(ISOLATION_MS / 2)
  crash(1)
  pass(ISOLATION_MS - 1)
  assert.deepEqual(served(first, second, probation), apart)
  pass(1)
  assert.equal(lanes.probation.isWanted, false)
  assert.deepEqual(served(first, second, probation), [
    [1, 1],
    [1, 1],
    [0, 0],
  ])
})

test('a crash that nothing proves isolates nobody', (t) => {
  const { isolation, lanes } = build(t)
  isolation.recordCrash(crashOf(null))
  assert.equal(lanes.probation.isWanted, false)
})

test('a plugin whose code blocks a lane is isolated', (t) => {
  const { isolation, lanes, first, second, logged, crash, probationUp, pass } = build(t)
  const frame = (file: string) => ({ function: 'f', file, line: 1, column: 1 })
  isolation.blocked(first, [frame('node:internal'), frame('/srv/runtime.ts')])
  assert.equal(lanes.probation.isWanted, false, 'the runtime itself is at work')
  isolation.blocked(first, [frame('node:internal'), frame(FILES['a.Bad'])])
  isolation.blocked(first, [frame(FILES['a.Bad'])])
  assert.deepEqual(logged, ['a.Bad blocks lane 0: its requests get a lane of their own'])
  const waiting = [
    [1, 1],
    [0, 1],
  ]
  assert.deepEqual(served(first, second), waiting, 'its requests wait in that lane until it has its own')
  crash(1)
  assert.deepEqual(served(first, second), WITHOUT_BAD, 'it has crashed one')
  pass(ISOLATION_MS)
  isolation.blocked(first, [frame(FILES['a.Bad'])])
  assert.deepEqual(served(first, second, probationUp()), [...WITHOUT_BAD, [1, 0]])
})

test('a plugin that crashes fewer lanes than the window allows is not disabled', (t) => {
  const { isolation, told, crash, pass } = build(t)
  for (let n = 0; n < 3 * CRASHES_MAX; n++) {
    crash(1)
    pass(CRASH_WINDOW_MS / (CRASHES_MAX - 1))
  }
  assert.deepEqual(told, [])
  assert.equal(isolation.isDisabled(BAD), false)
})

test('a plugin that crashes five lanes within a minute is disabled, with the reason, and no other', (t) => {
  const { isolation, told, reasons, crash } = build(t)
  crash(CRASHES_MAX - 1)
  crash(CRASHES_MAX - 1, 'a.Good')
  assert.deepEqual(told, [])
  crash(1)
  assert.deepEqual(told, [[BAD, DISABLED_MS]])
  const until = new Date(1_000_000 + DISABLED_MS).toISOString()
  assert.equal(reasons[0], `Disabled until ${until}: its handlers crashed 5 lanes in 60 s; last: it threw (bad.ts:1:1)`)
  assert.deepEqual([isolation.isDisabled(BAD), isolation.isDisabled('a.Good')], [true, false])
  crash(3)
  assert.equal(told.length, 1, 'crashes of work that had begun do not disable it again')
})

test('on trial one more crash disables the plugin again, each time for twice as long, up to a maximum', (t) => {
  const { isolation, lanes, told, reasons, crash, pass } = build(t)
  crash(CRASHES_MAX)
  for (let pauseMs = DISABLED_MS, n = 0; n < 10; n++) {
    assert.deepEqual(told.at(-1), [BAD, pauseMs])
    assert.equal(lanes.probation.isWanted, pauseMs <= ISOLATION_MS, 'its lane stays for a short pause')
    pass(pauseMs - 1)
    assert.equal(isolation.isDisabled(BAD), true)
    pass(1)
    assert.deepEqual(told.at(-1), [BAD, null])
    assert.equal(isolation.isDisabled(BAD), false)
    assert.equal(lanes.probation.isWanted, true)
    pass(ISOLATION_MS - 1)
    crash(1)
    assert.match(reasons.at(-1)!, /crashed another lane; last/)
    pauseMs = Math.min(2 * pauseMs, DISABLED_MAX_MS)
  }
  assert.deepEqual(told.at(-1), [BAD, DISABLED_MAX_MS])
})

test('a plugin that crashes no lane on trial begins anew', (t) => {
  const { told, crash, pass } = build(t)
  crash(CRASHES_MAX)
  pass(DISABLED_MS)
  crash(1)
  pass(2 * DISABLED_MS)
  pass(ISOLATION_MS)
  told.length = 0
  crash(CRASHES_MAX - 1)
  assert.deepEqual(told, [])
  crash(1)
  assert.deepEqual(told, [[BAD, DISABLED_MS]])
})

test('new code is forgiven: no plugin is isolated or disabled, nothing is counted, no timer is left', (t) => {
  const { isolation, lanes, told, crash, pass } = build(t)
  crash(CRASHES_MAX)
  crash(CRASHES_MAX - 1, 'a.Good')
  isolation.reset()
  assert.deepEqual(told, [
    [BAD, DISABLED_MS],
    [BAD, null],
  ])
  assert.equal(isolation.isDisabled(BAD), false)
  assert.equal(lanes.probation.isWanted, false)
  crash(1)
  crash(1, 'a.Good')
  pass(DISABLED_MAX_MS)
  assert.equal(told.length, 2)
})
