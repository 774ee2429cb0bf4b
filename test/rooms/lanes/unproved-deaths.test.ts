import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CRASHES_MAX } from '../../../src/primary/supervision/isolation.ts'
import { guiltIn } from '../../support/guilt.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { keepAsking } from '../../support/load.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, deathsIn } from './deadly.ts'

const DOMAINS = [fixtureDomains('frameless'), SYSTEM_ROUTES]
const CLIENTS = 8
/** Refused clients wait this long: as long as they are served otherwise, so that shares of requests are shares of time. */
const RETRY_MS = 20
const WARM_UP_MS = 1000
/** A tenth of it where nothing else runs. */
const GAP_MAX_MS = 3000
/** Of those that do not happen to be in a lane as it dies. */
const SHARE_MIN = 0.99

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Clients of the neighbour that ask one request after another. */
function bystanders(heddle: Heddle) {
  /** Lost: their lane died while it had them. Refused: there was no lane for them. A run is of those, without a success between them. */
  const seen = { served: 0, lost: 0, refused: 0, longestRun: 0, longestGapMs: 0 }
  let run = 0
  let servedMs = performance.now()
  const sawSuccess = (): void => {
    const nowMs = performance.now()
    seen.longestGapMs = Math.max(seen.longestGapMs, nowMs - servedMs)
    servedMs = nowMs
  }
  const asking = keepAsking(
    async () => {
      const { status } = await heddle.json('/calm').catch(() => ({ status: 0 }))
      if (status === 200) {
        seen.served++
        run = 0
        sawSuccess()
        return status
      }
      if (status === 500) seen.lost++
      else seen.refused++
      seen.longestRun = Math.max(seen.longestRun, ++run)
      await pause(RETRY_MS)
      return status
    },
    { clients: CLIENTS },
  )
  return {
    stop: asking.stop,
    /** Until now, which ends the last gap. */
    seen() {
      sawSuccess()
      return { ...seen }
    },
  }
}

/** Lets clients of a neighbour run beside something that ends lanes, and looks at what they got. */
async function beside(t: TestContext, heddle: Heddle, harm: () => Promise<void>): Promise<void> {
  const others = bystanders(heddle)
  // Also where the harm is not done in time: clients that ask on keep the process of the test.
  t.after(() => others.stop())
  await pause(WARM_UP_MS)
  await harm()
  const { longestGapMs, longestRun, served, lost, refused } = others.seen()
  const deaths = deathsIn(heddle).length
  await others.stop()
  const story = `${served} served, ${lost} lost in ${deaths} deaths, ${refused} refused, ${longestRun} in a row, ${Math.round(longestGapMs)} ms without one`
  t.diagnostic(story)
  assert.ok(served / (served + refused) >= SHARE_MIN, story)
  assert.ok(lost <= deaths * CLIENTS, story)
  // However long it takes a busy machine: at the next look there is a lane for all of them.
  assert.ok(longestRun <= 2 * CLIENTS, story)
  assert.ok(longestGapMs < GAP_MAX_MS, story)
}

test('beside a plugin whose deaths prove nothing the neighbours are served, and nobody is named', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS })
  await beside(t, heddle, async () => {
    for (let n = 1; n <= CRASHES_MAX; n++) {
      await heddle.json('/fall-apart/microtask')
      await until(() => deathsIn(heddle).length === n, `death ${n}`)
      await allUp(heddle)
    }
  })
  const named = deathsIn(heddle).map((line) => guiltIn(line)?.plugin ?? null)
  assert.ok(!named.includes('calm.KeepCalm'), JSON.stringify(named))
  assert.equal(await heddle.stop(), 0)
})
