import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import type { FollowedEvent, FollowState } from '../../../src/contracts/event-bus.ts'
import { Following } from '../../../src/runtime/event-store/following.ts'

const stateOf = (version: number, lastN: number): FollowState => ({
  version: String(version),
  subscribers: [{ subscriber: 'group', state: version === 3 ? 'done' : 'running', attempt: 2, lastN }],
})

test('Following: the next chunk says how many were missed, also when none was there a moment ago', async () => {
  const states = [stateOf(1, 2), stateOf(2, 2), stateOf(3, 3)]
  const kept: { n: number; chunk: string }[] = []
  const following = new Following(
    {
      followed: async () => {
        const state = states.shift()!
        // Those of the first attempt are deleted: the second one has emitted nothing yet.
        if (state.version === '3') kept.push({ n: 3, chunk: '"third"' })
        return state
      },
      database: () => ({ query: async () => kept }) as unknown as Queryable,
    },
    'evt_1',
    {},
  )
  const items: FollowedEvent[] = []
  for await (const item of following) items.push(item)
  const chunks = items.flatMap(({ chunk, missed }) => (chunk === undefined ? [] : [{ chunk, missed }]))
  assert.deepEqual(chunks, [{ chunk: 'third', missed: 2 }])
  assert.equal(items.at(-1)?.id, 'group=3!')
})
