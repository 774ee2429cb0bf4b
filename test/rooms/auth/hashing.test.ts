import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { HashThreads } from '../../../src/tools/auth/passwords.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const PASSWORD = 'correct horse battery staple'

function signUp(heddle: Heddle, n: number, signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ name: 'Ada', email: `ada${n}@example.com`, password: PASSWORD })
  const headers = { 'content-type': 'application/json' }
  return heddle.fetch('/users', { method: 'POST', headers, body, ...(signal === undefined ? {} : { signal }) })
}

const hashed = async (heddle: Heddle): Promise<{ calls: number; errors: number }> =>
  (await heddle.json('/system/metrics')).body.data['auth.hashPassword']

test('passwords beyond the queue are refused at once, and the log is not filled with it', async (t) => {
  const env = { SIGNUP_MAX_PER_ADDRESS: '1000', AUTH_HASH_THREADS: '1', AUTH_HASH_QUEUE: '2' }
  const heddle = await startHeddle(t, { domains: [SHIPPED], lanes: 2, env })
  const order: number[] = []
  const answers = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const answer = await signUp(heddle, n)
      order.push(answer.status)
      return { answer, body: (await answer.json()) as { error: string } }
    }),
  )
  const refused = answers.filter(({ answer }) => answer.status === 503)
  // One is hashed and two wait, for all lanes together; on a slow machine another comes after the first has ended, and those two wait for too long.
  assert.ok(refused.length >= 7 && refused.length <= 11, order.join(' '))
  assert.deepEqual(order.slice(0, 5), [503, 503, 503, 503, 503], 'those that are refused do not wait')
  for (const { answer, body } of refused) {
    assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    assert.match(body.error, /^Too many passwords are being hashed: (2 wait already|it has waited 5 s)$/)
  }
  assert.equal((await signUp(heddle, 100)).status, 201, 'there is room again')
  assert.deepEqual(
    heddle.logs.filter(({ level }) => level >= 50),
    [],
  )
})

test('what waits for a request that is over is not hashed', async (t) => {
  const env = { SIGNUP_MAX_PER_ADDRESS: '1000', AUTH_HASH_THREADS: '1', AUTH_HASH_QUEUE: '50' }
  const heddle = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env })
  assert.equal((await signUp(heddle, 0)).status, 201)
  const leaving = new AbortController()
  const left = Array.from({ length: 20 }, (_, n) => signUp(heddle, n + 1, leaving.signal).catch(() => null))
  // Those that the service has not read when its clients leave are none of its requests.
  const areBegun = async () => {
    const ended = (await hashed(heddle)).calls - 1
    return ended + (await heddle.json('/system/lanes')).body[0].requests_in_flight === 20
  }
  await until(areBegun, 'the requests')
  leaving.abort()
  await Promise.all(left)
  // It comes after all of them. One that was over before it asked for its key has not asked.
  assert.equal((await signUp(heddle, 50)).status, 201)
  const { calls, errors } = await hashed(heddle)
  assert.ok(errors > 0 && calls - errors <= 12, `${calls - errors} of ${calls} hashed`)
})

test('a thread that dies costs the key that it derived, and is replaced', async (t) => {
  const threads = new HashThreads(1, 5)
  t.after(() => threads.close())
  const derivation = {
    password: Buffer.from('password'),
    salt: Buffer.from('salty salt'),
    keyBytes: 32,
    N: 2 ** 15,
    r: 8,
    p: 3,
  }
  const started = once(process, 'worker') as Promise<[Worker]>
  const lost = threads.derive('1', derivation)
  const next = threads.derive('2', derivation)
  const [thread] = await started
  void thread.terminate()
  await assert.rejects(lost, /has ended/)
  const { N, r, p } = derivation
  const key = scryptSync('password', 'salty salt', 32, { N, r, p, maxmem: 2 ** 26 })
  assert.deepEqual(Buffer.from(await next), key)
})

/** Takes some tens of milliseconds. */
const SLOW = {
  password: Buffer.from('password'),
  salt: Buffer.from('salty salt'),
  keyBytes: 32,
  N: 2 ** 14,
  r: 8,
  p: 1,
}

test('however many sign up at once, nobody is refused who would wait a short time', async (t) => {
  const threads = new HashThreads(1, 1000, 60_000)
  t.after(() => threads.close())
  await Promise.all(Array.from({ length: 60 }, (_, n) => threads.derive(`${n}`, { ...SLOW, N: 2 ** 10 })))
})

test('who would wait too long is refused, at once where that is known, and nobody waits longer', async (t) => {
  const WAIT_MS = 1000
  const threads = new HashThreads(1, 1000, WAIT_MS)
  t.after(() => threads.close())
  const arrived = async (id: string): Promise<{ isDone: boolean; tookMs: number }> => {
    const startMs = performance.now()
    const isDone = await threads.derive(id, SLOW).then(
      () => true,
      (error: { code: string; message: string }) => {
        assert.equal(error.code, 'AUTH_BUSY')
        assert.match(error.message, /the last of \d+ waits \d+ s|it has waited 1 s/)
        return false
      },
    )
    return { isDone, tookMs: performance.now() - startMs }
  }
  // Nobody knows yet how long one takes: all wait, those for nothing as long as they may.
  const first = await Promise.all(Array.from({ length: 200 }, (_, n) => arrived(`first ${n}`)))
  const refused = first.filter(({ isDone }) => !isDone)
  assert.ok(refused.length > 0 && first.length > refused.length, `${refused.length} of 200 refused`)
  for (const { tookMs } of refused) assert.ok(tookMs >= WAIT_MS - 50, `refused after ${tookMs} ms`)
  const second = await Promise.all(Array.from({ length: 200 }, (_, n) => arrived(`second ${n}`)))
  const atOnce = second.filter(({ isDone, tookMs }) => !isDone && tookMs < WAIT_MS / 2)
  assert.ok(atOnce.length > second.filter(({ isDone }) => !isDone).length / 2, 'most of them know at once')
  assert.ok(second.some(({ isDone }) => isDone))
})
