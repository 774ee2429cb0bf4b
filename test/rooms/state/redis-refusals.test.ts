import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const PLUGIN = `import { plugin } from '#heddle'

export default plugin(({ http, state, event_bus }) => {
  const calls = {
    set: () => state.set('a', 1),
    increment: () => state.increment('n'),
    compareAndSet: () => state.compareAndSet('b', null, 1),
  }
  http.post('/publish', async () => ({ done: await event_bus.publish('kept.event', {}) }))
  http.post('/state/:call', async ({ call }) => ({ done: await calls[call as keyof typeof calls]() }))
})
`

/** How a server refuses all writes, and how it takes them again. Nobody listens on port 1. */
const REFUSALS: Record<string, [refuse: string[][], take: string[][]]> = {
  OOM: [[['config', 'set', 'maxmemory', '1']], [['config', 'set', 'maxmemory', '0']]],
  READONLY: [[['replicaof', '127.0.0.1', '1']], [['replicaof', 'no', 'one']]],
  MASTERDOWN: [
    [
      ['config', 'set', 'replica-serve-stale-data', 'no'],
      ['replicaof', '127.0.0.1', '1'],
    ],
    [['replicaof', 'no', 'one']],
  ],
  NOREPLICAS: [[['config', 'set', 'min-replicas-to-write', '1']], [['config', 'set', 'min-replicas-to-write', '0']]],
  BUSY: [[['eval', 'while true do end', '0']], [['script', 'kill']]],
}

test('state and streams: while the store refuses writes, calls are 503 with Retry-After, and the process is not ready', async (t) => {
  const server = await redisServer(t, { args: ['--maxmemory-policy', 'noeviction', '--busy-reply-threshold', '50'] })
  if (server === null) return
  const { host, port, password } = server
  const connect = (): Redis => {
    const redis = new Redis({ host, port, password, enableReadyCheck: false })
    redis.on('error', () => {})
    t.after(() => redis.disconnect())
    return redis
  }
  const [admin, script] = [connect(), connect()]
  const heddle = await startHeddle(t, {
    domains: [await folderOf(t, { 'kept/plugins/keep.ts': PLUGIN }), SYSTEM_ROUTES],
    lanes: 1,
    env: { ...server.env, TOOLS_DIR: await toolsDirWith(t, 'redis-state'), EVENT_BUS_DRIVER: 'keyvalue_streams' },
  })
  const call = (name: string) => heddle.post(name === 'publish' ? '/publish' : `/state/${name}`, {})
  const readiness = async () => {
    const { status, body } = await heddle.json('/system/health/ready')
    return { status, reasons: (body.reasons ?? body.data.reasons).join() as string }
  }
  assert.equal((await call('set')).status, 200)
  for (const [what, [refuse, take]] of Object.entries(REFUSALS)) {
    for (const [command, ...args] of refuse) {
      // The script has no answer before it is killed.
      if (command === 'eval') script.call(command, ...args).catch(() => {})
      else await admin.call(command!, ...args)
    }
    for (const name of ['publish', 'set', 'increment', 'compareAndSet']) {
      const { status, headers, body } = await until(async () => {
        const answer = await call(name)
        return answer.status === 200 ? undefined : answer
      }, `${what} refuses ${name}`)
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'], `${what}, ${name}: ${JSON.stringify(body)}`)
      if (name !== 'publish')
        assert.equal(JSON.stringify(body).includes(String(port)), false, 'it does not name the server')
      assert.equal((await readiness()).status, 503, `${what} after ${name}`)
    }
    await until(async () => /event bus: /.test((await readiness()).reasons), `${what}: a reason of the bus`)
    await until(async () => /tool state: /.test((await readiness()).reasons), `${what}: a reason of state`)
    for (const [command, ...args] of take) await admin.call(command!, ...args)
    await until(async () => (await readiness()).status === 200, `${what} is over`)
    for (const name of ['publish', 'set']) assert.equal((await call(name)).status, 200, `${name} after ${what}`)
  }
})
