import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Piscina } from 'piscina'
import { pgBouncerServer } from '../../support/servers/pgbouncer.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { postgresDb } from './fixture.ts'
import { ORDERS, type OrderResult, type OrderTask } from './order-thread.ts'

/** What releases up to 1.20 of PgBouncer refuse unless they are told to ignore it. */
const IGNORED = 'options,statement_timeout,idle_in_transaction_session_timeout'

describeOnPostgres('PostgreSQL behind a pooler', runTests)

function runTests(server: PostgresServer): void {
  function threadsOf(t: TestContext) {
    const threads = new Piscina<OrderTask, OrderResult>({
      filename: new URL('./order-thread.ts', import.meta.url).href,
      maxThreads: 2,
      concurrentTasksPerWorker: 1,
      atomics: 'disabled',
    })
    threads.on('error', () => {})
    t.after(() => threads.destroy())
    return threads
  }

  test('transaction pooler: no statement gets the answer of another, whoever sends it', async (t) => {
    const settings = { default_pool_size: '3', ignore_startup_parameters: IGNORED }
    const pooler = await pgBouncerServer(t, server, 'transaction', settings)
    if (pooler === null) return
    const database = await server.createDatabase()
    const direct = postgresDb(t, server, database)
    await direct.execute('CREATE TABLE orders (id INTEGER PRIMARY KEY)')
    await direct.execute(`INSERT INTO orders SELECT generate_series(1, ${ORDERS})`)
    const threads = threadsOf(t)
    const { host, port, user, password } = pooler
    const task = { server: { host, port, user, password }, database, rounds: 40 }
    const results = await Promise.all(
      (['delete', 'read'] as const).map((statement) => threads.run({ ...task, statement })),
    )
    for (const { wrong } of results) assert.deepEqual(wrong, [])
    assert.deepEqual(await direct.query('SELECT count(*) AS n FROM orders'), [{ n: ORDERS }])
  })
}
