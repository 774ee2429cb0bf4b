import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tellingFirstCall } from '../../../src/runtime/kernel/toolbox.ts'
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
