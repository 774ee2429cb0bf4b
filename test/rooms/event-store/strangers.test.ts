import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, type LogStore, onPostgres } from './databases.ts'

const testWithStranger = testWith(withStranger)
const DATABASE = { EVENT_BUS_DRIVER: 'database' }

interface Database {
  store: LogStore
  /** Of the runtime: an ordinary role, which owns the database. */
  own: Record<string, string>
  /** Sends statements as a role that has no right. */
  stranger: pg.Client
  name: string
}

/** A database of an ordinary role, and another role beside it. */
async function withStranger(t: TestContext): Promise<Database | null> {
  const store = await onPostgres(t)
  if (store === null) return null
  const { host, port, database } = store.server!
  const name = `app_${randomBytes(4).toString('hex')}`
  await store.rows(`CREATE ROLE ${name} LOGIN PASSWORD 'own'; ALTER DATABASE ${database} OWNER TO ${name};
    ALTER SCHEMA public OWNER TO ${name}; CREATE ROLE ${name}_stranger LOGIN PASSWORD 'stranger'`)
  const stranger = new pg.Client({ host, port, database, user: `${name}_stranger`, password: 'stranger' })
  stranger.on('error', () => {})
  await stranger.connect()
  t.after(() => stranger.end())
  return { store, stranger, name, own: { ...DATABASE, RDB_USER: name, RDB_PASSWORD: 'own' } }
}

testWithStranger(
  'no advisory lock of a role without any right stops a publish, a start or a migration',
  async ({ store, own, stranger }) => {
    // Whoever uses one fails: so no number matters that a stranger could guess or see.
    const { rows } = await stranger.query(
      `SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ')' AS call FROM pg_proc WHERE proname ~ '^pg_(try_)?advisory'`,
    )
    assert.ok(rows.length > 10)
    for (const { call } of rows) await store.rows(`REVOKE EXECUTE ON FUNCTION ${call} FROM PUBLIC`)
    const first = await store.start({ ...own, REPLICA_ID: 'a' })
    await post(first, '/orders', { id: 'a' })
    const second = await store.start({ ...own, REPLICA_ID: 'b' })
    await post(second, '/events', { event: 'order.taken', payload: { id: 'b' }, options: { key: 'k' } })
    first.process.kill('SIGKILL')
    // What was handled, and not settled when its process was killed, is handled again.
    const kinds = async () =>
      new Set((await handledBy(second)).map(({ order_id, parent }) => `${order_id} ${parent === null}`))
    await until(async () => (await kinds()).size === 4, 'both orders handled')
    await isEmpty(store)
  },
)

testWithStranger(
  'a log that takes no events refuses with 503, and the process is not ready until it takes them',
  async ({ store, own, name }) => {
    const heddle = await store.start(own)
    await store.rows(`REVOKE INSERT ON heddle_delivery FROM ${name}`)
    for (const [path, body] of [
      ['/events', { event: 'order.taken', payload: { id: 'a' } }],
      ['/orders', { id: 'b' }],
    ] as const) {
      const { status, body: answer } = await heddle.post(path, body)
      assert.equal(status, 503, path)
      assert.match(answer.error, /The event was not stored: .*permission denied/)
    }
    const isReady = async () => (await heddle.json('/readiness')).body.ready
    await until(async () => !(await isReady()), 'not ready')
    const { reasons } = (await heddle.json('/readiness')).body
    assert.match(reasons.join(), /the event store takes no events: .*permission denied/)
    await store.rows(`GRANT INSERT ON heddle_delivery TO ${name}`)
    await until(isReady, 'ready')
    await post(heddle, '/orders', { id: 'c' })
    await until(async () => (await handledBy(heddle)).length === 2, 'the order handled')
    await isEmpty(store)
  },
)

testWithStranger(
  'what others make in a schema of the user’s name is not taken for the runtime’s own',
  async ({ store, own, stranger, name }) => {
    const first = await store.start({ ...own, HOLD: 'wait' })
    await post(first, '/orders', { id: 'a' })
    await kill(first)
    await store.rows(`GRANT CREATE ON DATABASE ${store.server!.database} TO ${name}_stranger`)
    await stranger.query(`CREATE SCHEMA ${name}; GRANT USAGE ON SCHEMA ${name} TO PUBLIC;
    CREATE TABLE ${name}.seen (who TEXT); GRANT ALL ON ${name}.seen TO PUBLIC;
    CREATE TABLE ${name}.heddle_group (event TEXT, grp TEXT, seen_ms BIGINT, PRIMARY KEY (event, grp)); GRANT ALL ON ${name}.heddle_group TO PUBLIC;
    CREATE FUNCTION ${name}.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ${name}.seen VALUES (current_user); RETURN NEW; END $$;
    CREATE TRIGGER look BEFORE INSERT ON ${name}.heddle_group FOR EACH ROW EXECUTE FUNCTION ${name}.look()`)
    const second = await store.start(own)
    await until(async () => (await handledBy(second)).length === 2, 'the order that was stored handled')
    await isEmpty(store)
    assert.deepEqual((await stranger.query(`SELECT who FROM ${name}.seen`)).rows, [], 'the trigger has not run')
  },
)

testWithStranger(
  'a start is refused where a table of the runtime belongs to a role that the user is not in',
  async ({ store, own, stranger, name }) => {
    await store.rows(`GRANT CREATE ON SCHEMA public TO ${name}_stranger`)
    await stranger.query(
      'CREATE TABLE heddle_group (event TEXT, grp TEXT, seen_ms BIGINT, PRIMARY KEY (event, grp)); GRANT ALL ON heddle_group TO PUBLIC',
    )
    const { child, errors } = await store.spawn(own)
    assert.deepEqual(await once(child, 'close'), [78, null])
    assert.match(errors.join(''), new RegExp(`heddle_group in the schema public belongs to the role ${name}_stranger`))
    await store.rows(`GRANT ${name}_stranger TO ${name}`)
    await store.start(own)
  },
)

testWithStranger('RDB_SCHEMA is where all tables are, for several services in one database', async ({ store, own }) => {
  const { host, port, database } = store.server!
  const inUrl = {
    DATABASE_URL: `postgres://${own.RDB_USER}:own@${host}:${port}/${database}?options=-c%20search_path%3Dsecond`,
  }
  const first = await store.start({ ...own, RDB_SCHEMA: 'first-one' })
  const second = await store.start({ ...own, ...inUrl })
  for (const [n, heddle] of [first, second].entries()) {
    await post(heddle, '/orders', { id: `${n}` })
    await until(async () => (await handledBy(heddle)).length === 2, 'its own order handled')
  }
  const rows = await store.rows<{ schema: string }>(
    "SELECT schemaname AS schema FROM pg_tables WHERE tablename IN ('heddle_delivery', '_migrations', 'orders') ORDER BY 1",
  )
  assert.deepEqual(
    rows.map(({ schema }) => schema),
    ['first-one', 'first-one', 'first-one', 'second', 'second', 'second'],
  )
})
