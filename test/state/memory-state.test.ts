import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import MemoryStateTool from '../../src/tools/memory-state/index.ts'
import { MemoryStore } from '../../src/tools/memory-state/store.ts'
import { buildTool } from '../support/tool-runtime.ts'
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
  const file = fileURLToPath(new URL('../../src/tools/memory-state/store.ts', import.meta.url))
  const script = `import { MemoryStore } from ${JSON.stringify(file)}
    new MemoryStore().set('n', 'key', '1', 600000)`
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', script]
  const { status, signal } = spawnSync(process.execPath, args, { timeout: 20_000 })
  assert.deepEqual([status, signal], [0, null])
})

test('only the methods of a store can be called from a lane', () => {
  const { tool } = buildTool(MemoryStateTool)
  assert.throws(() => tool.serve('close', []), /no method close/)
  assert.throws(() => tool.serve('constructor', []), /no method constructor/)
})

test('a store that is full refuses what would add to it, keeps what it has, and takes more once there is room', () => {
  const store = new MemoryStore(10_000)
  let kept = 0
  assert.throws(
    () => {
      for (; ; kept++) store.set('default', `key${kept}`, JSON.stringify('x'.repeat(100)), null)
    },
    { code: 'STATE_FULL' },
  )
  assert.ok(kept > 10 && kept < 50, `${kept} keys`)
  assert.equal(store.get('default', 'key0'), JSON.stringify('x'.repeat(100)))
  assert.throws(() => store.increment('default', 'counter', 1, null), { code: 'STATE_FULL' })
  store.set('default', 'key0', '1', null)
  store.delete('default', 'key1')
  store.set('default', 'new', JSON.stringify('y'.repeat(100)), null)
  store.clear('default')
  for (let n = 0; n < kept; n++) store.set('default', `key${n}`, JSON.stringify('x'.repeat(100)), null)
})
