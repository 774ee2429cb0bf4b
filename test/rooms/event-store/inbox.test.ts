import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { type Database, describeOnDatabases } from '../../support/databases.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { dieAfterCommit, type Effects, effectsOf, isDoneOnce, namesAre } from './inbox.ts'
import { starterOn } from './lasting-database.ts'

describeOnDatabases('transactional subscribers', (database) => {
  test('a process that dies after the commit has done it once, where events are kept in the process', (t) =>
    isDoneOnce(t, database, 'in_process'))

  test('what a handler does before it throws is undone, each time', async (t) => {
    const { start } = await starterOn(t, database)
    const heddle = await start()
    await post(heddle, '/events', { event: 'work.wanted', payload: { name: 'a', failures: 2 } })
    const { effects } = await namesAre(heddle, 'a', 'a done')
    assert.equal(effects[0]!.attempt, 3)
  })

  test('an attempt that ends late and the one after it have one effect', async (t) => {
    const { start } = await starterOn(t, database)
    const heddle = await start()
    await post(heddle, '/events', { event: 'work.late', payload: { name: 'late' }, bare: true })
    await namesAre(heddle, 'late')
    // The later attempts have come to nothing when this one is done: transactions of a thread take turns.
    await post(heddle, '/events', { event: 'work.wanted', payload: { name: 'other' } })
    const { letters } = await namesAre(heddle, 'late', 'other', 'other done')
    assert.deepEqual(letters, [])
  })

  test('what is too old to come again is removed, but not of an event that is still in the log', async (t) => {
    const { start } = await starterOn(t, database)
    const heddle = await start({ EVENT_BUS_INBOX_KEEP_MS: '1000' })
    const { id } = await post(heddle, '/events', { event: 'work.held', payload: { name: 'held' } })
    const bare = { event: 'work.wanted', payload: { name: 'bare' }, bare: true }
    for (const event of [bare, { ...bare, bare: false }]) await post(heddle, '/events', event)
    await post(heddle, '/orders/brief', { item: 'a' }, { 'idempotency-key': 'brief' })
    await post(heddle, '/orders', { item: 'a' }, { 'idempotency-key': 'kept' })
    await until(async () => (await effectsOf(heddle)).effects.length === 6, 'all handled')
    let found: Effects | undefined
    await until(async () => {
      found = await effectsOf(heddle)
      return found.inbox.length === 1 && found.keys.length === 1
    }, 'the old rows removed')
    assert.deepEqual(found!.inbox, [{ event_id: id }])
    assert.deepEqual(found!.keys, [{ key: createHash('sha256').update('kept').digest('base64url') }])
  })

  test('events that want the same row at a time are each counted once', async (t) => {
    const { start } = await starterOn(t, database, 2)
    const heddle = await start()
    const events = Array.from({ length: 24 }, (_, n) => ({
      event: 'work.wanted',
      payload: { name: `n${n}`, counter: 'all' },
      bare: n % 2 === 0,
    }))
    await Promise.all(events.map((event) => post(heddle, '/events', event)))
    let found: Effects | undefined
    await until(async () => {
      found = await effectsOf(heddle)
      return found.effects.length >= 48
    }, '48 effects')
    assert.equal(new Set(found!.effects.map(({ name }) => name)).size, 48)
    assert.deepEqual(found!.counters, [{ name: 'all', value: 24 }])
    assert.deepEqual(found!.letters, [])
  })
})

test('a plugin of the primary that wants a transaction is told why it gets none', async (t) => {
  const { start } = await starterOn(t, { name: 'SQLite', env: async () => ({}) })
  const { logs } = await start()
  const fault = logs.find(({ msg }) => msg.includes('shop.WorkInPrimary'))?.msg
  assert.match(fault ?? '', /transaction: true is for plugins of the lanes/)
})

test('what the streams deliver again is done once', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  const env = {
    ...redis.env,
    EVENT_BUS_DRIVER: 'keyvalue_streams',
    REPLICA_ID: 'inbox',
    EVENT_BUS_CLAIM_IDLE_MS: '200',
  }
  const sqlite: Database = { name: 'SQLite', env: async () => ({}) }
  const { start } = await dieAfterCommit(t, sqlite, env, true)
  const second = await start()
  await post(second, '/events', { event: 'work.wanted', payload: { name: 'b' }, bare: true })
  let found: Effects | undefined
  const isDone = async () => {
    found = await effectsOf(second)
    return ['a', 'a done', 'b', 'b done'].every((wanted) => found!.effects.some(({ name }) => name === wanted))
  }
  await until(isDone, 'all effects')
  // Whatever publishes and notes what is done may be repeated: it has no transaction.
  const ofHandler = found!.effects.filter(({ name }) => !name.endsWith('done'))
  assert.deepEqual(
    ofHandler.map(({ name, attempt }) => [name, attempt]),
    [
      ['a', 1],
      ['b', 1],
    ],
  )
})
