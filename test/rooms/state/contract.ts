import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { State } from '../../../src/contracts/state.ts'
import { until as waitUntil } from '../../support/until.ts'
import { checkCached } from './contract-cached.ts'
import { checkRefusals } from './contract-refusals.ts'
import type { StateUnderTest } from './under-test.ts'

/**
 * The contract of the tool `state`, run against every implementation. `create` returns an empty store and cleans up by `t.after`,
 * or has skipped the test and returns null.
 */
export function runStateContract(name: string, create: (t: TestContext) => Promise<StateUnderTest | null>): void {
  const check = (title: string, body: (under: StateUnderTest) => Promise<void>) =>
    test(title, async (t) => {
      const under = await create(t)
      if (under !== null) await body(under)
    })
  const rejects = (work: () => Promise<unknown>, code: string) => assert.rejects(work, { code })

  /** Time to live is the one thing that only waiting shows: waits for the fact, with a deadline. */
  const until = (fact: () => Promise<boolean>) => waitUntil(fact, 'it comes true', 5000)

  describe(`state contract: ${name}`, () => {
    const texts = ['text', '', '"', 'naïve 🧵 \u0000 \ud83d']
    const objects = [[], {}, [1, [2, { a: null }]], JSON.parse('{"__proto__":1,"constructor":2}')]
    for (const value of [...texts, 0, -1.5, 9007199254740991, true, false, null, ...objects]) {
      check(`returns ${JSON.stringify(value)} as it was set`, async ({ state, other }) => {
        await state.set('key', value)
        assert.deepEqual(await state.get('key'), value)
        assert.deepEqual(await other.get('key'), value)
      })
    }

    check('get of an unknown key is null', async ({ state }) => assert.equal(await state.get('none'), null))

    check('set replaces the value', async ({ state }) => {
      await state.set('key', 1)
      await state.set('key', { now: 'an object' })
      assert.deepEqual(await state.get('key'), { now: 'an object' })
    })

    check('a caller cannot change what is stored', async ({ state }) => {
      const value = { list: [1] }
      await state.set('key', value)
      value.list.push(2)
      const read = (await state.get<{ list: number[] }>('key'))!
      read.list.push(3)
      assert.deepEqual(await state.get('key'), { list: [1] })
    })

    check('a Date is stored as its string and undefined properties are left out', async ({ state }) => {
      await state.set('key', { at: new Date(0), none: undefined })
      assert.deepEqual(await state.get('key'), { at: '1970-01-01T00:00:00.000Z' })
    })

    check('has tells a stored null from no value', async ({ state }) => {
      await state.set('key', null)
      assert.deepEqual([await state.has('key'), await state.has('none')], [true, false])
    })

    check('delete is true once', async ({ state, other }) => {
      await state.set('key', 1)
      assert.deepEqual([await other.delete('key'), await state.delete('key')], [true, false])
      assert.equal(await state.get('key'), null)
    })

    check('keys of different namespaces never meet', async ({ state }) => {
      await state.set('b:c', 1, { namespace: 'a' })
      await state.set('c', 2, { namespace: 'a:b' })
      await state.set('b:c', 3)
      assert.equal(await state.get('b:c', { namespace: 'a' }), 1)
      assert.equal(await state.get('c', { namespace: 'a:b' }), 2)
      assert.equal(await state.get('b:c', { namespace: 'default' }), 3)
      assert.deepEqual(await state.keys({ namespace: 'a' }), ['b:c'])
    })

    check('namespaces and keys with the names of built-ins and patterns are ordinary', async ({ state }) => {
      const names = ['__proto__', 'constructor', '*', '?', '?[a]', '[^a]', 'a-z', '\\', '\\*', 'ключ', ' ', '{x}', ':']
      names.push('a:', '%', '%3A', 'default', 'default:', '\n', '\r\n', '\0', '"', "'")
      for (const key of names) await state.set(key, key, { namespace: key })
      for (const key of names) {
        assert.equal(await state.get(key, { namespace: key }), key)
        assert.deepEqual(await state.keys({ namespace: key }), [key])
      }
      await state.clear({ namespace: '*' })
      for (const key of names) assert.equal(await state.has(key, { namespace: key }), key !== '*')
    })

    check('keys lists the namespace, clear empties it and no other', async ({ state }) => {
      const many = Array.from({ length: 300 }, (_, index) => `key-${index}`)
      await Promise.all(many.map((key) => state.set(key, 1, { namespace: 'many' })))
      await state.set('kept', 1)
      await state.set('kept', 1, { namespace: 'many-more' })
      assert.deepEqual((await state.keys({ namespace: 'many' })).sort(), many.sort())
      await state.clear({ namespace: 'many' })
      assert.deepEqual(await state.keys({ namespace: 'many' }), [])
      assert.deepEqual([await state.keys(), await state.keys({ namespace: 'many-more' })], [['kept'], ['kept']])
      await state.clear({ namespace: 'never-used' })
    })

    check('calls of one turn take effect in their order', async ({ state }) => {
      const results = await Promise.all([
        state.set('n', 5),
        state.increment('n'),
        state.increment('n', 10),
        state.get('n'),
        state.increment('n', 10, { ttlMs: 60_000 }),
        state.compareAndSet('n', 26, 30),
        state.increment('n'),
        state.delete('n'),
        state.increment('n'),
        state.has('n'),
      ])
      assert.deepEqual(results, [undefined, 6, 16, 16, 26, true, 31, true, 1, true])
    })

    check('increments of one turn fail and succeed each for itself', async ({ state }) => {
      await Promise.all([state.set('text', 'a'), state.set('max', Number.MAX_SAFE_INTEGER)])
      const results = await Promise.allSettled(['a', 'text', 'a', 'max', 'b'].map((key) => state.increment(key)))
      assert.deepEqual(
        results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code)),
        [1, 'STATE_NOT_A_NUMBER', 2, 'STATE_NOT_A_NUMBER', 1],
      )
    })

    check('a thousand increments of one turn, of many keys and steps, are all counted', async ({ state, other }) => {
      const calls = Array.from({ length: 1000 }, (_, index) => {
        const caller = index % 3 === 0 ? other : state
        return caller.increment(`n${index % 7}`, (index % 5) - 1, index % 11 === 0 ? { ttlMs: 60_000 } : undefined)
      })
      await Promise.all(calls)
      const sums = Array.from({ length: 7 }, () => 0)
      for (let index = 0; index < 1000; index++) sums[index % 7]! += (index % 5) - 1
      assert.deepEqual(await Promise.all(sums.map((_, index) => state.get(`n${index}`))), sums)
    })

    check('increment creates, adds, and takes negative and zero steps', async ({ state, other }) => {
      assert.equal(await state.increment('n'), 1)
      assert.equal(await other.increment('n', 5), 6)
      assert.equal(await state.increment('n', -10), -4)
      assert.equal(await state.increment('n', 0), -4)
      assert.equal(await state.get('n'), -4)
      assert.equal(await state.increment('zero', 0), 0)
      assert.equal(await state.has('zero'), true)
    })

    check('increment works on a number that was set, and a set replaces it', async ({ state }) => {
      await state.set('n', 41)
      assert.equal(await state.increment('n'), 42)
      await state.set('n', 7)
      assert.equal(await state.increment('n'), 8)
    })

    check('concurrent increments are all counted, each result once', async ({ state, other }) => {
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? state : other).increment('n')),
      )
      assert.equal(new Set(results).size, 200)
      assert.equal(await state.get('n'), 200)
    })

    for (const value of [
      '5',
      'text',
      '',
      1.5,
      -1e-7,
      null,
      true,
      [],
      [1],
      {},
      1e21,
      2 ** 53,
      -(2 ** 60),
      2 ** 63,
      1e19,
    ]) {
      check(`increment refuses a key that holds ${JSON.stringify(value)}`, async ({ state }) => {
        await state.set('key', value)
        await rejects(() => state.increment('key'), 'STATE_NOT_A_NUMBER')
        assert.deepEqual(await state.get('key'), value)
      })
    }

    check('increment never leaves the safe integers', async ({ state }) => {
      await state.set('max', Number.MAX_SAFE_INTEGER)
      await rejects(() => state.increment('max'), 'STATE_NOT_A_NUMBER')
      assert.equal(await state.get('max'), Number.MAX_SAFE_INTEGER)
      await state.set('min', -Number.MAX_SAFE_INTEGER)
      await rejects(() => state.increment('min', -1), 'STATE_NOT_A_NUMBER')
      assert.equal(await state.increment('max', -1), Number.MAX_SAFE_INTEGER - 1)
      assert.equal(await state.increment('new', Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
      await rejects(() => state.increment('new', Number.MAX_SAFE_INTEGER), 'STATE_NOT_A_NUMBER')
      assert.equal(await state.increment('new', -Number.MAX_SAFE_INTEGER), 0)
      assert.equal(await state.increment('window', Number.MIN_SAFE_INTEGER, { ttlMs: 60_000 }), Number.MIN_SAFE_INTEGER)
      for (let step = 1; step <= 60; step++) {
        assert.equal(await state.increment('window', 1), Number.MIN_SAFE_INTEGER + step)
      }
      await state.set('beyond', 2 ** 53 + 2)
      await rejects(() => state.increment('beyond', -10), 'STATE_NOT_A_NUMBER')
      assert.equal(await state.get('beyond'), 2 ** 53 + 2)
    })

    for (const by of [1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', null]) {
      check(`increment refuses the step ${by === null ? 'null' : typeof by} ${by}`, async ({ state }) => {
        await rejects(() => state.increment('n', by as number), 'STATE_OPTIONS_INVALID')
        assert.equal(await state.has('n'), false)
      })
    }

    check('compareAndSet sets only where the value deeply equals', async ({ state, other }) => {
      await state.set('key', { a: 1, b: [2, { c: null }] })
      assert.equal(await state.compareAndSet('key', { a: 1, b: [2, { c: 0 }] }, 'no'), false)
      assert.equal(await other.compareAndSet('key', { b: [2, { c: null }], a: 1 }, { a: 2 }), true)
      assert.deepEqual(await state.get('key'), { a: 2 })
      assert.equal(await state.compareAndSet('key', { a: '2' }, 'no'), false)
    })

    check('compareAndSet knows a value whatever the order of its keys and its spelling', async ({ state }) => {
      const value = { ä: [1e21, 0.1, -0, '\u2028"\\/ \ud83e\uddf5'], z: { b: {}, a: [] }, '': null }
      await state.set('key', value)
      const other = { '': null, z: { a: [], b: {} }, ä: [1e21, 0.1, 0, '\u2028"\\/ 🧵'] }
      assert.equal(await state.compareAndSet('key', { ...other, extra: undefined }, value), true)
      for (const wrong of [{ ...other, '': 0 }, { ...other, more: null }, [], 'x', 1, true, null, [value]]) {
        assert.equal(await state.compareAndSet('key', wrong, 'no'), false)
      }
      assert.deepEqual(await state.get('key'), JSON.parse(JSON.stringify(value)))
    })

    check('compareAndSet tells large numbers apart', async ({ state }) => {
      await state.set('key', Number.MAX_SAFE_INTEGER)
      assert.equal(await state.compareAndSet('key', Number.MAX_SAFE_INTEGER - 1, 0), false)
      assert.equal(await state.compareAndSet('key', Number.MAX_SAFE_INTEGER, 1e300), true)
      assert.equal(await state.compareAndSet('key', 1e301, 0), false)
      assert.equal(await state.compareAndSet('key', '1e+300', 0), false)
      assert.equal(await state.compareAndSet('key', 1e300, 0), true)
    })

    check('compareAndSet counts rightly when many compete in a loop', async ({ state, other }) => {
      await state.set('n', { count: 0, by: 'nobody' })
      const add = async (caller: State, by: string) => {
        for (;;) {
          const now = (await caller.get<{ count: number; by: string }>('n'))!
          if (await caller.compareAndSet('n', { by: now.by, count: now.count }, { count: now.count + 1, by })) return
        }
      }
      await Promise.all(
        Array.from({ length: 24 }, (_, index) => add(index % 2 === 0 ? state : other, `caller ${index}`)),
      )
      assert.equal((await state.get<{ count: number }>('n'))!.count, 24)
    })

    check('compareAndSet takes null for no value, and creates', async ({ state }) => {
      assert.equal(await state.compareAndSet('key', 'something', 1), false)
      assert.equal(await state.has('key'), false)
      assert.equal(await state.compareAndSet('key', null, 1), true)
      assert.equal(await state.compareAndSet('key', null, 2), false)
      assert.equal(await state.get('key'), 1)
      await state.set('null', null)
      assert.equal(await state.compareAndSet('null', null, 3), true)
    })

    check('compareAndSet keeps the time to live, or begins it anew', async ({ state }) => {
      await state.set('kept', 1, { ttlMs: 300 })
      await state.set('renewed', 1, { ttlMs: 300 })
      assert.equal(await state.compareAndSet('kept', 1, 2), true)
      assert.equal(await state.compareAndSet('renewed', 1, 2, { ttlMs: 600_000 }), true)
      assert.equal(await state.compareAndSet('made', null, 2, { ttlMs: 300 }), true)
      for (const key of ['kept', 'made']) await until(async () => !(await state.has(key)))
      assert.equal(await state.get('renewed'), 2)
      await assert.rejects(state.compareAndSet('renewed', 2, 3, { ttlMs: 0 }), { code: 'STATE_OPTIONS_INVALID' })
    })

    check('of concurrent compareAndSet calls one wins', async ({ state, other }) => {
      const calls = Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? state : other).compareAndSet('lock', null, index),
      )
      const won = (await Promise.all(calls)).flatMap((didSet, index) => (didSet ? [index] : []))
      assert.equal(won.length, 1)
      assert.equal(await state.get('lock'), won[0])
    })

    check('a key is gone when its time to live is over, for every call', async ({ state, other }) => {
      await state.set('key', 1, { ttlMs: 60 })
      await state.set('stays', 1)
      assert.equal(await other.get('key'), 1)
      await until(async () => (await state.get('key')) === null)
      assert.deepEqual([await state.has('key'), await state.delete('key')], [false, false])
      assert.deepEqual(await state.keys(), ['stays'])
      assert.equal(await state.compareAndSet('key', null, 2), true)
      assert.equal(await state.get('key'), 2)
    })

    check('set without a time to live removes the old one, with one replaces it', async ({ state }) => {
      await state.set('a', 1, { ttlMs: 60 })
      await state.set('a', 2)
      await state.set('b', 1, { ttlMs: 60 })
      await state.set('b', 2, { ttlMs: 60_000 })
      await state.set('witness', 1, { ttlMs: 120 })
      await until(async () => !(await state.has('witness')))
      assert.deepEqual([await state.get('a'), await state.get('b')], [2, 2])
    })

    check(
      'increment opens a fixed window: later calls do not move its end, whoever makes them',
      async ({ state, other }) => {
        const startedMs = performance.now()
        assert.equal(await state.increment('hits', 1, { ttlMs: 150 }), 1)
        let last = 1
        await until(async () => {
          const before = last
          last = await other.increment('hits', 1, { ttlMs: 150 })
          return last < before
        })
        assert.equal(last, 1)
        assert.ok(performance.now() - startedMs >= 145)
      },
    )

    check('increment gives no time to live to a key that has none', async ({ state }) => {
      await state.set('n', 1)
      await state.increment('n', 1, { ttlMs: 30 })
      await state.set('witness', 1, { ttlMs: 90 })
      await until(async () => !(await state.has('witness')))
      assert.equal(await state.get('n'), 2)
    })

    check('compareAndSet and increment keep the time to live', async ({ state }) => {
      await state.set('a', 1, { ttlMs: 80 })
      await state.set('b', 1, { ttlMs: 80 })
      assert.equal(await state.compareAndSet('a', 1, 2), true)
      await state.increment('b')
      await until(async () => !(await state.has('a')) && !(await state.has('b')))
    })

    checkCached(check)
    checkRefusals(check)

    check('its methods work when they are taken off the object', async ({ state }) => {
      const { set, get } = state
      await set('key', 1)
      assert.equal(await get('key'), 1)
    })
  })
}
