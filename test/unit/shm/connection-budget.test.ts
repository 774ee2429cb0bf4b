import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CONNECTION_BUDGET_BYTES,
  ConnectionBudget,
  giveBackOfThread,
} from '../../../src/transport/memory/connection-budget.ts'

function budgets(limit: number, ...threads: number[]) {
  const memory = new SharedArrayBuffer(CONNECTION_BUDGET_BYTES)
  return { memory, of: threads.map((thread) => new ConnectionBudget(memory, limit, thread + 1)) }
}

test('all threads together keep to the limit, and what one gives another may take', () => {
  const { of } = budgets(3, 0, 1)
  const [one, two] = of as [ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), one.tryTake(), two.tryTake()], [true, true, true])
  assert.deepEqual([one.tryTake(), two.tryTake()], [false, false])
  one.give()
  assert.deepEqual([two.tryTake(), one.tryTake()], [true, false])
})

test('a thread that has none gets one beyond the limit', () => {
  const { of } = budgets(2, 0, 1, 2)
  const [one, two, three] = of as [ConnectionBudget, ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), one.tryTake(), two.tryTake(), three.tryTake()], [true, true, true, true])
  assert.deepEqual([two.tryTake(), three.tryTake()], [false, false])
})

test('what a thread had that has ended is free, and its place too', () => {
  const { memory, of } = budgets(2, 0, 1)
  const [one, two] = of as [ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), two.tryTake(), one.tryTake()], [true, true, false])
  giveBackOfThread(memory, 1)
  assert.equal(one.tryTake(), true)
  for (let thread = 2; thread < 2000; thread++) {
    new ConnectionBudget(memory, 2, thread + 1).tryTake()
    giveBackOfThread(memory, thread)
  }
  assert.equal(one.tryTake(), false)
})
