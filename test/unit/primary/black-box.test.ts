import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { WorkInFlight } from '../../../src/contracts/registry.ts'
import type { StackFrame } from '../../../src/core/errors/places.ts'
import type { LaneRole } from '../../../src/primary/dispatch/lane.ts'
import { causeText } from '../../../src/primary/flight/work.ts'
import { type LaneDeath, LaneDeaths } from '../../../src/primary/supervision/black-box.ts'
import type { LaneThread } from '../../../src/primary/supervision/lane-set.ts'
import { FlightRecorder, STEP_EVENT, STEP_REQUEST } from '../../../src/transport/memory/flight-recorder.ts'
import { createNameTable } from '../../../src/transport/memory/name-table.ts'
import { laneOf } from '../../support/fake-lane.ts'

const SELL = '/srv/domains/shop/plugins/sell.ts'
const PRICE = '/srv/domains/shop/price.ts'
const FILES = { 'shop.Sell': SELL, 'shop.Buy': '/srv/domains/shop/plugins/buy.ts' }

const frame = (file: string, line = 7): StackFrame => ({ function: 'f', file, line, column: 3 })
const lineIn = (file: string, line = 7): string => `${file}:${line}:3`
const work = (id: string, plugin = 'shop.Sell', more: Partial<WorkInFlight> = {}): WorkInFlight => ({
  kind: 'event',
  name: `event of ${plugin}`,
  plugin,
  id,
  for_ms: 10,
  ...more,
})

/** The black box of a lane that died of this, with these events in flight. */
function boxOf(
  t: TestContext,
  death: Partial<LaneDeath>,
  works: WorkInFlight[],
  record?: (flight: FlightRecorder) => void,
  role: LaneRole = 'regular',
) {
  const subscription = { subscriberIndex: 5, event: 'sold', plugin: 'shop.Sell', identity: 'subscriber 5', options: {} }
  const manifest = { files: FILES, subscriptions: [subscription] }
  const watchdog = { stillMs: 0, cpuMs: null, cpuMsWhileStill: null }
  const lane = Object.assign(laneOf(t, { index: 3, role, manifest }), { watchdog }) as unknown as LaneThread
  record?.(new FlightRecorder(lane.threadSide.flight))
  const ignored = (): void => {}
  const parts = {
    kernel: { settings: { domainsDir: ['/srv/domains'] }, shared: { names: createNameTable() }, writeLog: ignored },
    routing: {
      nameOf: (number: number) => `route ${number}`,
      table: { numbered: (number: number) => ({ method: 'route', path: number, plugin: 'shop.Sell' }) },
    },
    isolation: { recordCrash: ignored },
    events: { driver: { publish: ignored } },
    recorders: { history: null },
  }
  const deaths = new LaneDeaths(parts as unknown as ConstructorParameters<typeof LaneDeaths>[0], () => works)
  return deaths.onDeath(lane, {
    requests: [],
    unreadDeliveries: new Set(),
    reason: 'crashed',
    message: 'it died',
    stack: [],
    origin: null,
    bootCulprit: null,
    ...death,
  })
}

test('the stack is proof: the plugin whose file is in it, at the innermost line of its domain', (t) => {
  const stack = [frame('node:fs'), frame(PRICE, 2), frame(SELL, 9)]
  const { guilty } = boxOf(t, { stack }, [work('evt_1'), work('evt_2', 'shop.Buy')])
  assert.deepEqual(guilty, {
    plugin: 'shop.Sell',
    handler: 'event of shop.Sell',
    line: lineIn(PRICE, 2),
    evidence: 'stack',
  })
})

test('the handler stays open when the plugin on the stack was at two things', (t) => {
  const { guilty } = boxOf(t, { stack: [frame(SELL)] }, [work('evt_1'), work('evt_2')])
  assert.deepEqual(guilty, { plugin: 'shop.Sell', handler: null, line: lineIn(SELL), evidence: 'stack' })
})

test('without a plugin on the stack, work that was there alone is guilty', (t) => {
  const { guilty } = boxOf(t, { stack: [frame('node:internal')] }, [work('evt_1', 'shop.Buy')])
  assert.deepEqual(guilty, { plugin: 'shop.Buy', handler: 'event of shop.Buy', line: null, evidence: 'alone' })
})

test('a plugin that was being booted is guilty, by its file when there is no line', (t) => {
  const booting = '/srv/domains/shop/plugins/new.ts'
  assert.deepEqual(boxOf(t, { reason: 'boot', bootCulprit: booting }, []).guilty, {
    plugin: null,
    handler: null,
    line: booting,
    evidence: 'alone',
  })
  assert.equal(
    boxOf(t, { reason: 'boot', bootCulprit: booting, stack: [frame(PRICE)] }, []).guilty!.line,
    lineIn(PRICE),
  )
})

test('nobody is named where nothing proves who it was', (t) => {
  const works = [work('evt_1', 'shop.Sell'), work('evt_2', 'shop.Buy')]
  for (const reason of ['stalled', 'memory', 'crashed', 'exited'] as const) {
    assert.equal(boxOf(t, { reason }, works).guilty, null, reason)
    assert.equal(boxOf(t, { reason }, []).guilty, null, reason)
  }
  assert.equal(boxOf(t, { reason: 'memory' }, [work('evt_1')]).guilty, null, 'what fills it may be of earlier work')
  const ended = (flight: FlightRecorder): void => {
    flight.end(flight.begin(STEP_EVENT, 5, 1, '1', Date.now()), Date.now(), false)
  }
  assert.equal(boxOf(t, {}, [work('evt_2')], ended).guilty, null, 'a timer of what has just ended may be the cause')
})

test('the log lists what was in flight where the cause is unknown', () => {
  const [sell, buy] = [work('evt_1'), work('evt_2', 'shop.Buy')]
  assert.equal(causeText(null, [], 0), '. The cause is unknown; nothing was in flight')
  assert.equal(
    causeText(null, [sell, buy], 3),
    '. The cause is unknown; in flight: event of shop.Sell, event of shop.Buy and 1 more',
  )
})

test('a line of a domain that is no plugin is told, and blames none', (t) => {
  const { guilty } = boxOf(t, { stack: [frame(PRICE)] }, [work('evt_1'), work('evt_2', 'shop.Buy')])
  assert.deepEqual(guilty, { plugin: null, handler: null, line: lineIn(PRICE), evidence: 'stack' })
})

test('work is told the longest first, and steps by name, oldest first', (t) => {
  const works = [work('evt_1', 'shop.Sell', { for_ms: 5 }), work('evt_2', 'shop.Buy', { for_ms: 50 })]
  const box = boxOf(t, {}, works, (flight) => {
    flight.end(flight.begin(STEP_REQUEST, 4, 1, 'req_1', 1000), 1250, true)
    flight.begin(STEP_EVENT, 5, 2, '0190', 2000)
  })
  assert.deepEqual(
    box.in_flight.map(({ id }) => id),
    ['evt_2', 'evt_1'],
  )
  assert.deepEqual(box.steps, [
    { at: '1970-01-01T00:00:01.000Z', kind: 'request', name: 'route 4', id: 'req_1', duration_ms: 250, success: false },
    {
      at: '1970-01-01T00:00:02.000Z',
      kind: 'event',
      name: 'subscriber 5',
      id: 'evt_0190',
      duration_ms: null,
      success: true,
    },
  ])
  assert.equal(box.lane, 3)
})

test('a crash of the probation lane is proved where one plugin alone was at work, also just before', (t) => {
  const twoSteps = (flight: FlightRecorder): void => {
    flight.end(flight.begin(STEP_REQUEST, 0, -1, 'r1', Date.now()), Date.now(), false)
    flight.begin(STEP_REQUEST, 1, -1, 'r2', Date.now())
  }
  assert.equal(boxOf(t, {}, [], twoSteps).guilty, null, 'a regular lane')
  const { guilty } = boxOf(t, {}, [], twoSteps, 'probation')
  assert.deepEqual(guilty, { plugin: 'shop.Sell', handler: null, line: null, evidence: 'alone' })
})
