import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import MemoryStateTool from '../../../src/tools/memory-state/index.ts'
import { MemoryStore } from '../../../src/tools/memory-state/store.ts'
import { LOADER } from '../../support/loader.ts'
import { buildTool } from '../../support/tool-runtime.ts'
import { runStateContract } from './contract.ts'

runStateContract('in memory, from the primary', async (t) => {
  const { tool } = buildTool(MemoryStateTool)
  t.after(() => tool.stop())
  return { state: tool.api(), other: tool.api() }
})

runStateContract('in memory, from two lanes', async (t) => {
  const { tool: primary } = buildTool(MemoryStateTool)
  t.after(() => primary.stop())
  const lane = () => buildTool(MemoryStateTool, { primary: () => primary }).tool.api()
  return { state: lane(), other: lane() }
})

test('the memory of expired entries is given back without a read', async (t) => {
  const store = new MemoryStore()
  t.after(() => store.close())
  for (let index = 0; index < 5000; index++) store.set('n', `short-${index}`, '1', 20)
  store.set('n', 'long', '1', 60_000)
  store.set('n', 'always', '1', null)
  assert.equal(store.size, 5002)
  const deadlineMs = performance.now() + 5000
  while (store.size > 2 && performance.now() < deadlineMs) await sleep(10)
  assert.deepEqual(store.keys('n').sort(), ['always', 'long'])
  assert.equal(store.size, 2)
})

test('entries that are overwritten again and again leave nothing behind', (t) => {
  const store = new MemoryStore()
  t.after(() => store.close())
  for (let index = 0; index < 10_000; index++) store.set('n', 'key', String(index), 60_000)
  assert.equal(store.size, 1)
})

test('a key with a time to live does not keep a process alive', () => {
  const file = fileURLToPath(new URL('../../../src/tools/memory-state/store.ts', import.meta.url))
  const script = `const { MemoryStore } = require(${JSON.stringify(file)})
    new MemoryStore().set('n', 'key', '1', 600000)`
  const { status, signal } = spawnSync(process.execPath, [...LOADER, '--eval', script], { timeout: 20_000 })
  assert.deepEqual([status, signal], [0, null])
})

test('the primary compares no values for a compareAndSet of a lane', async (t) => {
  const { tool: primary } = buildTool(MemoryStateTool)
  t.after(() => primary.stop())
  const { tool: lane } = buildTool(MemoryStateTool, { primary: () => primary })
  const state = lane.api()
  await state.set('list', { a: [1, 2], b: 3 })
  const parse = t.mock.method(JSON, 'parse')
  let parsedInPrimary = 0
  const serve = primary.serve.bind(primary)
  t.mock.method(primary, 'serve', (method: string, args: unknown[]) => {
    const before = parse.mock.callCount()
    const answer = serve(method, args)
    parsedInPrimary += parse.mock.callCount() - before
    return answer
  })
  assert.equal(await state.compareAndSet('list', { a: [1, 3], b: 3 }, 'lost'), false)
  assert.equal(await state.compareAndSet('list', { b: 3, a: [1, 2] }, 'won'), true)
  assert.equal(await state.get('list'), 'won')
  assert.equal(parsedInPrimary, 0)
})

test('only the methods of a store can be called from a lane', () => {
  const { tool } = buildTool(MemoryStateTool)
  assert.throws(() => tool.serve('close', []), /no method close/)
  assert.throws(() => tool.serve('constructor', []), /no method constructor/)
})

test('a store that is full refuses what would add to it, keeps what it has, and takes more once there is room', () => {
  const store = new MemoryStore(10_000)
  // No plugin and no namespace reaches its share.
  const set = (n: number, key = `key${n}`): void =>
    store.set(`space${n % 3}`, key, JSON.stringify('x'.repeat(100)), null, `plugin${n % 3}`)
  const fill = (): number => {
    let kept = 0
    assert.throws(
      () => {
        for (; ; kept++) set(kept)
      },
      { code: 'STATE_FULL' },
    )
    return kept
  }
  const kept = fill()
  assert.ok(kept > 10 && kept < 50, `${kept} keys`)
  assert.equal(store.get('space0', 'key0'), JSON.stringify('x'.repeat(100)))
  assert.throws(() => store.increment('default', 'counter', 1, null), { code: 'STATE_FULL' })
  store.set('space0', 'key0', '1', null, 'plugin0')
  store.delete('space1', 'key1')
  set(3, 'new')
  for (const space of ['space0', 'space1', 'space2']) store.clear(space)
  assert.equal(fill(), kept)
})

test('a plugin gets a half and a namespace three quarters, and each has room again for what it gives back', () => {
  const store = new MemoryStore(100_000)
  const text = JSON.stringify('x'.repeat(1000))
  const fill = (owner: string, namespace: (n: number) => string): number => {
    for (let n = 0; ; n++) {
      try {
        store.set(namespace(n), `${owner}${n}`, text, null, owner)
      } catch (error) {
        assert.equal((error as { code: string }).code, 'STATE_QUOTA')
        return n
      }
    }
  }
  const first = fill('a.First', () => 'default')
  const second = fill('a.Second', () => 'default')
  assert.ok(Math.abs(first - 2 * second) <= 2, `${first} and ${second} of the default namespace`)
  assert.equal(store.increment('tries', 'somebody', 1, null, 'users.LogIn'), 1)
  // Another plugin may replace what stands there: it is its own then.
  store.set('default', 'a.First0', text, null, 'a.Third')
  store.set('default', 'a.First1', '1', null, 'a.First')
  store.clear('default')
  assert.equal(
    fill('a.First', (n) => `space${n}`),
    first,
    'many namespaces do not help',
  )
})
