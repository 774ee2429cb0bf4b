import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isKnownDead, ownIdentity } from '../../../src/primary/event-store/process-identity.ts'
import { type Holder, ReplicaLock } from '../../../src/primary/redis-streams/replica-lock.ts'
import { replicaKey } from '../../../src/runtime/redis-streams/keys.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const KEY = replicaKey('a')

/** Of the name `a`. What it has it gives back after the test. */
function lockOf(
  t: TestContext,
  redis: RedisClient,
  options: Partial<ConstructorParameters<typeof ReplicaLock>[2]> = {},
): ReplicaLock {
  const onLost = () => assert.fail('lost')
  const lock = new ReplicaLock(redis, 'a', { onLost, ttlMs: 3000, renewMs: 300, ...options })
  t.after(() => lock.release().catch(() => {}))
  return lock
}

/** What another process writes there. */
const holder = (more: object): string => JSON.stringify({ token: 'x', since: 'then', ...ownIdentity(), ...more })

testOnStreams('a name is held by one, renewed, and given back', async ({ redis }, t) => {
  const lock = lockOf(t, redis, { ttlMs: 600, renewMs: 100 })
  await lock.acquire()
  assert.equal(lock.isHeld, true)
  const token = await redis.command<string>('get', [KEY])
  assert.equal(JSON.parse(token).pid, process.pid)
  // It lapses unless somebody renews it.
  const endMs = performance.now() + 1200
  while (performance.now() < endMs) {
    assert.equal(await redis.command('get', [KEY]), token)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await lock.release()
  assert.equal(await redis.command('exists', [KEY]), 0)
  await lock.release()
})

testOnStreams(
  'of many that start at once with one name, one gets it, and the others are told who has it',
  async ({ redis }, t) => {
    const locks = Array.from({ length: 10 }, () => lockOf(t, redis))
    const outcomes = await Promise.allSettled(locks.map((lock) => lock.acquire()))
    const { host, since } = JSON.parse(await redis.command('get', [KEY])) as Holder
    const told = `The REPLICA_ID a is in use by process ${process.pid} on ${host}, which has had it since ${since}: give each replica a REPLICA_ID of its own`
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    assert.equal(refused.length, 9)
    for (const { code, message } of refused) assert.deepEqual([code, message], ['REPLICA_ID_TAKEN', told])
    assert.equal(locks.filter((lock) => lock.isHeld).length, 1)
  },
)

testOnStreams('a name whose process on this host has ended is taken over at once', async ({ redis }, t) => {
  await redis.command('set', [KEY, holder({ pid: 999_999_999 }), 'PX', 3_600_000])
  const next = lockOf(t, redis, { ttlMs: 3_600_000 })
  await next.acquire()
  assert.equal(next.isHeld, true)
})

testOnStreams('a name whose holder on another host is gone is taken when it has lapsed', async ({ redis }, t) => {
  await redis.command('set', [KEY, holder({ host: 'elsewhere.example' }), 'PX', 1500])
  const beganMs = performance.now()
  await lockOf(t, redis, { ttlMs: 1500, renewMs: 100 }).acquire()
  assert.ok(performance.now() - beganMs >= 1000)
})

testOnStreams('a name that somebody set by hand for ever is refused', async ({ redis }, t) => {
  await redis.command('set', [KEY, 'me'])
  const refused = { code: 'REPLICA_ID_TAKEN', message: /in use by me: give/ }
  await assert.rejects(lockOf(t, redis, { ttlMs: 300 }).acquire(), refused)
})

testOnStreams('a name that has lapsed is taken again; a holder learns that another has it', async ({ redis }, t) => {
  const lost: unknown[] = []
  const lock = lockOf(t, redis, { ttlMs: 20_000, renewMs: 50, onLost: ({ pid }) => lost.push(pid) })
  await lock.acquire()
  await redis.command('del', [KEY])
  await until(() => redis.command('exists', [KEY]), 'it is there again')
  assert.equal(lock.isHeld, true)
  // As after it has stood still for longer than it lasts.
  await redis.command('set', [KEY, holder({ pid: 7 })])
  await until(() => lost.length > 0, 'it knows')
  assert.deepEqual([lost, lock.isHeld], [[7], false])
})

test('a process knows others of its own system that have ended, and takes nothing else for dead', () => {
  const own = ownIdentity()
  assert.equal(isKnownDead(own), false)
  assert.equal(isKnownDead({ ...own, pid: process.ppid, started: ownIdentity().started }), own.started !== null)
  assert.equal(isKnownDead({ ...own, pid: 999_999_999 }), true)
  assert.equal(isKnownDead({ ...own, pid: 999_999_999, host: 'elsewhere.example' }), false)
  assert.equal(isKnownDead({ ...own, pid: 999_999_999, scope: 'another container' }), false)
  assert.equal(isKnownDead({ ...own, pid: -1 }), false)
  assert.equal(isKnownDead({}), false)
})
