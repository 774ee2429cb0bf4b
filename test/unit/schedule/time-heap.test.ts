import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TimeHeap } from '../../../src/core/collections/time-heap.ts'
import { seededRandom } from '../../support/random.ts'

test('a heap of times gives the first one first, and of two at the same time the smaller number', () => {
  const random = seededRandom(7)
  const heap = new TimeHeap()
  const entries: [dueMs: number, item: number][] = []
  const taken: (number | undefined)[] = []
  const expected: number[] = []
  const take = () => {
    taken.push(heap.shift())
    entries.sort(([dueMs, item], [otherMs, other]) => dueMs - otherMs || item - other)
    expected.push(entries.shift()![1])
  }
  for (let item = 0; item < 2000; item++) {
    const dueMs = random(100)
    heap.push(dueMs, item)
    entries.push([dueMs, item])
    if (item % 3 === 0) take()
  }
  while (entries.length > 0) take()
  assert.deepEqual(taken, expected)
  assert.deepEqual([heap.size, heap.firstMs, heap.shift()], [0, Number.POSITIVE_INFINITY, undefined])
})
