import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { startHeddle } from '../../support/heddle.ts'
import { keepAsking } from '../../support/load.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const MAX_POOL = 8
/** Time between an answer and the next request of one caller. */
const EVERY_MS = 20

describeOnPostgres('lanes on PostgreSQL', runTests, { own: true })

function runTests(server: PostgresServer): void {
  async function start(t: TestContext, lanes: number, more: Record<string, string> = {}) {
    const { host, port, user, password } = server
    const database = await server.createDatabase()
    const admin = new pg.Client({ host, port, user, password, database })
    admin.on('error', () => {})
    await admin.connect()
    t.after(() => admin.end())
    const env = { ...server.env, RDB_DATABASE: database, TOOLS_DIR: await toolsDirWith(t, 'postgres'), ...more }
    const heddle = await startHeddle(t, { lanes, env: { ...env, RDB_MAX_POOL: String(MAX_POOL) } })
    const names = async () => {
      const { rows } = await admin.query(
        `SELECT application_name AS name FROM pg_stat_activity WHERE application_name LIKE 'heddle %' ORDER BY name`,
      )
      return rows.map(({ name }) => String(name))
    }
    return { heddle, names }
  }

  test('a process keeps to its connections, also while lanes are replaced under load', async (t) => {
    const { heddle, names } = await start(t, 2)
    const ask = async () => (await heddle.fetch('/users/nobody')).status
    const { statuses, stop } = keepAsking(ask, { clients: 24, everyMs: EVERY_MS })
    await until(() => (statuses.get(404) ?? 0) > 200, 'load')
    let most = 0
    const look = async () => {
      let seen = await names()
      // The server needs a moment for the end of a connection that was closed.
      for (let again = 0; seen.length > MAX_POOL && again < 50; again++) {
        await new Promise((resolve) => setTimeout(resolve, 40))
        seen = await names()
      }
      most = Math.max(most, seen.length)
      return seen
    }
    for (let round = 0; round < 2; round++) {
      const isReloaded = () => heddle.logs.filter(({ msg }) => msg.startsWith('Reloaded in')).length > round
      heddle.process.kill('SIGHUP')
      await until(
        async () => {
          await look()
          return isReloaded()
        },
        'reloaded',
        60_000,
      )
    }
    await until(
      async () => new Set((await look()).map((name) => name.split(' ').slice(0, 3).join(' '))).size >= 3,
      'all threads',
    )
    await stop()
    assert.deepEqual([...statuses.keys()], [404])
    assert.ok(most <= MAX_POOL, `${most} connections`)
    assert.equal(await heddle.stop(), 0)
    await until(async () => (await names()).length === 0, 'all closed')
  })
}
