import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { POISON_AFTER_TIMES } from '../../../src/primary/redis-streams/claims.ts'
import { encodeEntry } from '../../../src/runtime/redis-streams/entry.ts'
import { consumerOf, streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { type Heddle, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { type RedisServer, redisServer } from '../../support/servers/redis.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { eventOf } from '../../unit/events/fake-thread.ts'

const NAME = 'what a replica finds in the key-value store, or does not find'
const DOMAINS = [fileURLToPath(new URL('./corners', import.meta.url))]
const REPLICA = 'corners'
/** For what happens at once on an idle machine. */
const PATIENCE_MS = 30_000
const envelope = (more: string): string =>
  `{"id":"evt_broken","parent_id":null,"emitter":"x","request_id":null,"timestamp":1,"payload_keys":${more}}`
/** The first has the form of ours, and is no JSON. */
const STRANGE = [
  ['e', envelope('[foo],"replica":"r"'), 'p', '{}'],
  ['n', '1'],
  ['e', 'no json', 'p', '{}'],
  ['e', 'null', 'p', '{}'],
  ['e', '{}', 'p', '{}'],
  ['e', envelope('[]'), 'p', '{"broken'],
  ['', ''],
  ['p', '{}', 'e', '[]', 'o', '', 'a', 'x', 'r', 'y'],
]

interface Options {
  lanes?: number
  env?: Record<string, string>
}

describe(NAME, () => {
  const owner = suiteOwner()
  let server: RedisServer | null = null
  let redis: Redis
  /** Of one replica, one process after the other. */
  let replica: Heddle

  const optionsOf = ({ lanes = 1, env = {} }: Options) => ({
    domains: DOMAINS,
    lanes,
    env: {
      ...server!.env,
      EVENT_BUS_DRIVER: 'keyvalue_streams',
      EVENT_BUS_CLAIM_IDLE_MS: '2000',
      REPLICA_ID: REPLICA,
      // What is held is given back at once.
      SHUTDOWN_TIMEOUT_MS: '2000',
      ...env,
    },
  })
  const start = async (options: Options = {}): Promise<void> => {
    // A scenario that has failed may have left one.
    await (replica as Heddle | undefined)?.stop('SIGKILL')
    replica = await startHeddle(owner, optionsOf(options))
  }
  const soon = <T>(condition: () => T | Promise<T>, what: string) => until(condition, what, PATIENCE_MS)
  const post = async (path: string, body: object = {}): Promise<void> => {
    const answer = await replica.post(path, body)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }
  const publish = (event: string, payload: object) => post(`/publish/${event}`, { payload })
  const isRefused = async (event: string) => (await replica.post(`/publish/${event}`, { payload: {} })).status >= 500
  const said = (msg: string) => replica.logs.filter((line) => line.msg === msg)
  const numbers = (msg: string) => said(msg).map(({ n }) => n)
  const says = (pattern: RegExp) => replica.logs.find(({ msg }) => pattern.test(msg))
  /** A new event goes all the way. */
  const flows = async (n: string): Promise<void> => {
    await publish('quick', { n })
    await soon(() => numbers('quick').includes(n), `${n} is handled`)
  }
  const pending = async (event: string, group: string) =>
    (await redis.xpending(streamOf(event), group, '-', '+', 2000)) as [string, string, number, number][]
  const groupsOf = async (event: string) =>
    ((await redis.xinfo('GROUPS', streamOf(event))) as unknown[][]).map((group) => group[group.indexOf('name') + 1])
  const readiness = async () => (await replica.json('/readiness')).body as { ready: boolean; reasons?: string[] }
  const isReady = async () => (await readiness()).ready

  const scenario = (name: string, run: () => Promise<void>): void => {
    test(name, { timeout: 3 * PATIENCE_MS }, async (t) => (server === null ? t.skip('there is no Redis') : run()))
  }

  test('boot', async (t) => {
    server = await redisServer({ after: owner.after, skip: (reason) => t.skip(reason) }, { own: true })
    if (server === null) return
    redis = new Redis({ host: server.host, port: server.port, password: server.password })
    redis.on('error', () => {})
    owner.after(async () => redis.disconnect())
    await start({ lanes: 2 })
  })

  scenario('a plugin that is refused in a lane is given no events', async () => {
    await publish('clash', { n: 1 })
    await soon(() => said('clash at the first').length === 1, 'the healthy plugin has it')
    assert.deepEqual(await groupsOf('clash'), ['clash.First.onClash'])
    assert.deepEqual(said('clash at the second'), [])
  })

  scenario('who subscribes again and again is one group', async () => {
    for (let n = 0; n < 5; n++) {
      await post('/subscribe/again')
      await publish('again', { n: `again ${n}` })
      await soon(() => numbers('late ends').includes(`again ${n}`), 'it is handled')
      await post('/unsubscribe/again')
    }
    assert.deepEqual(await groupsOf('again'), ['corners.Work.late'])
  })

  scenario('what failed and is to be tried again comes though its subscriber has left meanwhile', async () => {
    const policy = { retries: 3, backoffMs: 1000 }
    await post('/subscribe/retried', policy)
    await publish('retried', { n: 'retried', fails: true })
    const holder = async () => (await pending('retried', 'corners.Work.late'))[0]?.[1]
    await soon(async () => (await holder()) === consumerOf(REPLICA), 'it waits')
    await post('/unsubscribe/retried')
    await publish('beacon', { n: 1 })
    await soon(() => said('beacon').length === 2, 'it has waited long enough')
    assert.deepEqual(numbers('late fails'), ['retried'])
    await post('/subscribe/retried', policy)
    await soon(() => numbers('late ends').includes('retried'), 'it comes')
    await soon(async () => (await holder()) === undefined, 'it is acknowledged')
  })

  scenario('an event that waits for its next try outlasts more restarts than a deadly one may', async () => {
    await publish('failing', { n: 1 })
    /** It was given out once since it was given back. */
    const isTaken = async () => {
      const [entry] = await pending('failing', 'corners.Work.failing')
      return entry?.[1] === consumerOf(REPLICA) && entry[3] === 1
    }
    await soon(async () => said('failing').length === 1 && (await isTaken()), 'it waits')
    // Given out once more by each start: the last one would find a deadly one.
    for (let n = 1; n <= POISON_AFTER_TIMES; n++) {
      assert.equal(await replica.stop(), 0)
      await start()
      await soon(isTaken, `it waits after ${n} restarts`)
      assert.deepEqual(said('failing'), [], 'its next attempt is not due')
    }
    assert.equal(await redis.xlen('heddle:dead'), 0)
  })

  scenario(
    'entries that are no events, though they look like ours, become dead letters and hold up nothing',
    async () => {
      const letters = async () =>
        (await redis.xrange('heddle:dead', '-', '+')).filter(([, fields]) => fields.includes('quick')).length
      const broken = (fields = STRANGE[0]!) => redis.xadd(streamOf('quick'), '*', ...fields)
      const isDone = async (count: number) =>
        said('quick').length === count && (await pending('quick', 'corners.Work.quick')).length === 0
      for (const [n, fields] of STRANGE.entries()) {
        await broken(fields)
        await publish('quick', { n })
      }
      const { length } = STRANGE
      await soon(async () => (await isDone(length)) && (await letters()) === length, 'the others are handled')

      await replica.stop()
      // One in hand of the former process, one that nobody has read.
      await broken()
      await redis.xreadgroup(
        ...(['GROUP', 'corners.Work.quick', consumerOf(REPLICA), 'STREAMS', streamOf('quick'), '>'] as const),
      )
      await broken()
      await redis.xadd(streamOf('quick'), '*', ...entryOf('quick', { n: 3 }))
      await start()
      await soon(
        async () => (await isDone(1)) && (await letters()) === length + 2,
        'the others are handled after a restart',
      )
      await soon(isReady, 'it is ready')
    },
  )

  const refusals = [
    {
      what: 'takes no writes',
      begin: () => redis.call('REPLICAOF', '127.0.0.1', '1'),
      end: () => redis.call('REPLICAOF', 'NO', 'ONE'),
      reason: /READONLY|read.only/i,
    },
    {
      what: 'is full',
      begin: () => redis.config('SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction'),
      end: () => redis.config('SET', 'maxmemory', '0'),
      reason: /OOM|maxmemory|full/,
    },
  ]
  for (const { what, begin, end, reason } of refusals) {
    scenario(
      `a store that ${what} refuses, and keeps a replica that starts from being ready, not from serving`,
      async () => {
        await begin()
        await soon(() => isRefused('quick'), 'events are refused')
        await end()
        await flows(`${what} no more`)
        await soon(async () => (await pending('quick', 'corners.Work.quick')).length === 0, 'none is left')
        await replica.stop()
        await begin()
        await start()
        const { ready, reasons } = await readiness()
        assert.equal(ready, false)
        assert.match(JSON.stringify(reasons), reason)
        await end()
        await soon(isReady, 'it is ready')
        await flows(what)
      },
    )
  }

  scenario('a key of another type in the place of a stream is told of, and the rest goes on', async () => {
    await redis.set(streamOf('odd'), 'no stream')
    assert.equal((await replica.post('/publish/odd', { payload: {} })).status, 503)
    await redis.del(streamOf('odd'))
    await publish('odd', {})
    await redis.del(streamOf('beacon'))
    await redis.set(streamOf('beacon'), 'no stream')
    for (let n = 0; n < 5; n++) await flows(`beside it ${n}`)
    await soon(() => says(/heddle:event:beacon cannot be trimmed or checked: .*delete it/), 'it is told of')
    await start()
    const { ready, reasons } = await readiness()
    assert.equal(ready, false)
    assert.match(JSON.stringify(reasons), /heddle:event:beacon: .*delete it/)
    await flows('not ready')
    await redis.del(streamOf('beacon'))
    await soon(isReady, 'it is ready')
    await publish('beacon', { n: 1 })
    await soon(() => said('beacon').length === 2, 'its subscriber has it')
  })

  scenario('a second process with a name that is in use ends with 78 and says so; the first goes on', async () => {
    const { child, errors, logs } = await spawnHeddle(owner, optionsOf({}))
    const [code] = await once(child, 'close')
    const told = errors.join('') + JSON.stringify(logs)
    assert.equal(code, 78, told)
    const { pid } = replica.process
    assert.match(
      told,
      new RegExp(
        `REPLICA_ID corners is in use by process ${pid} on \\S+, which has had it since .+: give each replica a REPLICA_ID of its own`,
      ),
    )
    await flows('the first one')
  })

  scenario('a store that is emptied while a replica runs: groups are made again, and events flow again', async () => {
    await redis.flushall()
    // Nobody has published anything that would tell.
    await soon(async () => (await groupsOf('quick').catch(() => [])).length === 1, 'the group')
    await flows('emptied')
    await soon(() => says(/groups? .*missing from the key-value store/), 'it is told of')
  })

  scenario('a cap that cuts what nobody has read is told of, loudly', async () => {
    await start({ env: { EVENT_BUS_STREAM_MAXLEN: '100' } })
    // A group that nobody reads as: what it has yet to be given is cut.
    await redis.xgroup('CREATE', streamOf('capped'), 'slow.Reader.read', '$', 'MKSTREAM')
    await Promise.all(Array.from({ length: 400 }, (_, n) => publish('capped', { n })))
    const cut = await soon(
      () => says(/^EVENT_BUS_STREAM_MAXLEN has cut entries of heddle:event:capped/),
      'it is told of',
    )
    assert.ok(cut.level >= 40)
  })

  scenario('a wrong password keeps a replica waiting, not from serving; once it is right, events flow', async () => {
    const password = 'not yet'
    await start({ env: { KV_PASSWORD: password } })
    assert.match(JSON.stringify((await readiness()).reasons), /KV_PASSWORD/)
    assert.ok(await isRefused('quick'))
    await redis.acl('SETUSER', 'default', `>${password}`)
    await soon(isReady, 'it is ready')
    await flows('the right password')
  })

  scenario('a host that is not there: clearly said, and no crash', async () => {
    await start({ env: { KV_HOST: 'nowhere.invalid' } })
    const { ready, reasons } = await readiness()
    assert.equal(ready, false)
    assert.match(JSON.stringify(reasons), /nowhere\.invalid/)
    assert.equal(await replica.stop(), 0)
  })
})

/** As another process publishes it. */
function entryOf(event: string, payload: object & { n: number }): string[] {
  const id = `evt_${String(payload.n).padStart(6, '0')}`
  const payloadKeys = Object.keys(payload).join('\0')
  return encodeEntry(eventOf(id, { event, payloadKeys, payload: JSON.stringify(payload) }), 'elsewhere', null)
}
