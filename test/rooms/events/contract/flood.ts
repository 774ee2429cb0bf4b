import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { LANES, post, seenOften } from './driving.ts'

/** Subscribers that never end. Last, because they hold on to their places. */
export async function floodIsSurvived(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('subscribers that never finish do not use up a lane', async () => {
    await post(heddle, '/publish-many', { event: 'hanging', count: LANES * 1024 + 50, payload: { tag: 'flood' } })
    await post(heddle, '/publish', { event: 'plain', payload: { tag: 'after-the-flood' } })
    await seenOften(heddle, 'plain', 'after-the-flood', 3)
  })
}
