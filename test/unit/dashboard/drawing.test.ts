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
