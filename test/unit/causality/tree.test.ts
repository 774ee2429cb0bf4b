import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import { causalForest, type TreeNode } from '../../../src/runtime/events/trace-ring.ts'

function record(id: string, parent_id: string | null): EventRecord {
  return {
    id,
    parent_id,
    event: `event.${id}`,
    emitter: 'test.Emitter',
    subscribers: ['test.Subscriber'],
    payload_keys: ['n'],
    timestamp: '2026-01-01T00:00:00.000Z',
    request_id: 'r1',
    trace_id: null,
  }
}

const shape = (nodes: TreeNode[]): unknown[] => nodes.map(({ id, children }) => [id, shape(children)])

test('records become trees, in the order of the records', () => {
  const forest = causalForest([
    record('a', null),
    record('b', 'a'),
    record('c', null),
    record('d', 'a'),
    record('e', 'b'),
  ])
  assert.deepEqual(shape(forest), [
    [
      'a',
      [
        ['b', [['e', []]]],
        ['d', []],
      ],
    ],
    ['c', []],
  ])
})

test('a node has its id, event and children, a leaf an empty list', () => {
  const [node] = causalForest([record('a', null)])
  assert.equal(node!.id, 'a')
  assert.equal(node!.event, 'event.a')
  assert.deepEqual(node!.children, [])
  assert.equal('payload_keys' in node!, false)
})

test('a record whose parent is not among them is a root', () => {
  assert.deepEqual(shape(causalForest([record('b', 'gone'), record('c', 'b')])), [['b', [['c', []]]]])
})

test('a child that comes before its parent is still its child', () => {
  assert.deepEqual(shape(causalForest([record('child', 'parent'), record('parent', null)])), [
    ['parent', [['child', []]]],
  ])
})

test('a record that names itself as parent is a root, not a loop', () => {
  assert.deepEqual(shape(causalForest([record('a', 'a')])), [['a', []]])
})

test('no records are no trees, and a long chain is no problem', () => {
  assert.deepEqual(causalForest([]), [])
  const chain = Array.from({ length: 500 }, (_, n) => record(`e${n}`, n === 0 ? null : `e${n - 1}`))
  let [node] = causalForest(chain)
  for (let n = 1; n < 500; n++) [node] = node!.children
  assert.equal(node!.id, 'e499')
})
