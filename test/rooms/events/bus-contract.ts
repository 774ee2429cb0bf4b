import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { concurrencyIsBounded } from './contract/concurrency.ts'
import { DOMAINS, LANES, post, seen } from './contract/driving.ts'
import { failuresAreKept } from './contract/failures.ts'
import { floodIsSurvived } from './contract/flood.ts'
import { keysKeepOrder } from './contract/keys.ts'
import { lettersAreManaged } from './contract/letters.ts'
import { lettersHoldTheirKeys } from './contract/parking.ts'
import { payloadsArriveWhole } from './contract/payloads.ts'
import { reachesSubscribers } from './contract/reach.ts'
import { requestsAreAnswered } from './contract/requests.ts'
import { timesAreKept } from './contract/times.ts'
import { busIsWatched } from './contract/watching.ts'

/**
 * What every transport of events does, over three lanes and the primary of one process.
 * @param environment of a process that has the transport; null when it cannot be had, and the test has been skipped
 */
export function runBusContract(
  name: string,
  environment: (t: TestContext) => Promise<Record<string, string> | null>,
): void {
  test(`the bus contract: ${name}`, async (t) => {
    const env = await environment(t)
    if (env === null) return
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES, env })
    await reachesSubscribers(t, heddle)
    await failuresAreKept(t, heddle)
    await lettersAreManaged(t, heddle)
    await keysKeepOrder(t, heddle)
    await lettersHoldTheirKeys(t, heddle)
    await concurrencyIsBounded(t, heddle)
    await timesAreKept(t, heddle)
    await requestsAreAnswered(t, heddle)
    await payloadsArriveWhole(t, heddle)
    await busIsWatched(t, heddle)
    await floodIsSurvived(t, heddle)
    assert.equal(await heddle.stop(), 0)
  })

  test('a full queue refuses, and what it has taken is all delivered', async (t) => {
    // The database would keep what the queue has no room for.
    const env = { EVENT_BUS_DRIVER: 'in_process', EVENT_BUS_MAX_QUEUE: '100' }
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
    const { taken, refused } = await post(heddle, '/publish-many', {
      event: 'counted',
      count: 1000,
      payload: { ms: 200 },
    })
    assert.ok(taken.length >= 100 && refused.length > 0, `${taken.length} taken`)
    assert.deepEqual(new Set(refused), new Set(['EVENT_BUS_FULL']))
    await until(() => seen(heddle, 'counted').length >= taken.length, 'all that were taken')
    assert.deepEqual(
      seen(heddle, 'counted')
        .map(({ n }) => n)
        .sort((a, b) => a - b),
      taken.sort((a: number, b: number) => a - b),
    )
    const again = await post(heddle, '/publish-many', { event: 'counted', count: 50 })
    assert.equal(again.taken.length, 50, 'there is room again')
  })
}
