import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE_MS, releaseLockOfThread, WriteLock } from '../../../src/transport/memory/write-lock.ts'

/** A lock that is never given ends the wait with false, so it fails the test instead of hanging it. */
function patient(): () => boolean {
  const untilMs = performance.now() + 3000
  return () => performance.now() > untilMs
}
/** An Atomics.waitAsync alone does not keep a process alive. */
async function alive<T>(work: Promise<T>): Promise<T> {
  const keeper = setInterval(() => {}, 1000)
  return work.finally(() => clearInterval(keeper))
}

function twoOwners() {
  const memory = new SharedArrayBuffer(64)
  return { memory, first: new WriteLock(memory, 1), second: new WriteLock(memory, 2) }
}

test('one owner has the lock at a time, and a waiter gets it on release', async () => {
  const { first, second } = twoOwners()
  assert.equal(first.tryAcquire(), true)
  assert.equal(second.tryAcquire(), false)
  const waiting = second.acquire(patient())
  first.release()
  assert.equal(await alive(waiting), true)
  assert.equal(first.tryAcquire(), false)
  second.release()
})

test('an owner that releases while another waits lets it go first', async () => {
  const { first, second } = twoOwners()
  assert.equal(first.tryAcquire(), true)
  const waiting = second.acquire(patient())
  first.release()
  assert.equal(first.tryAcquire(), false, 'it yields although the lock is free')
  assert.equal(await alive(waiting), true)
  second.release()
  assert.equal(await alive(first.acquire(patient())), true)
})

test('an owner that is silent for longer than its lease loses the lock; one that renews keeps it', async (t) => {
  const { first, second } = twoOwners()
  first.tryAcquire()
  const renewing = setInterval(() => first.renew(), 50)
  t.after(() => clearInterval(renewing))
  const untilMs = performance.now() + LEASE_MS * 1.5
  assert.equal(await alive(second.acquire(() => performance.now() > untilMs)), false)
  clearInterval(renewing)
  assert.equal(await alive(second.acquire(patient())), true)
  first.release()
  assert.equal(first.tryAcquire(), false, 'the late release of the old owner changes nothing')
})

test('the lock of a dead thread can be released from outside at once', async () => {
  const { memory, second } = twoOwners()
  const dead = new WriteLock(memory, 7 + 1)
  dead.tryAcquire()
  const waiting = second.acquire(patient())
  const startMs = performance.now()
  releaseLockOfThread(memory, 7)
  assert.equal(await alive(waiting), true)
  assert.ok(performance.now() - startMs < LEASE_MS)
})

test('who has not the lock cannot renew the lease of who has it', async () => {
  const { first, second } = twoOwners()
  first.tryAcquire()
  const renewing = setInterval(() => second.renew(), 50)
  try {
    const untilMs = performance.now() + 3 * LEASE_MS
    assert.equal(await alive(second.acquire(() => performance.now() > untilMs)), true, 'the silent owner has lost it')
  } finally {
    clearInterval(renewing)
  }
})
