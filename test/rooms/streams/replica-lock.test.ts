import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isKnownDead, ownIdentity } from '../../../src/primary/streams/process-identity.ts'
import { type Holder, ReplicaLock } from '../../../src/primary/streams/replica-lock.ts'
import { replicaKey } from '../../../src/runtime/streams/keys.ts'
import { until } from '../../support/until.ts'
import { type Store, testOnStreams } from './fixture.ts'

const HOLDER = fileURLToPath(new URL('./holder-process.ts', import.meta.url))
const never = () => assert.fail('lost')

interface HolderProcess {
  process: ChildProcess
  lines: string[]
}

function holder(t: { after(end: () => void): void }, store: Store, replicaId: string, ttlMs: number): HolderProcess {
  const { port, password } = store.server
  const child = spawn(process.execPath, ['--import', 'tsx', HOLDER, String(port), password, replicaId, String(ttlMs)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  t.after(() => {
    child.kill('SIGKILL')
  })
  const lines: string[] = []
  createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line))
  return { process: child, lines }
}

const says = (holder: HolderProcess, beginning: string) =>
  until(() => holder.lines.find((line) => line.startsWith(beginning)), beginning, 30_000)

testOnStreams('a name is held by one, renewed, and given back', async ({ redis }, t) => {
  const lock = new ReplicaLock(redis, 'a:1', { onLost: never, ttlMs: 2000, renewMs: 100 })
  t.after(() => lock.release().catch(() => {}))
  await lock.acquire()
  assert.equal(lock.isHeld, true)
  const token = await redis.command<string>('get', [replicaKey('a:1')])
  assert.equal(JSON.parse(token).pid, process.pid)
  // It lapses unless somebody renews it.
  const endMs = performance.now() + 3000
  while (performance.now() < endMs) {
    assert.equal(await redis.command('get', [replicaKey('a:1')]), token)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await lock.release()
  assert.equal(await redis.command('exists', [replicaKey('a:1')]), 0)
  await lock.release()
})

testOnStreams('a second process with the name is refused, and told who has it', async (store, t) => {
  const first = new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 3000, renewMs: 300 })
  t.after(() => first.release().catch(() => {}))
  await first.acquire()
  const second = holder(t, store, 'a', 3000)
  const line = await says(second, 'refused')
  const { host, since } = JSON.parse(await store.redis.command('get', [replicaKey('a')])) as Holder
  assert.equal(
    line,
    `refused The REPLICA_ID a is in use by process ${process.pid} on ${host}, which has had it since ${since}: give each replica a REPLICA_ID of its own`,
  )
  assert.equal(first.isHeld, true)
})

testOnStreams('of many that start at once with one name, one gets it and the others are refused', async (store, t) => {
  const locks = Array.from(
    { length: 10 },
    () => new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 3000, renewMs: 300 }),
  )
  t.after(() => Promise.all(locks.map((lock) => lock.release().catch(() => {}))))
  const outcomes = await Promise.allSettled(locks.map((lock) => lock.acquire()))
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.equal(refused.length, 9)
  for (const { reason } of refused) assert.equal(reason.code, 'REPLICA_ID_TAKEN')
  assert.equal(locks.filter((lock) => lock.isHeld).length, 1)
})

testOnStreams('a name whose process on this host was killed is taken over at once', async (store, t) => {
  const dead = holder(t, store, 'a', 3_600_000)
  await says(dead, 'held')
  dead.process.kill('SIGKILL')
  await once(dead.process, 'exit')
  const next = new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 3_600_000 })
  t.after(() => next.release().catch(() => {}))
  await next.acquire()
  assert.equal(next.isHeld, true)
})

testOnStreams('a name whose holder on another host is gone is taken when it has lapsed', async ({ redis }, t) => {
  const other = JSON.stringify({
    token: 'x',
    host: 'elsewhere.example',
    pid: 1,
    scope: null,
    started: null,
    since: 'then',
  })
  await redis.command('set', [replicaKey('a'), other, 'PX', 1500])
  const beganMs = performance.now()
  const lock = new ReplicaLock(redis, 'a', { onLost: never, ttlMs: 1500, renewMs: 100 })
  t.after(() => lock.release().catch(() => {}))
  await lock.acquire()
  assert.ok(performance.now() - beganMs >= 1000)
})

testOnStreams('a name that somebody set by hand for ever is refused', async (store) => {
  await store.redis.command('set', [replicaKey('a'), 'me'])
  const lock = new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 300 })
  await assert.rejects(lock.acquire(), { code: 'REPLICA_ID_TAKEN', message: /in use by me: give/ })
})

testOnStreams(
  'a holder that was frozen for longer than it lasts learns that another has the name',
  async (store, t) => {
    const frozen = holder(t, store, 'a', 900)
    await says(frozen, 'held')
    frozen.process.kill('SIGSTOP')
    const next = new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 20_000, renewMs: 100 })
    t.after(() => next.release().catch(() => {}))
    await next.acquire()
    frozen.process.kill('SIGCONT')
    assert.equal(await says(frozen, 'lost'), `lost ${process.pid}`)
    assert.equal(next.isHeld, true)
  },
)

testOnStreams('a name that has lapsed is taken again', async (store, t) => {
  const lock = new ReplicaLock(store.redis, 'a', { onLost: never, ttlMs: 20_000, renewMs: 50 })
  t.after(() => lock.release().catch(() => {}))
  await lock.acquire()
  await store.redis.command('flushall', [])
  await until(() => store.redis.command('exists', [replicaKey('a')]), 'it is there again')
  assert.equal(lock.isHeld, true)
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
