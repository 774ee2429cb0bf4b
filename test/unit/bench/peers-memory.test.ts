import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMet } from '../../../bench/bench-case.ts'
import { memoryRows } from '../../../bench/peers/memory.ts'

const mb = (...values: number[]): number[] => values.map((value) => value * 2 ** 20)

test('a further lane takes half of what four lanes take more than two', () => {
  const rows = memoryRows({
    idleBytes: { 1: mb(120, 100, 105), 2: mb(130, 140, 135), 4: mb(205, 185, 195) },
    loadedBytes: mb(210),
  })
  assert.deepEqual(
    rows.map((row) => [row.heddle, isMet(row)]),
    [
      [105, true],
      [135, true],
      [30, false],
      [210, false],
    ],
  )
})

test('where the runtime was not run, no figure of its memory is told', () => {
  const rows = memoryRows({ idleBytes: {}, loadedBytes: [] })
  assert.deepEqual(
    rows.map((row) => [row.heddle, isMet(row)]),
    [
      [null, null],
      [null, null],
      [null, null],
      [null, null],
    ],
  )
})
