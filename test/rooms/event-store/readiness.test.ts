import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Heddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { type LogStore, onPostgres, STORES } from './databases.ts'

const readiness = async (heddle: Heddle): Promise<{ ready: boolean; reasons: string[] }> =>
  (await heddle.json('/readiness')).body

const isReady = (heddle: Heddle) => until(async () => (await readiness(heddle)).ready, 'it is ready', 60_000)

const isNotReady = (heddle: Heddle, reason: RegExp) =>
  until(async () => {
    const { ready, reasons } = await readiness(heddle)
    return !ready && reason.test(reasons.join())
  }, `it is not ready: ${reason}`)

const order = async (heddle: Heddle, id: string) => (await heddle.post('/orders', { id })).status

async function locked({ server }: LogStore, table: string): Promise<() => Promise<unknown>> {
  const { host, port, user, password, database } = server!
  const client = new pg.Client({ host, port, user, password, database })
  client.on('error', () => {})
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  return () => client.end()
}

/** How a server takes no writes. @returns ends it */
const REFUSALS: Record<string, (store: LogStore) => Promise<() => Promise<unknown>>> = {
  'is read-only by default': async ({ rows }) => {
    await rows('ALTER SYSTEM SET default_transaction_read_only = on')
    await rows('SELECT pg_reload_conf()')
    return async () => {
      await rows('SET default_transaction_read_only = off')
      await rows('ALTER SYSTEM RESET default_transaction_read_only')
      await rows('SELECT pg_reload_conf()')
    }
  },
  'has a lock on the log': (store) => locked(store, 'heddle_delivery'),
  'is stopped': async ({ server }) => {
    await server!.stop('immediate')
    return () => server!.start()
  },
}

const DRIVERS = ['database', 'in_process', 'keyvalue_streams'] as const

/** The driver, and what it needs. Null where there is no such server. */
async function driverOf(t: TestContext, driver: (typeof DRIVERS)[number]): Promise<Record<string, string> | null> {
  if (driver !== 'keyvalue_streams') return { EVENT_BUS_DRIVER: driver }
  const redis = await redisServer(t, { own: true })
  return redis === null ? null : { ...redis.env, EVENT_BUS_DRIVER: driver }
}

for (const driver of DRIVERS)
  test(`EVENT_BUS_DRIVER=${driver}: a process is not ready while PostgreSQL takes no writes`, async (t) => {
    const [store, env] = [await onPostgres(t, true), await driverOf(t, driver)]
    if (store === null || env === null) return
    const heddle = await store.start(env)
    assert.equal(await order(heddle, 'first'), 201)
    for (const [what, refuse] of Object.entries(REFUSALS)) {
      const end = await refuse(store)
      const refused = order(heddle, what)
      await isNotReady(heddle, /event bus: the event store (?:takes no events|cannot be used)/)
      await end()
      // What waits for the lock goes on.
      assert.equal(await refused, what.includes('lock') ? 201 : 503, what)
      await isReady(heddle)
      assert.equal(await order(heddle, `after: ${what}`), 201)
    }
  })

/** How publishers cannot read who subscribes. */
const WITHOUT_GROUPS: typeof REFUSALS = {
  'are locked': (store) => locked(store, 'heddle_group'),
  'are gone': async ({ rows }) => {
    await rows('ALTER TABLE heddle_group RENAME TO heddle_group_away')
    return () => rows('ALTER TABLE heddle_group_away RENAME TO heddle_group')
  },
}

test('readiness: names the event store while its groups are locked or gone on PostgreSQL', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const heddle = await store.start({ EVENT_BUS_DRIVER: 'database' })
  for (const [what, refuse] of Object.entries(WITHOUT_GROUPS)) {
    const end = await refuse(store)
    const refused = order(heddle, what)
    await isNotReady(heddle, /event bus: the event store takes no events/)
    await end()
    assert.equal(await refused, what.includes('lock') ? 201 : 503, what)
    await isReady(heddle)
    assert.equal(await order(heddle, `after: ${what}`), 201)
  }
})

for (const [name, make] of STORES)
  for (const driver of DRIVERS)
    test(`EVENT_BUS_DRIVER=${driver} on ${name}: a process is not ready while migrations are pending`, async (t) => {
      const [store, env] = [await make(t), await driverOf(t, driver)]
      if (store === null || env === null) return
      const heddle = await store.start({ ...env, DB_AUTO_MIGRATE: 'false' })
      const { ready, reasons } = await readiness(heddle)
      assert.equal(ready, false)
      assert.match(reasons.join(), /tool db: migrations are pending, and DB_AUTO_MIGRATE is false: shop\/001/)
      await store.migrate()
      await isReady(heddle)
      assert.equal(await order(heddle, 'a'), 201)
    })
