import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { describeOnDatabases } from '../../support/databases.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { systemDomain } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const SHOP = fileURLToPath(new URL('../../fixtures/monitored', import.meta.url))
const QUEUE = '{event="shop.held",subscriber="shop.Hold.hold"}'
const HOUR_MS = 3_600_000

const startShop = (t: TestContext, env: Record<string, string>): Promise<Heddle> =>
  startHeddle(t, { domains: [systemDomain(), SHOP], lanes: 1, env: { ...env, SHUTDOWN_TIMEOUT_MS: '500' } })

/** What Prometheus would see now. */
async function seen(heddle: Heddle) {
  const text = await (await heddle.fetch('/system/metrics/prometheus')).text()
  const numberOf = (name: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(name))
        ?.split(' ')
        .at(-1),
    )
  return {
    depth: numberOf(`heddle_queue_deliveries${QUEUE}`),
    ageSec: numberOf(`heddle_queue_oldest_age_seconds${QUEUE}`),
    stored: numberOf('heddle_stored_deliveries{}'),
  }
}

/** Three events, of which the subscriber holds the first. */
async function isMeasured(heddle: Heddle): Promise<void> {
  assert.deepEqual([(await seen(heddle)).depth, (await seen(heddle)).ageSec], [0, 0])
  for (let n = 0; n < 3; n++) await heddle.post('/shop/held/0')
  await until(async () => (await seen(heddle)).depth === 3, 'three are in hand')
  await until(async () => (await seen(heddle)).ageSec > 1, 'they grow old')
  const { ageSec } = await seen(heddle)
  assert.ok(ageSec < 300, String(ageSec))
}

async function isOver(heddle: Heddle): Promise<void> {
  await heddle.fetch('/shop/held', { method: 'DELETE' })
  await until(async () => {
    const { depth, ageSec } = await seen(heddle)
    return depth === 0 && ageSec === 0
  }, 'nothing waits')
}

describeOnDatabases('the age of what waits for a subscriber', (database) => {
  test('grows while it waits, and a delayed event that is not due has none', async (t) => {
    const heddle = await startShop(t, await database.env(t))
    await heddle.post(`/shop/held/${HOUR_MS}`)
    await isMeasured(heddle)
    await until(async () => (await seen(heddle)).stored === 4, 'all rows are counted')
    await isOver(heddle)
    await until(async () => (await seen(heddle)).stored === 1, 'the delayed one is left')
  })

  test('begins when a delayed event is due, not when it was published', async (t) => {
    const heddle = await startShop(t, await database.env(t))
    const startedMs = Date.now()
    await heddle.post('/shop/held/5000')
    let last = await seen(heddle)
    await until(async () => {
      last = await seen(heddle)
      return last.depth === 1 && last.ageSec > 0
    }, 'it is due')
    const sincePublishedSec = (Date.now() - startedMs) / 1000
    assert.ok(last.ageSec < sincePublishedSec - 4, `${last.ageSec} of ${sincePublishedSec}`)
    await isOver(heddle)
  })

  if (database.name === 'PostgreSQL')
    test('is the same in a process that has nothing of it in hand', async (t) => {
      const env = { ...(await database.env(t)), AUTH_SECRET_KEY: 'k'.repeat(32) }
      const [one, two] = [await startShop(t, env), await startShop(t, env)]
      await one.post('/shop/held/0')
      await until(async () => (await seen(one)).ageSec > 1 && (await seen(two)).ageSec > 1, 'both see it')
      const depths = [(await seen(one)).depth, (await seen(two)).depth]
      assert.deepEqual(depths.sort(), [0, 1])
    })
})

test('the age of what waits in memory alone grows', async (t) => {
  const heddle = await startShop(t, { EVENT_BUS_DRIVER: 'in_process' })
  await isMeasured(heddle)
  await isOver(heddle)
})

test('the age of what waits over Redis Streams grows', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  const heddle = await startShop(t, { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: 'ages' })
  await isMeasured(heddle)
  await isOver(heddle)
})
