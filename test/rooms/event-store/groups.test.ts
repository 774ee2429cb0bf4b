import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { isEmpty, type LogStore, onPostgres, onSqlite, STORES } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const ABSENT = { ...DATABASE, HOLD: 'no shipping' }
const GROUP = 'shop.ParkOrders.onShipped'
const DAY_MS = 86_400_000

/** Ids in the order in which a subscriber had them. */
const had = (heddle: Heddle, name = 'shipping') => heddle.logs.filter(({ msg }) => msg === name).map(({ id }) => id)
const told = (heddle: Heddle, start: string) => heddle.logs.some(({ msg }) => msg.startsWith(start))

async function publish(heddle: Heddle, ...ids: string[]): Promise<void> {
  for (const id of ids)
    await post(heddle, '/events', { event: 'order.shipped', payload: { id }, options: { key: 'van 1' } })
}

const groupsOf = async (store: LogStore) =>
  (await store.rows<{ grp: string }>("SELECT grp FROM heddle_group WHERE event = 'order.shipped' ORDER BY grp")).map(
    ({ grp }) => grp,
  )

test('a process serves when its subscribers are stored, however slowly (PostgreSQL)', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const first = await store.start(ABSENT)
  await until(async () => (await groupsOf(store)).length === 1, 'the tables are there, and one subscriber')
  assert.equal(await first.stop(), 0)
  await store.rows(`
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$;
    CREATE TRIGGER slowly BEFORE INSERT ON heddle_group FOR EACH STATEMENT EXECUTE FUNCTION slowly()`)
  const second = await store.start(DATABASE)
  assert.deepEqual(await groupsOf(store), [GROUP, `${GROUP}Too`])
  assert.equal(await second.stop(), 0)
})

for (const [name, storeOf] of STORES) {
  test(`a subscriber that nobody has had for seven days is forgotten with what waits for it (${name})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const first = await store.start(DATABASE)
    await until(async () => (await groupsOf(store)).length === 2, 'the groups are known')
    await first.stop()
    const second = await store.start(ABSENT)
    await publish(second, 'a', 'b')
    await until(() => had(second, 'shipping-too').length === 2, 'the other subscriber')
    await until(() => told(second, `${GROUP} is not here: `), 'it is said')
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 2, 'the other is done')
    await second.stop()
    await store.rows(`UPDATE heddle_group SET seen_ms = ${Date.now() - 8 * DAY_MS} WHERE grp = '${GROUP}'`)
    const third = await store.start(ABSENT)
    await until(() => told(third, `${GROUP}, a subscriber of order.shipped, has not been here for 7 days: 2 `), 'told')
    await isEmpty(store)
    await publish(third, 'c')
    await isEmpty(store)
    assert.deepEqual(await groupsOf(store), ['shop.ParkOrders.onShippedToo'])
    assert.equal(await third.stop(), 0)
  })
}

test('a subscriber that comes back while the process runs gets what it has missed, before what is new', async (t) => {
  const plugin = (body: string) => `export default class Ship {
  constructor({ event_bus, logger }) {
    ${body}
    this.logger = logger
    event_bus.subscribe('order.shipped', this.ship)
  }
  ship({ id }) {
    this.logger.info('shipping late', { id })
  }
}
`
  const late = await folderOf(t, { 'late/plugins/ship.js': plugin('') })
  const store = (await onSqlite(t))!
  const heddle = await startHeddle(t, {
    lanes: 1,
    domains: [store.domains, late],
    env: { ...DATABASE, SQLITE_PATH: store.path! },
  })
  const reload = async (body: string): Promise<void> => {
    const reloads = () => heddle.logs.filter(({ msg }) => msg.startsWith('Reloaded')).length
    const before = reloads()
    await writeFile(join(late, 'late/plugins/ship.js'), plugin(body))
    heddle.process.kill('SIGHUP')
    await until(() => reloads() > before, 'the new code')
  }
  const shipped = () => had(heddle, 'shipping late')
  await publish(heddle, 'before')
  await until(() => shipped().length === 1, 'the first')
  await reload('return')
  const missed = Array.from({ length: 300 }, (_, n) => `missed ${n}`)
  await publish(heddle, ...missed)
  let isOver = false
  const news: string[] = []
  const publishing = (async () => {
    for (let n = 0; !isOver; n++) {
      news.push(`new ${n}`)
      await publish(heddle, `new ${n}`)
    }
  })()
  await reload('')
  await until(() => shipped().length > missed.length + 10, 'what was missed, and some that are new')
  isOver = true
  await publishing
  const expected = ['before', ...missed, ...news]
  await until(() => shipped().length === expected.length, 'all')
  assert.deepEqual(shipped(), expected)
  await isEmpty(store)
})

test('what waits for a subscriber that is missing leaves room for publishers', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start(DATABASE)
  await until(async () => (await groupsOf(store)).length === 2, 'the groups are known')
  await first.stop()
  const env = { ...ABSENT, EVENT_BUS_MAX_STORED: '20' }
  const second = await store.start(env)
  await publish(second, ...Array.from({ length: 12 }, (_, n) => `order ${n}`))
  await until(() => had(second, 'shipping-too').length === 12, 'the other subscriber')
  await second.stop()
  // It looks when it has read what is left: on a busy machine the second one has done so already.
  const third = await store.start(env)
  const dropped = `${GROUP}, a subscriber of order.shipped, is not here, and the event store is half full: 12 `
  await until(() => told(second, dropped) || told(third, dropped), 'told')
  await isEmpty(store)
  assert.equal(await third.stop(), 0)
})
