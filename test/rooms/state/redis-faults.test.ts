import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { State } from '../../../src/contracts/state.ts'
import type { Settings } from '../../../src/core/config/schema.ts'
import RedisStateTool from '../../../src/extras/redis-state/index.ts'
import { connect, settingsOf, sharedServer } from '../../support/redis-under-test.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { testWith } from '../../support/test-with.ts'
import { buildTool } from '../../support/tool-runtime.ts'
import { until } from '../../support/until.ts'

const testOnOwn = testWith((t) => redisServer(t, { own: true }))
const shared = sharedServer()
/** On a server that others leave empty. */
const testOnEmpty = testWith(async (t) => {
  const server = await shared(t)
  if (server !== null) await connect(t, settingsOf(server)).command('flushdb', [])
  return server
})
function stateOn(t: TestContext, settings: Settings): State {
  const { tool } = buildTool(RedisStateTool, { settings })
  t.after(() => tool.stop())
  return tool.api()
}

const WRITES: [call: string, (state: State) => Promise<unknown>][] = [
  ['set', (state) => state.set('new', 'value')],
  ['increment', (state) => state.increment('counter')],
  ['increment with a window', (state) => state.increment('window', 1, { ttlMs: 60_000 })],
  ['compareAndSet', (state) => state.compareAndSet('new', null, 1)],
]

test('a store that is full refuses what would add to it, gives what it has, and takes more once there is room', async (t) => {
  const server = await redisServer(t, { args: ['--maxmemory-policy', 'noeviction'] })
  if (server === null) return
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  await state.set('kept', 'value')
  await admin.command('config', ['SET', 'maxmemory', '1'])
  for (const [call, write] of WRITES) {
    await assert.rejects(write(state), { code: 'STATE_FULL', message: /maxmemory/ }, call)
  }
  assert.equal(await state.get('kept'), 'value')
  assert.equal(await state.delete('kept'), true)
  await admin.command('config', ['SET', 'maxmemory', '0'])
  for (const [, write] of WRITES) await write(state)
  assert.deepEqual(await Promise.all(['counter', 'window'].map((key) => state.get(key))), [1, 1])
})

test('a read-only replica says so, and that another server is wanted', async (t) => {
  const [server, other] = [await redisServer(t, { own: true }), await redisServer(t, { own: true })]
  if (server === null || other === null) return
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  await state.set('kept', 'value')
  await admin.command('config', ['SET', 'masterauth', other.password])
  await admin.command('replicaof', [other.host, other.port])
  for (const [call, write] of WRITES) {
    await assert.rejects(write(state), { code: 'KV_READONLY', message: /read-only replica; name the primary/ }, call)
  }
  await assert.rejects(state.delete('kept'), { code: 'KV_READONLY' })
  await admin.command('replicaof', ['NO', 'ONE'])
  for (const [, write] of WRITES) await write(state)
})

testOnEmpty('a key of another type is named, and harms no other', async (server, t) => {
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  await admin.command('rpush', ['heddle:state:default:list', 'a'])
  const wrong = { code: 'KV_WRONG_TYPE', message: /the key "list" is not a value of state: another program/ }
  await assert.rejects(state.get('list'), wrong)
  await assert.rejects(state.compareAndSet('list', null, 1), wrong)
  const increments = await Promise.allSettled([state.increment('n'), state.increment('list'), state.increment('n')])
  assert.deepEqual(
    increments.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code)),
    [1, 'KV_WRONG_TYPE', 2],
  )
  await assert.rejects(state.increment('list', 1, { ttlMs: 1000 }), wrong)
  assert.deepEqual([await state.has('list'), (await state.keys()).sort()], [true, ['list', 'n']])
  await state.set('list', 'now a value')
  assert.equal(await state.get('list'), 'now a value')
})

testOnEmpty('what another program has written is no JSON, or JSON of its own spelling', async (server, t) => {
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  const write = (key: string, text: string) => admin.command('set', [`heddle:state:default:${key}`, text])
  await write('text', 'not json')
  await assert.rejects(state.get('text'), { code: 'STATE_VALUE_INVALID', message: /the key "text" is not JSON/ })
  await assert.rejects(state.compareAndSet('text', 'not json', 1), { code: 'STATE_VALUE_INVALID' })
  for (const text of ['not json', '007', '1.0', '1e3', ' 1', '', '9223372036854775807', '-9223372036854775808']) {
    await write('n', text)
    await assert.rejects(state.increment('n'), { code: 'STATE_NOT_A_NUMBER' })
    assert.equal(await admin.command('get', ['heddle:state:default:n']), text)
  }
  await write('spelled', '{ "b": [1.0, "\\u0061"], "a": 1e0 }')
  assert.equal(await state.compareAndSet('spelled', { a: 1, b: [1, 'b'] }, 'no'), false)
  assert.equal(await state.compareAndSet('spelled', { a: 1, b: [1, 'a'] }, 'yes'), true)
})

testOnEmpty('keys and clear of a large namespace leave all others alone', async (server, t) => {
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  await admin.command('set', ['foreign', 'x'])
  await state.set('key', 1, { namespace: 'other' })
  await Promise.all(Array.from({ length: 10_000 }, (_, n) => state.set(`key ${n}`, n, { namespace: 'large' })))
  assert.equal((await state.keys({ namespace: 'large' })).length, 10_000)
  await state.clear({ namespace: 'large' })
  assert.deepEqual(await admin.command('dbsize', []), 2)
})

testOnOwn('a user without rights is told which it lacks', async (server, t) => {
  const [admin, state] = [connect(t, settingsOf(server)), stateOn(t, settingsOf(server))]
  await admin.command('acl', ['SETUSER', 'default', '-@scripting', '-info'])
  await assert.rejects(state.increment('n'), { code: 'KV_REFUSED', message: /may not do this.*evalsha/i })
  assert.equal(await state.get('n'), null)
  assert.equal(await stateOn(t, settingsOf(server)).get('n'), null)
})

/** Increments without a pause until told to stop; afterwards the counter lies between what was acknowledged and what may have been done. */
async function countUnder(
  t: TestContext,
  settings: Settings,
  trouble: (tally: Tally) => Promise<void>,
): Promise<Tally> {
  const state = stateOn(t, settings)
  const tally: Tally = { acknowledged: 0, unknown: 0, notSent: 0, sums: new Set(), doubled: 0 }
  let isOver = false
  const caller = async (): Promise<void> => {
    while (!isOver) {
      try {
        const sum = await state.increment('n')
        if (tally.sums.has(sum)) tally.doubled++
        tally.sums.add(sum)
        tally.acknowledged++
      } catch (error) {
        const { code, details } = error as { code: string; details?: { outcome: string } }
        assert.equal(code, 'KV_UNAVAILABLE')
        if (details?.outcome === 'not sent') tally.notSent++
        else tally.unknown++
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  const callers = Array.from({ length: 20 }, caller)
  await trouble(tally).finally(() => {
    isOver = true
  })
  await Promise.all(callers)
  const counted = (await state.get<number>('n'))!
  t.diagnostic(`${JSON.stringify({ ...tally, sums: undefined })}, counted ${counted}`)
  assert.equal(tally.doubled, 0, 'each number is given once')
  assert.ok(counted >= tally.acknowledged && counted <= tally.acknowledged + tally.unknown, `${counted} counted`)
  return tally
}

interface Tally {
  acknowledged: number
  unknown: number
  notSent: number
  sums: Set<number>
  doubled: number
}

async function moreThan(tally: Tally, calls: number): Promise<void> {
  const from = tally.acknowledged
  await until(() => tally.acknowledged > from + calls, `${calls} more increments`, 30_000)
}

test('a restart with the append-only file loses no acknowledged increment and counts none twice', async (t) => {
  const server = await redisServer(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  if (server === null) return
  await countUnder(t, settingsOf(server), async (tally) => {
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM'] as const) {
      await moreThan(tally, 200)
      await server.stop(signal)
      await server.start()
    }
    await moreThan(tally, 200)
  })
})

testOnOwn(
  'connections that are killed again and again lose no acknowledged increment and count none twice',
  async (server, t) => {
    const admin = connect(t, settingsOf(server))
    await countUnder(t, settingsOf(server), async (tally) => {
      for (let kill = 0; kill < 25; kill++) {
        await moreThan(tally, 100)
        await admin.command('client', ['KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
      }
      await moreThan(tally, 100)
    })
  },
)

testOnOwn(
  'increments that a frozen server finds when it thaws are unknown to their callers, and counted once at most',
  async (server, t) => {
    const tally = await countUnder(t, settingsOf(server), async (seen) => {
      await moreThan(seen, 200)
      server.freeze()
      await until(() => seen.notSent > 100, 'rejected at once', 30_000)
      server.thaw()
      await moreThan(seen, 200)
    })
    assert.ok(tally.unknown > 0)
  },
)
