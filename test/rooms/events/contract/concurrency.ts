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
  await t.test('a subscriber in the primary handles so many at a time as it says', async () => {
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
}
