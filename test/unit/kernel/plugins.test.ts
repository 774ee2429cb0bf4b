import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Settings } from '../../../src/core/config/schema.ts'
import { added, tellAll } from '../../../src/runtime/kernel/listeners.ts'
import type { PluginClass } from '../../../src/runtime/kernel/plugin.ts'
import { Plugins } from '../../../src/runtime/kernel/plugins.ts'
import { type Toolbox, tellingFirstCall } from '../../../src/runtime/kernel/toolbox.ts'
import { ToolUses, USES_BYTES } from '../../../src/transport/memory/tool-uses.ts'

test('the first call of any method is told once, and puts the real methods in place', () => {
  const tool = {
    add: (a: number, b: number) => a + b,
    fail: () => {
      throw new Error('no')
    },
    get limit() {
      return 5
    },
  }
  let told = 0
  const given = tellingFirstCall(tool, () => told++)
  const { add } = given
  assert.deepEqual(Object.keys(given), ['add', 'fail', 'limit'])
  assert.equal(given.limit, 5)
  assert.equal(told, 0, 'taking a method is no call')
  assert.throws(() => given.fail(), /no/)
  assert.equal(told, 1, 'one that fails is one')
  assert.equal(given.add, tool.add)
  assert.equal(add(1, 2), 3, 'one that was taken before works on')
  assert.equal(given.add(1, 2), 3)
  assert.equal(told, 1)
})

test('every pair of plugin and tool that was added is found from any view of the memory, and others are not', () => {
  const memory = new SharedArrayBuffer(USES_BYTES)
  const [here, there] = [new ToolUses(memory), new ToolUses(memory)]
  const pairs = Array.from({ length: 1500 }, (_, n) => [`domain.Plugin${n}`, `tool${n % 7}`] as const)
  for (const [plugin, tool] of pairs) here.add(plugin, tool)
  assert.ok(pairs.every(([plugin, tool]) => there.has(plugin, tool)))
  const wrong = pairs.filter(([plugin]) => there.has(plugin, 'other'))
  assert.ok(wrong.length <= 2, `${wrong.length} of 1500 pairs that were not added`)
})

const refuse = (thrown: unknown): never => assert.fail(String(thrown))

test('a listener that takes itself out while it is told does not make the next one miss the record', () => {
  const told: string[] = []
  const listeners: ((record: number) => void)[] = []
  const leave = added(listeners, (record) => {
    told.push(`first ${record}`)
    leave()
  })
  added(listeners, (record) => told.push(`second ${record}`))
  tellAll(listeners, 1, refuse)
  tellAll(listeners, 2, refuse)
  assert.deepEqual(told, ['first 1', 'second 1', 'second 2'])
})

test('a listener that throws is reported once, and the others hear every record', () => {
  const told: number[] = []
  const faults: unknown[] = []
  const listeners: ((record: number) => void)[] = [
    () => {
      throw new Error('deaf')
    },
    (record) => told.push(record),
  ]
  tellAll(listeners, 1, (thrown) => faults.push(thrown))
  tellAll(listeners, 2, (thrown) => faults.push(thrown))
  assert.deepEqual(told, [1, 2])
  assert.equal(faults.length, 1)
})

test('an onStop that never ends is left behind when it has had its time, and the others run', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const startedMs = performance.now()
  let passedMs = 0
  t.mock.method(performance, 'now', () => startedMs + passedMs)
  const pass = (ms: number): void => {
    passedMs += ms
    t.mock.timers.tick(ms)
  }
  const told: string[] = []
  const settings = { domainsDir: [], shutdownTimeoutMs: 10_000 } as unknown as Settings
  const toolbox = { injection: () => ({}) } as unknown as Toolbox
  const plugins = new Plugins('worker', settings, toolbox, (_, message) => void told.push(message))
  const hanging = class Hang {
    onStop() {
      return new Promise<void>(() => {})
    }
  }
  const other = class Next {
    onStop() {
      told.push('the next one stops')
    }
  }
  for (const Class of [hanging, other]) await plugins.add('shop', Class as unknown as PluginClass)
  const stopped = plugins.stop()
  pass(29_999)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(told, [])
  // What this thread has waited for a core does not count.
  pass(10_000)
  await stopped
  assert.deepEqual(told, ['Plugin shop.Hang failed in onStop: it has not ended within 30 s', 'the next one stops'])
})
