import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RETRY_MAX_DELAY_MS, retryDelayMs } from '../../../src/primary/events/queues.ts'

test('the pause before a retry doubles with each attempt, is any part of that, and has a cap', () => {
  const longest = (attempt: number): number => retryDelayMs(attempt, 100, () => 1)
  assert.deepEqual([1, 2, 3, 4].map(longest), [100, 200, 400, 800])
  assert.deepEqual([13, 60, 2000].map(longest), [RETRY_MAX_DELAY_MS, RETRY_MAX_DELAY_MS, RETRY_MAX_DELAY_MS])
  assert.deepEqual(
    [0, 0.25, 0.5].map((part) => retryDelayMs(3, 100, () => part)),
    [0, 100, 200],
  )
})
