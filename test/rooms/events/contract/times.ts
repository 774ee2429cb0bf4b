import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { post, seen, seenOften } from './driving.ts'

/** Delays and lifetimes. */
export async function timesAreKept(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('a delayed event comes not before its time', async () => {
    const startedMs = Date.now()
    await post(heddle, '/publish', { event: 'plain', payload: { tag: 'delayed' }, options: { delayMs: 250 } })
    await seenOften(heddle, 'plain', 'delayed', 3)
    assert.ok(Date.now() - startedMs >= 249)
  })

  await t.test('an event for a point in time comes not before it, and one for the past at once', async () => {
    const [past, future] = [new Date(0), new Date(Date.now() + 400)]
    await post(heddle, '/publish-at', { event: 'plain', payload: { tag: 'at' }, at: future })
    await post(heddle, '/publish-at', { event: 'plain', payload: { tag: 'past' }, at: past })
    await seenOften(heddle, 'plain', 'past', 3)
    await seenOften(heddle, 'plain', 'at', 3)
    const [first] = seen(heddle, 'plain', 'at')
      .filter(({ by }) => by === 'watch')
      .map(({ atMs }) => atMs)
    assert.ok(first! >= future.getTime() - 1, `${first! - future.getTime()} ms after its time`)
  })

  await t.test('the lifetime of a delayed event begins when the delay is over', async () => {
    const options = { delayMs: 400, ttlMs: 300 }
    await post(heddle, '/publish', { event: 'plain', payload: { tag: 'late' }, options })
    await seenOften(heddle, 'plain', 'late', 3)
  })

  await t.test('an event that nobody has begun in its lifetime is not delivered any more', async () => {
    const options = { key: 'one' }
    await post(heddle, '/publish', { event: 'keyed', payload: { tag: 'ttl', n: 1, ms: 300 }, options })
    await post(heddle, '/publish', {
      event: 'keyed',
      payload: { tag: 'ttl', n: 2, ms: 0 },
      options: { ...options, ttlMs: 50 },
    })
    await post(heddle, '/publish', {
      event: 'keyed',
      payload: { tag: 'ttl', n: 3, ms: 0 },
      options: { ...options, ttlMs: 60_000 },
    })
    await seenOften(heddle, 'keyed-ends', 'ttl', 2)
    assert.deepEqual(
      seen(heddle, 'keyed-ends', 'ttl').map(({ n }) => n),
      [1, 3],
    )
  })

  await t.test('a lifetime does not cut off the retries of what was begun in time', async () => {
    // Full jitter: some of the pauses are longer than the lifetime.
    for (let n = 0; n < 8; n++)
      await post(heddle, '/publish', { event: 'mortal', payload: { tag: 'm', n }, options: { ttlMs: 300 } })
    await until(
      () => seen(heddle, 'mortal', 'm').filter(({ event }) => event.attempt === 2).length === 8,
      'all retries',
    )
  })
}
