import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STORE_MEMORY_BYTES, StoreMemory } from '../../../src/transport/memory/store-memory.ts'

const memory = (): StoreMemory => new StoreMemory(new SharedArrayBuffer(STORE_MEMORY_BYTES))

test('log memory: each value has a place of its own', () => {
  const log = memory()
  assert.equal(log.isOpen, false)
  log.open(7)
  log.stored = 3
  log.parked = 2
  log.recipients = 'groups'
  log.refused()
  assert.deepEqual(
    [log.isOpen, log.member, log.stored, log.parked, log.recipients, log.refusals],
    [true, 7, 3, 2, 'groups', 1],
  )
})

test('log memory: a thread begins until the lease is over, and always where there is none', () => {
  const log = memory()
  assert.equal(log.isTrusted, true)
  log.trustFor(60_000)
  assert.equal(log.isTrusted, true)
  log.trustFor(-1)
  assert.equal(log.isTrusted, false)
  log.trustFor(0)
  assert.equal(log.isTrusted, false)
})
