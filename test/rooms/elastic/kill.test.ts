import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { DeadLetter } from '../../../src/contracts/event-bus.ts'
import { Fleet, type Replica } from '../../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../../support/servers/both-of-suite.ts'
import { until } from '../../support/until.ts'

const NAME = 'replicas that are killed'
const CLAIM_IDLE_MS = 1000
const PATIENCE_MS = 30_000
const NEVER_CLAIMED = { EVENT_BUS_CLAIM_IDLE_MS: '86400000' }

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let a: Replica
  let b: Replica

  const publish = async (replica: Replica, event: string, body: object = {}): Promise<string[]> => {
    const { status, body: answer } = await replica.post(`/events/${event}`, body)
    assert.equal(status, 200, JSON.stringify(answer))
    return answer.data.ids
  }
  const isHandled = async (event: string, ids: readonly string[]): Promise<boolean> => {
    const seen = new Set((await fleet.seen(event)).map(({ event_id }) => event_id))
    return ids.every((id) => seen.has(id))
  }
  const letters = async (replica: Replica, event: string): Promise<DeadLetter[]> =>
    ((await replica.json('/system/dead-letters')).body as DeadLetter[]).filter((letter) => letter.event === event)

  test('boot', async () => {
    fleet = await Fleet.start(owner, {
      postgres,
      redis,
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(CLAIM_IDLE_MS) },
    })
    ;[a, b] = await Promise.all([fleet.replica('a', { lanes: 2 }), fleet.replica('b')])
  })

  test('an event that kills its lanes is a dead letter after three deaths, and its neighbours are handled', async () => {
    // Later: it must not take the lane that answers with it.
    const [poison, ...neighbours] = await publish(a, 'order.deadly', { count: 40, options: { delayMs: 500 } })
    const peaceful = await publish(b, 'order.taken', { count: 40 })
    await until(async () => (await letters(b, 'order.deadly')).length > 0, 'the dead letter')
    await until(() => isHandled('order.deadly', neighbours), 'the neighbours are handled')
    await until(() => isHandled('order.taken', peaceful), 'other events are handled')
    const [letter, ...more] = await letters(b, 'order.deadly')
    assert.deepEqual(more, [])
    assert.deepEqual([letter!.event_id, letter!.subscriber], [poison, 'fleet.ShipOrders'])
    assert.equal(letter!.black_box?.reason, 'exited')
    const deaths = (await fleet.seen('order.deadly', 'begins')).filter(({ event_id }) => event_id === poison)
    assert.equal(deaths.length, 3)
    assert.deepEqual(new Set((await letters(a, 'order.deadly')).map(({ id }) => id)), new Set([letter!.id]))
    const deleted = await a.json(`/system/dead-letters/${letter!.id}`, { method: 'DELETE' })
    assert.equal(deleted.status, 200)
    assert.deepEqual(await letters(b, 'order.deadly'), [])
  })

  test('a handler that blocks its lane for longer than others wait is not robbed, and runs once', async () => {
    const [id] = await publish(a, 'order.taken', { payload: { blockMs: 2 * CLAIM_IDLE_MS } })
    await until(() => isHandled('order.taken', [id!]), 'it has ended')
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'it is acknowledged')
    const runs = (await fleet.seen('order.taken', 'begins')).filter(({ event_id }) => event_id === id)
    assert.deepEqual(
      runs.map(({ attempt }) => attempt),
      [1],
    )
  })

  test('a killed replica that starts again with its name takes its own back at once, twice as well', async () => {
    const options = { lanes: 2, env: NEVER_CLAIMED }
    await a.stop()
    // It would take over what the other leaves.
    assert.equal(await b.stop(), 0)
    let c = await fleet.replica('c', options)
    // More than are taken over at a time.
    const ids = await publish(c, 'order.taken', { count: 250, payload: { ms: 4000 } })
    const isBegun = async (replica: string): Promise<boolean> =>
      (await fleet.seen('order.taken', 'begins')).some((row) => ids.includes(row.event_id) && row.replica === replica)
    await until(() => isBegun('c'), 'they are in hand')
    await c.kill()
    c = await fleet.replica('c', { ...options, env: { ...NEVER_CLAIMED, FLEET_REPLICA: 'c2' } })
    await until(() => isBegun('c2'), 'they are in hand again')
    await c.kill()
    assert.ok((await fleet.unfinished('order.taken')) > 200)
    c = await fleet.replica('c', options)
    await until(() => isHandled('order.taken', ids), 'all are handled')
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'all are acknowledged')
    assert.deepEqual(await letters(c, 'order.taken'), [])
    assert.equal(await c.stop(), 0)
  })

  test('an event that ends its process again and again is a dead letter, and those that were in hand with it are handled', async () => {
    const options = { env: NEVER_CLAIMED }
    const [stream, group] = ['heddle:event:order.deadly', 'fleet.ShipOrders.die']
    const first = await fleet.replica('d', options)
    const delayed = { count: 8, payload: { signal: 'SIGKILL', ms: 100 }, options: { delayMs: 300 } }
    const [poison, ...neighbours] = await publish(first, 'order.deadly', delayed)
    await once(first.process, 'exit')
    // As if it had been so three times for all of them, and twice for the one that was tried alone.
    const ids = (await fleet.redis.xpending(stream, group, '-', '+', 100)).map((row) => (row as [string])[0])
    assert.equal(ids.length, delayed.count)
    const claim = (times: number, of: string[]) =>
      fleet.redis.call('XCLAIM', stream, group, 'd:0', '0', ...of, 'RETRYCOUNT', String(times), 'JUSTID')
    await claim(3, ids)
    await claim(5, ids.slice(0, 1))

    const second = await fleet.spawn('d', options)
    await once(second.child, 'exit')
    const last = await fleet.replica('d', options)
    await until(() => isHandled('order.deadly', neighbours), 'the neighbours are handled')
    const [letter, ...more] = await letters(last, 'order.deadly')
    assert.deepEqual([letter!.event_id, more], [poison, []])
    assert.match(letter!.error, /given out 6 times/)
    await until(async () => (await fleet.unfinished('order.deadly')) === 0, 'all are acknowledged')
    // It would take its share of what the next one is to have alone.
    assert.equal(await last.stop(), 0)
  })

  test('a process that ends leaves to the next one what is still to be tried alone', async () => {
    const options = { env: { ...NEVER_CLAIMED, SHUTDOWN_TIMEOUT_MS: String(2 * PATIENCE_MS) } }
    const [stream, group] = ['heddle:event:order.taken', 'fleet.ShipOrders.ship']
    const first = await fleet.replica('e', options)
    const ids = await publish(first, 'order.taken', { count: 6, payload: { ms: 2000 } })
    const pending = async () =>
      (await fleet.redis.xpending(stream, group, '-', '+', 100)).map((row) => (row as [string])[0])
    await until(async () => (await pending()).length === ids.length, 'they are in hand')
    await first.kill()
    const entries = await pending()
    await fleet.redis.call('XCLAIM', stream, group, 'e:0', '0', ...entries, 'RETRYCOUNT', '3', 'JUSTID')
    const second = await fleet.replica('e', options)
    const begun = async () =>
      (await fleet.seen('order.taken', 'begins')).filter(({ event_id }) => ids.includes(event_id))
    const before = (await begun()).length
    await until(async () => (await begun()).length > before, 'one of them is tried', 2 * PATIENCE_MS)
    const fromMs = performance.now()
    assert.equal(await second.stop(), 0)
    assert.ok(performance.now() - fromMs < PATIENCE_MS, 'the end waits for the one that is tried alone')
    const last = await fleet.replica('e', options)
    await until(() => isHandled('order.taken', ids), 'all are handled')
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'all are acknowledged')
    assert.deepEqual(await letters(last, 'order.taken'), [])
  })
})
