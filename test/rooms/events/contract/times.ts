import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { post, seen, seenOften } from './driving.ts'

/** Delays and lifetimes. */
export async function timesAreKept(t: TestContext, heddle: Heddle): Promise<void> {
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
    const options = { delayMs: 2000, ttlMs: 1800 }
    await post(heddle, '/publish', { event: 'plain', payload: { tag: 'late' }, options })
    await seenOften(heddle, 'plain', 'late', 3)
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
