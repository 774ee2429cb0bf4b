import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { concurrencyIsBounded } from './contract/concurrency.ts'
import { DOMAINS, LANES } from './contract/driving.ts'
import { failuresAreKept } from './contract/failures.ts'
import { floodIsSurvived } from './contract/flood.ts'
import { lettersAreManaged } from './contract/letters.ts'
import { payloadsArriveWhole } from './contract/payloads.ts'
import { reachesSubscribers } from './contract/reach.ts'
import { requestsAreAnswered } from './contract/requests.ts'
import { timesAreKept } from './contract/times.ts'
import { busIsWatched } from './contract/watching.ts'

/**
 * What every transport of events does, over three lanes and the primary of one process.
 * @param environment of a process that has the transport; null when it cannot be had, and the test has been skipped
 * @param options `keepsReplays`: its dead letters can be edited, and those that were replayed are kept with the outcome
 */
export function runBusContract(
  name: string,
  environment: (t: TestContext) => Promise<Record<string, string> | null>,
  { keepsReplays = true } = {},
): void {
  test(`the bus contract: ${name}`, async (t) => {
    const env = await environment(t)
    if (env === null) return
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES, env })
    await reachesSubscribers(t, heddle)
    await failuresAreKept(t, heddle)
    await lettersAreManaged(t, heddle, keepsReplays)
    await concurrencyIsBounded(t, heddle)
    await timesAreKept(t, heddle)
    await requestsAreAnswered(t, heddle)
    await payloadsArriveWhole(t, heddle)
    await busIsWatched(t, heddle)
    await floodIsSurvived(t, heddle)
    assert.equal(await heddle.stop(), 0)
  })
}
