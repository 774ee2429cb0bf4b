import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { type Heddle, type StartOptions, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { type PoolMode, pgBouncerServer } from '../../support/servers/pgbouncer.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { programFor } from '../../support/servers/provide.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { fixture } from '../../support/started-service.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const NAME = 'processes behind PgBouncer'
const ORDERS = 300
const CALLERS = 20
const POOLED = { RDB_POOLER: 'transaction' }

describeOnPostgres(NAME, async (server) => {
  const owner = { after: () => {}, skip: (reason: string) => void test(NAME, { skip: reason }) }
  if ((await programFor(owner, 'pgbouncer')) !== null) runTests(server)
})

function runTests(server: PostgresServer): void {
  async function behind(t: TestContext, mode: PoolMode, settings: Record<string, string> = {}) {
    const pooler = (await pgBouncerServer(t, server, mode, settings))!
    const place = {
      RDB_DATABASE: await server.createDatabase(),
      TOOLS_DIR: await toolsDirWith(t, 'postgres'),
      AUTH_SECRET_KEY: 'a secret key for the tests of poolers',
    }
    const optionsOf = (env: Record<string, string>, lanes = 1): StartOptions => ({
      domains: [fixture('pooled'), SHIPPED],
      lanes,
      env: { ...pooler.env, ...place, ...env },
    })
    return {
      pooler,
      start: (env: Record<string, string>, lanes?: number) => startHeddle(t, optionsOf(env, lanes)),
      spawn: (env: Record<string, string>) => spawnHeddle(t, optionsOf(env)),
    }
  }

  /** Each of them once, some at a time. @returns how often each was answered so */
  async function each(ask: (id: number) => Promise<string>): Promise<Map<string, number>> {
    const answers = new Map<string, number>()
    let last = 0
    const caller = async (): Promise<void> => {
      while (last < ORDERS) {
        const answer = await ask(++last)
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    return answers
  }

  const read = (heddle: Heddle) => async (id: number) => {
    const { status, body } = await heddle.json(`/orders/${id}`)
    return status === 200 && body.id === id && body.placed_at === '2026-01-01T00:00:00.000Z'
      ? 'own'
      : JSON.stringify(body)
  }
  const remove = (heddle: Heddle) => async (id: number) => {
    const { status, body } = await heddle.json(`/orders/${id + 10_000}`, { method: 'DELETE' })
    return status === 200 && body.rowCount === 0 ? 'own' : JSON.stringify(body)
  }
  const ALL_OWN = new Map([['own', ORDERS]])

  for (const mode of ['transaction', 'statement'] as const) {
    test(`${mode} pooler: a start without RDB_POOLER ends with 78, the setting and the way out`, async (t) => {
      const { spawn } = await behind(t, mode)
      const { child, errors } = await spawn({ NODE_ENV: 'production' })
      assert.deepEqual(await once(child, 'close'), [78, null])
      assert.match(
        errors.join(''),
        /RDB_POOLER is none, and .* set RDB_POOLER=transaction, let the pooler keep sessions/,
      )
    })
  }

  test('RDB_POOLER=transaction: two processes with two lanes have their own answers, events and jobs', async (t) => {
    const { start } = await behind(t, 'transaction', { default_pool_size: '8' })
    const first = await start({ ...POOLED, REPLICA_ID: 'a' }, 2)
    const second = await start({ ...POOLED, REPLICA_ID: 'b' }, 2)
    const [removed, found] = await Promise.all([each(remove(first)), each(read(second))])
    assert.deepEqual(removed, ALL_OWN)
    assert.deepEqual(found, ALL_OWN)
    const placed = await each(async (id) => {
      const { body } = await (id % 2 === 0 ? first : second).post('/orders', { id: id + 1000 })
      return body.id === id + 1000 ? 'own' : JSON.stringify(body)
    })
    assert.deepEqual(placed, ALL_OWN)
    const counts = async () => (await second.json('/counts')).body
    await until(async () => (await counts()).handled >= ORDERS, 'all events handled', 60_000)
    await until(async () => (await counts()).runs >= 2, 'runs of the job')
    const { orders, handled, different } = await counts()
    assert.deepEqual({ orders, handled, different }, { orders: 2 * ORDERS, handled: ORDERS, different: ORDERS })
    for (const heddle of [first, second]) {
      assert.deepEqual((await heddle.json('/system/health/ready')).body.data.reasons, [])
      await until(() => heddle.logs.some(({ msg }) => /RDB_POOLER=transaction: .* LISTEN/.test(msg)), 'the note')
    }
    // What one process hears of another, it hears without LISTEN.
    await first.stop()
    assert.equal((await second.post('/orders', { id: 5000 })).status, 200)
    await until(async () => (await counts()).handled > ORDERS, 'the event of the process that is left')
  })

  test('session pooler: two processes have their own answers', async (t) => {
    const { start } = await behind(t, 'session', { default_pool_size: '40' })
    const first = await start({ REPLICA_ID: 'a' }, 2)
    const second = await start({ REPLICA_ID: 'b' }, 2)
    const [removed, found] = await Promise.all([each(remove(first)), each(read(second))])
    assert.deepEqual(removed, ALL_OWN)
    assert.deepEqual(found, ALL_OWN)
    assert.deepEqual((await second.json('/system/health/ready')).body.data.reasons, [])
  })

  test('a pooler that keeps no sessions any more: no answer of another, and the process is not ready', async (t) => {
    const { pooler, start } = await behind(t, 'session', { default_pool_size: '40' })
    const heddle = await start({ HEALTH_CHECK_INTERVAL: '0.2' }, 2)
    assert.deepEqual(await each(read(heddle)), ALL_OWN)
    await pooler.reload({ pool_mode: 'transaction', default_pool_size: '2' })
    const isKnown = async (): Promise<boolean> => {
      for (const answer of (await each(read(heddle))).keys()) if (answer !== 'own') assert.match(answer, /error/)
      const { body } = await heddle.json('/system/health/ready')
      return JSON.stringify(body).includes('RDB_POOLER')
    }
    await until(isKnown, 'the reason in the readiness', 60_000)
  })
}
