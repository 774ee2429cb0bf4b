import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { claimKeyOf } from '../../../src/stores/state/state.ts'
import type { StateUnderTest } from './under-test.ts'

const TTL_MS = 60_000

/** That a value is made once, whoever asks for it where. */
export function checkCached(check: (title: string, body: (under: StateUnderTest) => Promise<void>) => unknown): void {
  for (const value of [{ a: [1] }, 0, '', false, null]) {
    check(`cached makes ${JSON.stringify(value)} once, and sets it`, async ({ state, other }) => {
      let made = 0
      const make = () => {
        made++
        return value
      }
      const got = []
      for (const each of [state, state, other]) got.push(await each.cached('key', TTL_MS, make, { namespace: 'c' }))
      assert.deepEqual([got, made], [[value, value, value], 1])
      assert.deepEqual(await other.get('key', { namespace: 'c' }), value)
      assert.equal(await state.has('key'), false, 'in its namespace')
      await state.delete('key', { namespace: 'c' })
      await other.cached('key', TTL_MS, make, { namespace: 'c' })
      assert.equal(made, 2)
    })
  }

  check('cached has one maker at a time, for all who ask anywhere', async ({ state, other }) => {
    let running = 0
    let made = 0
    const make = async () => {
      assert.equal(++running, 1)
      await sleep(30)
      running--
      return ++made
    }
    const asked = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? state : other).cached('key', TTL_MS, make))
    const elsewhere = state.cached('other key', TTL_MS, () => 'not kept waiting')
    assert.equal(await elsewhere, 'not kept waiting')
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([1]))
  })

  check('cached hands on what its maker throws, and the next one tries again', async ({ state, other }) => {
    const failing = async () => {
      await sleep(10)
      throw new Error('no value today')
    }
    const both = await Promise.allSettled([1, 2].map(() => state.cached('key', TTL_MS, failing)))
    for (const each of both) assert.equal(each.status === 'rejected' && each.reason.message, 'no value today')
    assert.equal(await state.has('key'), false)
    assert.equal(await other.cached('key', TTL_MS, () => 7), 7)
  })

  check('cached lets those who wait elsewhere try when a maker fails', async ({ state, other }) => {
    let isMaking: () => void
    const making = new Promise<void>((resolve) => {
      isMaking = resolve
    })
    const first = state.cached('key', TTL_MS, async () => {
      isMaking()
      await sleep(30)
      throw new Error('no value today')
    })
    await making
    const second = other.cached('key', TTL_MS, () => 8)
    await assert.rejects(first, /no value today/)
    assert.equal(await second, 8)
  })

  check('cached takes over from a maker that is gone', async ({ state }) => {
    const claim = { by: 'a lane that died', untilMs: Date.now() + 100 }
    await state.set(claimKeyOf('default', 'key'), claim, { namespace: 'heddle:making' })
    assert.equal(await state.cached('key', TTL_MS, () => 9), 9)
    assert.ok(Date.now() >= claim.untilMs)
    assert.deepEqual(await state.keys({ namespace: 'heddle:making' }), [])
  })

  check('cached values expire, and are what JSON makes of them', async ({ state }) => {
    const at = await state.cached<unknown>('key', 1, () => ({ at: new Date(0), none: undefined }))
    assert.deepEqual(at, { at: '1970-01-01T00:00:00.000Z' })
    while (await state.has('key')) await sleep(2)
    assert.equal(await state.cached('key', TTL_MS, () => 2), 2)
    await assert.rejects(
      state.cached('function', TTL_MS, () => () => {}),
      { code: 'STATE_VALUE_INVALID' },
    )
  })
}
