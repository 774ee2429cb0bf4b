import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Fleet, type Replica, suiteOwner } from '../../support/replicas.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'

const NAME = 'what replicas find in the store, or do not find'
const ANSWERING = fileURLToPath(new URL('./answering', import.meta.url))
const CLAIM_IDLE_MS = 1000

describeOnPostgres(NAME, async (postgres) => {
  const owner = suiteOwner()
  let redis: RedisServer | null = null
  let fleet: Fleet
  let a: Replica
  let b: Replica

  const says = (replica: Replica, pattern: RegExp): boolean => replica.logs.some(({ msg }) => pattern.test(msg))
  const order = (replica: Replica, number: number) => replica.post('/orders', { number })
  const isHandled = async (id: string): Promise<boolean> =>
    (await fleet.seen('order.taken')).some(({ event_id }) => event_id === id)
  /** A new order goes all the way. */
  const flows = async (replica: Replica, number: number): Promise<void> => {
    const id = await until(
      async () => (await order(replica, number)).body.data?.id as string | undefined,
      'an order is taken',
      30_000,
    )
    await until(() => isHandled(id), 'it is handled', 30_000)
  }

  test('boot', async (t) => {
    redis = await redisServer({ after: owner.after, skip: (reason) => t.skip(reason) }, { own: true })
    if (redis === null) return
    fleet = await Fleet.start(owner, {
      postgres,
      redis,
      env: { EVENT_BUS_CLAIM_IDLE_MS: String(CLAIM_IDLE_MS) },
    })
    a = await fleet.replica('a')
  })

  const scenario = (name: string, run: () => Promise<void>): void => {
    test(name, async (t) => (redis === null ? t.skip('there is no Redis') : run()))
  }

  scenario('a key of another type in the place of a stream is told of, and the rest goes on', async () => {
    await fleet.redis.set('heddle:event:order.odd', 'no stream')
    const { status } = await a.post('/events/order.odd', { payload: {} })
    assert.equal(status, 503)
    await flows(a, 2000)
    await fleet.redis.del('heddle:event:order.odd')
    assert.equal((await a.post('/events/order.odd', { payload: {} })).status, 200)
  })

  scenario('a key of another type in the place of a stream that is read keeps nothing else from its way', async () => {
    const stream = 'heddle:event:order.noted'
    await fleet.redis.del(stream)
    await fleet.redis.set(stream, 'no stream')
    for (let n = 0; n < 5; n++) await flows(a, 2100 + n)
    await until(() => says(a, /heddle:event:order\.noted is not looked after: .*delete it/), 'it is told of')
    b = await fleet.replica('b', { domains: [ANSWERING] })
    const ready = await b.json('/system/health/ready')
    assert.equal(ready.status, 503)
    assert.match(JSON.stringify(ready.body), /heddle:event:order\.noted: .*delete it/)
    await flows(b, 2200)

    await fleet.redis.del(stream)
    await until(async () => (await b.fetch('/system/health/ready')).status === 200, 'b is ready')
    await a.post('/events/order.noted', {})
    await until(async () => (await fleet.seen('order.noted')).length > 0, 'it is handled')
  })

  scenario('a second process with a name that is in use ends with 78 and says so; the first goes on', async () => {
    const { child, errors, logs } = await fleet.spawn('a')
    const [code] = await once(child, 'exit')
    const said = errors.join('') + JSON.stringify(logs)
    assert.equal(code, 78, said)
    assert.match(
      said,
      /REPLICA_ID a is in use by process \d+ on \S+, which has had it since .+: give each replica a REPLICA_ID of its own/,
    )
    await flows(a, 3000)
  })

  scenario('a store that is emptied while replicas run: groups are made again, and events flow again', async () => {
    await until(async () => (await a.json('/ask')).body.from === 'b', 'b answers')
    await fleet.redis.flushall()
    // Nobody has published anything that would tell.
    await until(async () => (await a.json('/ask')).body.from === 'b', 'b answers again')
    for (let n = 0; n < 10; n++) await flows(n % 2 === 0 ? a : b, 4000 + n)
    assert.ok(says(b, /groups? .*gone from the key-value store/))
    assert.equal(await b.stop(), 0)
  })

  scenario('a store that takes no writes refuses clearly, and is used again when it does', async () => {
    await fleet.redis.call('REPLICAOF', '127.0.0.1', '1')
    const refused = await until(async () => {
      const answer = await a.post('/orders', { number: 5000 })
      return answer.status === 201 ? null : answer
    }, 'orders are refused')
    assert.ok(refused.status >= 500)
    await fleet.redis.call('REPLICAOF', 'NO', 'ONE')
    await flows(a, 5001)
  })

  scenario('a full store refuses clearly, and nothing that it took is lost', async () => {
    await fleet.redis.config('SET', 'maxmemory-policy', 'noeviction')
    await fleet.redis.config('SET', 'maxmemory', '1mb')
    const refused = await until(async () => {
      const answer = await a.post('/orders', { number: 6000 })
      return answer.status === 201 ? null : answer
    }, 'orders are refused')
    assert.ok(refused.status >= 500)
    assert.equal((await a.fetch('/system/health/live')).status, 200)
    await fleet.redis.config('SET', 'maxmemory', '0')
    await flows(a, 6001)
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'none is left')
  })

  scenario('a cap that cuts what nobody has read is told of, loudly', async () => {
    const c = await fleet.replica('c', { env: { EVENT_BUS_STREAM_MAXLEN: '100' } })
    // A group that nobody reads as: what it has yet to be given is cut.
    await fleet.redis.xgroup('CREATE', 'heddle:event:order.capped', 'slow.Reader.read', '$', 'MKSTREAM')
    await c.post('/events/order.capped', { count: 400, payload: { text: 'x' } })
    await until(() => says(c, /EVENT_BUS_STREAM_MAXLEN has cut entries of heddle:event:order\.capped/), 'it is told of')
    const line = c.logs.find(({ msg }) => msg.startsWith('EVENT_BUS_STREAM_MAXLEN has cut'))!
    assert.ok(line.level >= 40)
    assert.equal(await c.stop(), 0)
  })

  scenario('a wrong password keeps a replica waiting, not from serving; once it is right, events flow', async () => {
    const password = 'not yet'
    const d = await fleet.replica('d', { env: { KV_PASSWORD: password } })
    assert.equal((await d.fetch('/system/health/live')).status, 200)
    const ready = await d.json('/system/health/ready')
    assert.equal(ready.status, 503)
    assert.match(JSON.stringify(ready.body), /KV_PASSWORD/)
    assert.ok((await order(d, 7000)).status >= 500)
    await fleet.redis.acl('SETUSER', 'default', `>${password}`)
    await until(async () => (await d.fetch('/system/health/ready')).status === 200, 'it is ready', 30_000)
    await flows(d, 7001)
    assert.equal(await d.stop(), 0)
  })

  scenario('a host that is not there: clearly said, and no crash', async () => {
    const e = await fleet.replica('e', { env: { KV_HOST: 'nowhere.invalid' } })
    const ready = await e.json('/system/health/ready')
    assert.equal(ready.status, 503)
    assert.match(JSON.stringify(ready.body), /nowhere\.invalid/)
    assert.equal((await e.fetch('/system/health/live')).status, 200)
    assert.equal(await e.stop(), 0)
  })
})
