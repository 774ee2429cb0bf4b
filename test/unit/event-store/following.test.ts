import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import type { FollowState } from '../../../src/contracts/event-bus.ts'
import { Following } from '../../../src/runtime/event-store/following.ts'

const limitsOf = async (characters: number): Promise<number[]> => {
  const limits: number[] = []
  const chunk = JSON.stringify('x'.repeat(characters - 2))
  const lastN = 300
  const query = async (_: string, [, , after, limit]: number[]) => {
    limits.push(limit!)
    return Array.from({ length: Math.min(limit!, lastN - after!) }, (_, n) => ({ n: after! + 1 + n, chunk }))
  }
  const state: FollowState = {
    version: '1',
    subscribers: [{ subscriber: 'g', state: 'done', attempt: 1, lastN }],
  }
  const database = { query } as unknown as Queryable
  const following = new Following({ followed: async () => state, database: () => database }, 'evt_1', {})
  let chunks = 0
  for await (const { chunk } of following) if (chunk !== undefined) chunks++
  assert.equal(chunks, lastN)
  return limits
}

test('Following: reads few large chunks at a time, and many small ones', async () => {
  assert.deepEqual(await limitsOf(100), [4, 100, 100, 100])
  const large = await limitsOf(65_536)
  assert.equal(Math.max(...large), 4)
})
