import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import type { Heddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onPostgres, onSqlite } from './databases.ts'

const take = async (heddle: Heddle, id: string, options = {}): Promise<string> =>
  (await post(heddle, '/orders', { id, options })).id

test('what transactions publish goes to the streams, also after an end of the store and of the process', async (t) => {
  const redis = await redisServer(t, { own: true, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  if (redis === null) return
  const store = (await onSqlite(t))!
  const env = { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const streamed = async (): Promise<number> => {
    const client = new Redis({ host: redis.host, port: redis.port, password: redis.password })
    try {
      const info = (await client.xinfo('STREAM', 'heddle:event:order.taken')) as unknown[]
      return Number(info[info.indexOf('entries-added') + 1])
    } finally {
      client.disconnect()
    }
  }
  const stored = async () => (await store.rows('SELECT seq FROM heddle_delivery')).length

  const first = await store.start(env)
  const ids = [await take(first, 'a')]
  await until(async () => (await handledBy(first)).length === 2, 'the order handled')
  await isEmpty(store)
  assert.equal(await streamed(), 1)

  await redis.stop('SIGKILL')
  for (const id of ['b', 'c', 'd']) ids.push(await take(first, id))
  assert.equal(await stored(), 3, 'they wait in the log')
  await redis.start()
  await until(async () => (await handledBy(first)).length === 8, 'all handled')
  await isEmpty(store)

  await redis.stop('SIGKILL')
  for (const id of ['e', 'f']) ids.push(await take(first, id))
  await kill(first)
  assert.equal(await stored(), 2)
  await redis.start()
  const second = await store.start(env)
  await until(async () => (await handledBy(second)).length === 12, 'all handled')
  await isEmpty(store)

  const handled = await handledBy(second)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  assert.deepEqual(
    names.map((name) => handled.find(({ order_id }) => order_id === name)?.event_id),
    ids,
  )
})

test('what transactions publish goes to the streams whatever the number of names: it is committed', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return
  const store = (await onSqlite(t, fileURLToPath(new URL('../../fixtures/effects', import.meta.url))))!
  const heddle = await store.start({ ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams', EVENT_BUS_MAX_NAMES: '1' })
  const names = ['work.first', 'work.second', 'work.third']
  for (const event of names) await post(heddle, '/events', { event, payload: {} })
  await isEmpty(store)
  const client = new Redis({ host: redis.host, port: redis.port, password: redis.password })
  const sizes = await Promise.all(names.map((name) => client.xlen(`heddle:event:${name}`)))
  client.disconnect()
  assert.deepEqual(sizes, [1, 1, 1])
})

test('a stream that Redis refuses holds up the events of no other, and gets its own in order once it is mended', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return
  const client = new Redis({ host: redis.host, port: redis.port, password: redis.password })
  t.after(() => client.disconnect())
  await client.set('heddle:event:work.bad', 'no stream')
  const store = (await onSqlite(t, fileURLToPath(new URL('../../fixtures/effects', import.meta.url))))!
  const heddle = await store.start({ ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' })
  const BAD = 200
  for (let n = 0; n < BAD; n++) await post(heddle, '/events', { event: 'work.bad', payload: { n } })
  for (let n = 0; n < 3; n++) await post(heddle, '/events', { event: 'work.good', payload: { n } })
  await until(async () => (await client.xlen('heddle:event:work.good')) === 3, 'the others')
  const told = heddle.logs.filter(({ msg }) => msg.startsWith('Redis does not take work.bad of a transaction'))
  assert.ok(told.length >= 1 && told.length <= 2, told.map(({ msg }) => msg).join('; '))
  // Their outcomes are committed a little later.
  await until(
    async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === BAD,
    'the rows of the refused ones alone',
  )
  await client.del('heddle:event:work.bad')
  await isEmpty(store)
  const entries = await client.xrange('heddle:event:work.bad', '-', '+')
  const numbers = entries.map(([, fields]) => JSON.parse(fields[fields.indexOf('p') + 1]!).n)
  assert.deepEqual(numbers, [...Array(BAD).keys()])
})

test('events with a key or a delay are delivered from the database, also while Redis is away', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return
  const store = (await onSqlite(t))!
  const heddle = await store.start({ ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' })
  const alone = /^Events with a key or a delay stay in the process that publishes them/
  assert.equal(heddle.logs.filter(({ msg }) => alone.test(msg)).length, 1)
  await redis.stop('SIGKILL')
  await take(heddle, 'a', { key: 'k' })
  await post(heddle, '/events', { event: 'order.handled', payload: { id: 'c' }, options: { key: 'k' } })
  await post(heddle, '/events', { event: 'order.handled', payload: { id: 'd' }, options: { delayMs: 10 } })
  const names = async () => (await handledBy(heddle)).map(({ order_id }) => order_id)
  await until(async () => {
    const handled = await names()
    return ['a', 'c after', 'd after'].every((name) => handled.includes(name))
  }, 'all handled')
})

test('what is stored is delivered after another driver was chosen, and after the first one is chosen again', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return
  const store = (await onSqlite(t))!
  const names = async (heddle: Heddle) => (await handledBy(heddle)).map(({ order_id }) => order_id)
  const database = { EVENT_BUS_DRIVER: 'database' }
  const streams = { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const first = await store.start({ ...database, HOLD: 'wait' })
  await take(first, 'a')
  await kill(first)
  const second = await store.start(streams)
  await until(async () => (await names(second)).includes('a after'), 'the first order')
  await redis.stop('SIGKILL')
  await take(second, 'b')
  await take(second, 'c', { delayMs: 3_600_000, key: 'k' })
  await kill(second)
  const third = await store.start(database)
  await until(async () => (await names(third)).includes('b after'), 'the second order')
  assert.deepEqual((await names(third)).sort(), ['a', 'a after', 'b', 'b after'])
  const stored = async () => (await store.rows('SELECT seq FROM heddle_delivery')).length
  await until(async () => (await stored()) === 1, 'the one that waits for its time')
})

test('what the last process with Redis leaves for it goes to the subscribers of a process without', async (t) => {
  const redis = await redisServer(t, { own: true })
  const store = await onPostgres(t)
  if (redis === null || store === null) return
  const first = await store.start({ ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: 'first' })
  redis.freeze()
  const id = await take(first, 'left')
  const second = await store.start({ EVENT_BUS_DRIVER: 'database', REPLICA_ID: 'second' })
  await first.stop()
  await until(async () => (await handledBy(second)).some(({ event_id }) => event_id === id), 'the order handled')
  await isEmpty(store)
  redis.thaw()
})
