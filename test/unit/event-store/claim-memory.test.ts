import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLAIM_MEMORY_BYTES, ClaimMemory } from '../../../src/transport/memory/claim-memory.ts'

const shared = (): [ClaimMemory, ClaimMemory] => {
  const memory = new SharedArrayBuffer(CLAIM_MEMORY_BYTES)
  return [new ClaimMemory(memory), new ClaimMemory(memory)]
}

test('all threads of a process have one name for it, and no other process has it', () => {
  const [one, two] = shared()
  assert.match(one.process, /^[0-9a-f]{16}$/)
  assert.equal(one.process, two.process)
  assert.notEqual(one.process, shared()[0].process)
})

test('threads that are gone are known for a long time, and the primary is never one of them', () => {
  const [primary, lane] = shared()
  primary.threadGone(0)
  for (let threadId = 1; threadId <= 300; threadId++) primary.threadGone(threadId)
  assert.deepEqual(
    [0, 44, 45, 300, 301].map((threadId) => lane.isGone(threadId)),
    [false, false, true, true, false],
  )
})
