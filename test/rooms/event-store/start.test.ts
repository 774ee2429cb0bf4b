import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { folderOf, temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { handledBy, onPostgres } from './databases.ts'

const testOnPostgres = testWith(onPostgres)

const NO_DDL = `
  CREATE FUNCTION refuse_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'DDL at a start: %', tg_tag; END $$;
  CREATE EVENT TRIGGER no_ddl ON ddl_command_start EXECUTE FUNCTION refuse_ddl()`

testOnPostgres('start: a current database gets no DDL, and waits for no open transaction', async (store) => {
  const first = await store.start({ EVENT_BUS_DRIVER: 'database' })
  await post(first, '/orders', { id: 'a' })
  const { host, port, user, password, database } = store.server!
  const open = new pg.Client({ host, port, user, password, database })
  open.on('error', () => {})
  await open.connect()
  await store.rows(NO_DDL)
  const tables = await store.rows<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
  )
  const names = tables.map(({ name }) => name)
  for (const name of ['_migrations', 'heddle_delivery', 'heddle_job', 'heddle_idempotency'])
    assert.ok(names.includes(name), name)
  // What every transaction that has written holds until its end.
  await open.query(`BEGIN; LOCK TABLE ${names.join(', ')} IN ROW EXCLUSIVE MODE`)
  const second = await store.start({ EVENT_BUS_DRIVER: 'database' })
  assert.deepEqual((await second.json('/readiness')).body.reasons, [])
  await post(first, '/orders', { id: 'b' })
  await post(second, '/orders', { id: 'c' })
  await until(async () => (await handledBy(first)).length === 6, 'the orders handled')
  await open.end()
  assert.equal(await second.stop(), 0)
  assert.equal(await first.stop(), 0)
})

testOnPostgres('start: tables, indexes and sequences that are missing are made', async (store) => {
  const first = await store.start({ EVENT_BUS_DRIVER: 'database' })
  assert.equal(await first.stop(), 0)
  await store.rows('DROP INDEX heddle_delivery_due; DROP TABLE heddle_idempotency, heddle_parked')
  const second = await store.start({ EVENT_BUS_DRIVER: 'database' })
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  const made = await store.rows(
    `SELECT relname FROM pg_class WHERE relname IN ('heddle_delivery_due', 'heddle_idempotency', 'heddle_parked')`,
  )
  assert.equal(made.length, 3)
})

testOnPostgres(
  'start: a process that was taken over before it delivers events opens the store anew',
  async (store, t) => {
    const going = join(temporaryFolder(t), 'going')
    const slow = `import { existsSync } from 'node:fs'
import { plugin } from '#heddle'

while (!existsSync(process.env.GOING!)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
export default plugin(() => {})
`
    const domains = await folderOf(t, { 'slow/plugins/boot-slowly.ts': slow })
    const first = await store.start({ EVENT_BUS_DRIVER: 'database', REPLICA_ID: 'first' })
    const starting = startHeddle(t, {
      domains: [domains, store.domains],
      lanes: 1,
      env: {
        ...store.server!.env,
        RDB_DATABASE: store.server!.database,
        TOOLS_DIR: await toolsDirWith(t, 'postgres'),
        EVENT_BUS_DRIVER: 'database',
        REPLICA_ID: 'second',
        LANE_STALL_MS: '60000',
        LANE_ENV: 'HOLD,GOING',
        GOING: going,
      },
    })
    type Row = { id: string }
    const known = () => store.rows<Row>("SELECT id FROM heddle_member WHERE replica = 'second'")
    const [{ id }] = await until(async () => {
      const rows = await known()
      return rows.length === 1 ? (rows as [Row]) : undefined
    }, 'it has joined')
    // As another process does that finds its lease lapsed.
    await store.rows(`DELETE FROM heddle_member WHERE id = ${id}`)
    await until(async () => (await known()).some((row) => row.id !== id), 'it has another number', 40_000)
    writeFileSync(going, '')
    const second = await starting
    await until(async () => (await second.json('/readiness')).body.ready, 'ready', 40_000)
    await post(second, '/orders', { id: 'a' })
    await post(second, '/events', { event: 'order.taken', payload: { id: 'b' }, options: { key: 'k' } })
    await until(async () => (await handledBy(second)).length === 4, 'all handled')
    assert.equal(await second.stop(), 0)
    assert.equal(await first.stop(), 0)
  },
)
