import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet } from '../../support/replicas.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'

const FROZEN_MS = 3000
const COUNT = 20

/** Two replicas on a Redis that can stand still. */
const testOutage = testWith(async (t) => {
  const postgres = await postgresServer(t)
  if (postgres === null) return null
  const redis = await redisServer(t, { own: true })
  if (redis === null) return null
  const env = { EVENT_BUS_CLAIM_IDLE_MS: '1000', SHUTDOWN_TIMEOUT_MS: '5000' }
  const fleet = await Fleet.start(t, { postgres, redis, env })
  const replicas = await Promise.all([fleet.replica('a'), fleet.replica('b')])
  return { fleet, redis, replicas }
})

testOutage(
  'what is in hand while Redis stands still is given to nobody else, and runs once',
  async ({ fleet, redis, replicas }) => {
    const body = { count: COUNT, payload: { ms: FROZEN_MS + 1500 } }
    await Promise.all(replicas.map((replica) => replica.post('/events/order.taken', body)))
    const begun = () => fleet.seen('order.taken', 'begins')
    await until(async () => (await begun()).length >= 2 * COUNT, 'all are begun')
    redis.freeze()
    await sleep(FROZEN_MS)
    redis.thaw()
    await until(async () => (await fleet.seen('order.taken')).length >= 2 * COUNT, 'all have ended', 60_000)
    await until(async () => (await fleet.unfinished('order.taken')) === 0, 'all are acknowledged', 60_000)
    assert.equal((await begun()).length, 2 * COUNT)
  },
)

testOutage(
  'a replica ends while Redis stands still, and what it could not acknowledge is handled',
  async ({ fleet, redis, replicas }) => {
    const [a, b] = replicas
    const { body } = await b!.post('/events/order.taken', { count: COUNT, payload: { ms: 500 } })
    redis.freeze()
    assert.equal(await b!.stop(), 0)
    redis.thaw()
    const ids: string[] = body.data.ids
    const isHandled = async (): Promise<boolean> => {
      const seen = new Set((await fleet.seen('order.taken')).map(({ event_id }) => event_id))
      return ids.every((id) => seen.has(id)) && (await fleet.unfinished('order.taken')) === 0
    }
    await until(isHandled, `all are handled, by ${a!.id} if need be`, 60_000)
  },
)
