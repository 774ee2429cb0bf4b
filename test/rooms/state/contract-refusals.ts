import assert from 'node:assert/strict'
import type { StateUnderTest } from './under-test.ts'

const rejects = (work: () => Promise<unknown>, code: string) => assert.rejects(work, { code })

/** Which keys, values and options every store refuses, and the longest key that it takes. */
export function checkRefusals(check: (title: string, body: (under: StateUnderTest) => Promise<void>) => unknown): void {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const lossy: [string, unknown][] = [
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a bigint', 1n],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a cycle', cycle],
    ['a nested function', { a: [() => 1] }],
    ['a nested NaN', { a: Number.NaN }],
    ['undefined in an array', [undefined]],
  ]
  for (const [what, value] of lossy) {
    check(`refuses ${what} as a value`, async ({ state }) => {
      await rejects(() => state.set('key', value), 'STATE_VALUE_INVALID')
      await rejects(() => state.compareAndSet('key', null, value), 'STATE_VALUE_INVALID')
      await rejects(() => state.compareAndSet('key', value, 1), 'STATE_VALUE_INVALID')
      assert.equal(await state.has('key'), false)
    })
  }

  for (const key of ['', 'k'.repeat(513), '\ud800', 5, null, undefined, {}]) {
    check(`refuses the key ${typeof key} ${String(key).slice(0, 10)} in every method`, async ({ state }) => {
      const bad = key as string
      await rejects(() => state.get(bad), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.set(bad, 1), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.has(bad), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.delete(bad), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.increment(bad), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.cached(bad, 1, () => 1), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.compareAndSet(bad, null, 1), 'STATE_OPTIONS_INVALID')
      if (bad !== undefined) await rejects(() => state.get('key', { namespace: bad }), 'STATE_OPTIONS_INVALID')
    })
  }

  check('takes the longest key and namespace', async ({ state }) => {
    const longest = 'ü'.repeat(512)
    await state.set(longest, 1, { namespace: longest })
    assert.deepEqual(await state.keys({ namespace: longest }), [longest])
  })

  for (const ttlMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, '5', null]) {
    check(`refuses a time to live of ${typeof ttlMs} ${ttlMs}`, async ({ state }) => {
      await rejects(() => state.set('key', 1, { ttlMs: ttlMs as number }), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.cached('key', ttlMs as number, () => 1), 'STATE_OPTIONS_INVALID')
      await rejects(() => state.increment('key', 1, { ttlMs: ttlMs as number }), 'STATE_OPTIONS_INVALID')
      assert.equal(await state.has('key'), false)
    })
  }
}
