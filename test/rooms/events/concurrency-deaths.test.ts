import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, type LogLine, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/bounded', import.meta.url))]
const COUNT = 30

interface Baked extends LogLine {
  n: number
  beganMs: number
  endedMs: number
}

async function bakesOneAtATime(t: TestContext, env: Record<string, string>): Promise<void> {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
  assert.equal((await heddle.post('/bake', { count: COUNT, deadly: 5 })).status, 200)
  const baked = await until(
    () => {
      const lines = heddle.logs.filter(({ msg }) => msg === 'baked') as Baked[]
      return lines.length >= COUNT ? lines : undefined
    },
    'all cakes',
    30_000,
  )
  assert.deepEqual(
    baked.map(({ n }) => n).sort((a, b) => a - b),
    Array.from({ length: COUNT }, (_, n) => n),
  )
  const inTime = baked.sort((a, b) => a.beganMs - b.beganMs)
  for (let at = 1; at < inTime.length; at++) {
    assert.ok(inTime[at]!.beganMs >= inTime[at - 1]!.endedMs, `${inTime[at - 1]!.n} and ${inTime[at]!.n} at once`)
  }
  assert.ok(
    heddle.logs.some(({ identity }) => identity === 'supervisor'),
    'a lane has died of it',
  )
}

test('the bound holds while a lane dies of one of the deliveries', (t) => bakesOneAtATime(t, {}))

test('the bound holds over streams while a lane dies of one of the deliveries', async (t) => {
  const redis = await redisServer(t)
  if (redis !== null) await bakesOneAtATime(t, { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' })
})

/** @param env the same for both processes, and so is what it says of the broker */
async function handsOnWhatWaits(t: TestContext, env: Record<string, string>): Promise<void> {
  const bakedBy = ({ logs }: Heddle) => (logs.filter(({ msg }) => msg === 'baked') as Baked[]).map(({ n }) => n)
  const first = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
  await first.post('/bake', { count: 9, ms: 400 })
  await until(() => bakedBy(first).length > 0, 'the first cake')
  assert.equal(await first.stop(), 0)
  const before = bakedBy(first)
  assert.ok(before.length < 9, 'it has not waited for all')
  const second = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
  await until(() => before.length + bakedBy(second).length >= 9, 'the others', 30_000)
  const all = [...before, ...bakedBy(second)].sort((a, b) => a - b)
  assert.deepEqual(
    all,
    Array.from({ length: 9 }, (_, n) => n),
    'each once',
  )
}

test('a process that ends gives back what waits, and the next one handles it', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  await handsOnWhatWaits(t, { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: 'baker' })
})

test('what waits in the database is handled by the next process', async (t) => {
  const folder = await folderOf(t, {})
  await handsOnWhatWaits(t, { EVENT_BUS_DRIVER: 'database', SQLITE_PATH: join(folder, 'bakery.db') })
})
