import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

// The code of the page is JavaScript without types.
const require = createRequire(import.meta.url)
const assets = '../../../domains/system/assets/dashboard/'
const { Forest, RECORDS_MAX } = require(`${assets}forest.js`)
const { layersOf } = require(`${assets}topology-layout.js`)

interface Row {
  key: string
  depth: number
  guides: string
}
const record = (id: string, parent_id: string | null, request_id: string | null = null, ms = 0) => ({
  id,
  parent_id,
  request_id,
  event: id,
  emitter: 'test.A',
  subscribers: [],
  payload_keys: [],
  timestamp: new Date(ms).toISOString(),
})
const rowsOf = (forest: { rows(matches: null): Row[] }) => forest.rows(null).map(({ key, depth }) => [key, depth])

test('what one request has caused is one tree, below the request; newest first', () => {
  const forest = new Forest()
  forest.add(record('a', null, 'r1'))
  forest.add(record('b', null, 'r1'))
  forest.add(record('c', 'a', 'r1'))
  forest.add(record('d', null))
  forest.add(record('e', 'd'))
  forest.add(record('e', 'd'))
  assert.deepEqual(rowsOf(forest), [
    ['d', 0],
    ['e', 1],
    ['request:r1', 0],
    ['a', 1],
    ['c', 2],
    ['b', 1],
  ])
  assert.deepEqual(
    forest.rows(null).map(({ guides }: Row) => guides),
    ['', 'L', '', 'T', 'IL', 'L'],
  )
})

test('an event that is heard of before its cause moves below it', () => {
  const forest = new Forest()
  forest.add(record('child', 'parent', 'r'))
  forest.add(record('parent', null, 'r'))
  assert.deepEqual(rowsOf(forest), [
    ['request:r', 0],
    ['parent', 1],
    ['child', 2],
  ])
  forest.add(record('grandchild', 'late child'))
  forest.add(record('late child', 'late'))
  forest.add(record('late', null))
  assert.deepEqual(rowsOf(forest).slice(0, 3), [
    ['late', 0],
    ['late child', 1],
    ['grandchild', 2],
  ])
})

test('a page that is open for days keeps a bounded number of records, and whole trees', () => {
  const forest = new Forest()
  for (let n = 0; n < 20_000; n++) {
    forest.add(record(`root ${n}`, null))
    forest.add(record(`leaf ${n}`, `root ${n}`))
    forest.fail({ event_id: `leaf ${n}`, subscriber: 'test.B', error: 'no', attempts: 1 })
  }
  assert.ok(forest.size <= RECORDS_MAX + 1, String(forest.size))
  assert.equal(forest.treesSeen, 20_000)
  assert.equal(forest.node('root 0'), undefined)
  assert.equal(forest.node('leaf 19999').failures.length, 1)
  for (const { depth, key } of forest.rows(null) as Row[]) assert.equal(depth, key.startsWith('root') ? 0 : 1)
  for (let n = 0; n < 5000; n++) forest.add(record(`wide ${n}`, null, 'one request'))
  assert.ok(forest.size <= RECORDS_MAX + 1, 'one tree cannot push out its own bound')
})

test('layers lead from cause to effect, circles included', () => {
  const edges = [
    ['place', 'placed'],
    ['placed', 'ship'],
    ['ship', 'shipped'],
    ['shipped', 'ship'],
    ['shipped', 'bill'],
  ]
  const layers: string[][] = layersOf(['bill', 'place', 'placed', 'ship', 'shipped', 'alone'], edges)
  const layerOf = (id: string) => layers.findIndex((layer) => layer.includes(id))
  assert.deepEqual(['place', 'placed', 'ship', 'shipped', 'bill'].map(layerOf), [0, 1, 2, 3, 4])
  assert.equal(layerOf('alone'), 0)
  const circle: string[][] = layersOf(
    ['a', 'b'],
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
  )
  assert.equal(circle.flat().length, 2)
})

test('duration(): rounds up to the next unit, and knows of no 60 s and no 1000 ms', () => {
  const { duration, bytes } = require('../../../domains/system/assets/shared/format.js')
  const shown = [null, 0, 0.9996, 9.96, 999.6, 59_960, 119_700, 3_599_600, 86_400_000].map(duration)
  assert.deepEqual(shown, [
    '–',
    '0 µs',
    '1.0 ms',
    '10 ms',
    '1.0 s',
    '1 min 0 s',
    '2 min 0 s',
    '1 h 0 min',
    '24 h 0 min',
  ])
  for (let ms = 0.0001; ms < 1e8; ms *= 1.0007)
    assert.doesNotMatch(duration(ms), /^(1000 (µs|ms)|10\.0 ms|60\.0 s)$| 60 (s|min)$/, String(ms))
  assert.equal(bytes(null), '–')
})

test('clockSeconds(): names the day of every time that is not today', () => {
  const { clockSeconds } = require('../../../domains/system/assets/shared/format.js')
  assert.match(clockSeconds(new Date().toISOString()), /^\d\d:\d\d:\d\d$/)
  for (const days of [-40, -1, 1, 31])
    assert.match(
      clockSeconds(new Date(Date.now() + days * 86_400_000).toISOString()),
      /^[A-Z][a-z]+ \d+ \d\d:\d\d:\d\d$/,
    )
})

test('LaneStates: a lane that was ready stays so for two looks, and a standby is not its lane', () => {
  const { LaneStates, laneTitle } = require(`${assets}lane-states.js`)
  const states = new LaneStates()
  const lane = (role: string, responsive: boolean) => ({ index: 0, role, state: 'ready', responsive })
  states.begin([lane('regular', false), lane('relief', true)])
  for (const isReady of [true, true, false]) {
    states.look([lane('regular', false), lane('relief', true)])
    assert.deepEqual([states.isReady(lane('regular', false)), states.isReady(lane('relief', true))], [isReady, true])
  }
  const titles = ['regular', 'relief', 'probation', 'quarantine'].map((role) => laneTitle(lane(role, true)))
  assert.deepEqual(titles, ['Lane 0', 'Standby for lane 0', 'Probation lane', 'Quarantine lane'])
})
