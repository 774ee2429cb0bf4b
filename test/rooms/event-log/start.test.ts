import assert from 'node:assert/strict'
import pg from 'pg'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
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
  for (const name of ['_migrations', 'heddle_event', 'heddle_job', 'heddle_idempotency'])
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
  await store.rows('DROP INDEX heddle_event_due; DROP TABLE heddle_idempotency; DROP SEQUENCE heddle_order')
  const second = await store.start({ EVENT_BUS_DRIVER: 'database' })
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  const made = await store.rows(
    `SELECT relname FROM pg_class WHERE relname IN ('heddle_event_due', 'heddle_idempotency', 'heddle_order')`,
  )
  assert.equal(made.length, 3)
})
