import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { LANES, post, type Seen, seenOften } from './driving.ts'

/** The begins and ends of the handlers of one tag, in the order in which they came about. */
function stepsOf(heddle: Heddle, tag: string): Seen[] {
  const steps = heddle.logs.filter(({ msg, tag: of }) => msg.startsWith('bounded-') && of === tag) as Seen[]
  // Of two in the same microsecond the end was first: a handler begins when the hub has heard of it.
  return steps.sort((a, b) => a.atMs - b.atMs || (a.msg === 'bounded-ends' ? -1 : 1))
}

/** How many handlers were at work at a time. */
function mostAtOnce(steps: readonly Seen[]): number {
  let now = 0
  let most = 0
  for (const { msg } of steps) {
    now += msg === 'bounded-begins' ? 1 : -1
    most = Math.max(most, now)
  }
  return most
}

/** Subscribers that take few deliveries at a time. */
export async function concurrencyIsBounded(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('a subscriber handles so many at a time as it says, over all lanes and with its retries', async () => {
    const count = 40
    await post(heddle, '/publish-many', { event: 'bounded', count, payload: { tag: 'two' } })
    const attempts = count + count / 5
    await seenOften(heddle, 'bounded-ends', 'two', attempts)
    const steps = stepsOf(heddle, 'two')
    assert.equal(steps.length, 2 * attempts)
    assert.equal(mostAtOnce(steps), 2)
    const handled = new Set(steps.map(({ n, event }) => `${n} ${event.attempt}`))
    assert.equal(handled.size, attempts, 'each attempt once')
  })

  await t.test('one in the primary does, too', async () => {
    await post(heddle, '/publish-many', { event: 'bounded.primary', count: 10, payload: { tag: 'one' } })
    await seenOften(heddle, 'bounded-ends', 'one', 10)
    assert.equal(mostAtOnce(stepsOf(heddle, 'one')), 1)
  })

  await t.test('a broadcast is bounded in each thread by itself', async () => {
    await post(heddle, '/publish-many', { event: 'bounded.wide', count: 9, payload: { tag: 'wide' } })
    await seenOften(heddle, 'bounded-ends', 'wide', 9 * LANES)
    const steps = stepsOf(heddle, 'wide')
    const threads = new Set(steps.map(({ thread }) => thread))
    assert.equal(threads.size, LANES)
    for (const thread of threads) assert.equal(mostAtOnce(steps.filter((step) => step.thread === thread)), 1)
  })

  await t.test('keys and lifetimes are kept by a subscriber that takes few at a time', async () => {
    await post(heddle, '/publish-many', { event: 'bounded', count: 12, keys: 1, payload: { tag: 'keyed' } })
    await seenOften(heddle, 'bounded-ends', 'keyed', 12 + 3)
    const steps = stepsOf(heddle, 'keyed')
    assert.equal(mostAtOnce(steps), 1)
    const order = steps.filter(({ msg }) => msg === 'bounded-ends').map(({ n }) => n)
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    )
    await post(heddle, '/publish-many', { event: 'bounded', count: 20, payload: { tag: 'before' } })
    const options = { ttlMs: 1 }
    await post(heddle, '/publish', { event: 'bounded', payload: { tag: 'mortal', n: 1 }, options })
    await post(heddle, '/publish', { event: 'bounded', payload: { tag: 'after', n: 1 } })
    await seenOften(heddle, 'bounded-ends', 'after', 1)
    await seenOften(heddle, 'bounded-ends', 'before', 24)
    assert.deepEqual(stepsOf(heddle, 'mortal'), [])
  })
}
