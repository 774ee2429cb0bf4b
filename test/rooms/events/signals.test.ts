/** The signal of an event: why handlers are told to end, and what one that ends late may not do any more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, STORES } from '../event-store/databases.ts'
import { stageOf } from '../jobs/stored-jobs.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/signals', import.meta.url))

interface Answer {
  seen: { name: string; attempt: number; reason: string | null; code: string | null }[]
  done: { name: string; attempt: number }[]
  dead: string[]
}

const answerOf = async (heddle: Heddle): Promise<Answer> => (await heddle.json('/seen')).body
const work = (heddle: Heddle, event: string) => heddle.post('/work', { event, name: event })

for (const driver of ['database', 'in_process']) {
  test(`a handler whose time is up gets its signal, and its attempt has failed (${driver})`, async (t) => {
    const heddle = await startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: driver } })
    await work(heddle, 'work.waits')
    await until(async () => (await answerOf(heddle)).seen.length === 1, 'the end of the handler')
    assert.deepEqual((await answerOf(heddle)).seen, [
      { name: 'work.waits', attempt: 1, reason: 'timeout', code: 'DELIVERY_LOST' },
    ])
    await until(async () => (await answerOf(heddle)).dead.length === 1, 'the dead letter')
    assert.deepEqual((await answerOf(heddle)).dead, ['The subscriber did not finish within 300 ms'])
  })

  test(`a handler that says that it still works has its time anew (${driver})`, async (t) => {
    const heddle = await startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: driver } })
    await work(heddle, 'work.beats')
    await until(async () => (await answerOf(heddle)).seen.length === 1, 'the end of the handler')
    const { seen, dead } = await answerOf(heddle)
    assert.deepEqual([seen, dead], [[{ name: 'work.beats', attempt: 1, reason: null, code: null }], []])
  })
}

test('a transaction whose time was up is not committed, and the next attempt does its work', async (t) => {
  const heddle = await startHeddle(t, { domains: [DOMAINS], lanes: 1 })
  await work(heddle, 'work.booked')
  await until(async () => (await answerOf(heddle)).seen.some(({ reason }) => reason === null), 'an attempt in time')
  const { seen, done, dead } = await answerOf(heddle)
  const inTime = seen.filter(({ reason }) => reason === null)
  assert.deepEqual([seen[0]!.reason, inTime.length], ['timeout', 1])
  assert.deepEqual([done, dead], [[{ name: 'work.booked', attempt: inTime[0]!.attempt }], []])
})

test('a stop that will not wait tells the handler, and the next process has the event', async (t) => {
  const heddle = await startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { SHUTDOWN_TIMEOUT_MS: '3000' } })
  await work(heddle, 'work.lasts')
  assert.equal(await heddle.stop(), 0)
  assert.ok(
    heddle.logs.some(({ msg }) => msg === 'work.lasts has ended: stopped'),
    'it was told',
  )
})

test('a handler whose slot another process has gets its signal, and commits nothing', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const heddle = await store.start()
  await Promise.all(['work.lasts', 'work.stays'].map((event) => work(heddle, event)))
  const begun = 'SELECT seq FROM heddle_delivery WHERE begun = 1'
  await until(
    async () => heddle.logs.filter(({ msg }) => /^work\.(lasts|stays) has begun$/.test(msg)).length === 2,
    'both handlers',
  )
  assert.ok((await store.rows(begun)).length <= 2)
  await store.rows('UPDATE heddle_slot SET member = 1000000, epoch = epoch + 1')
  await until(async () => (await answerOf(heddle)).seen.length === 2, 'the ends of the handlers')
  const { seen, done, dead } = await answerOf(heddle)
  assert.deepEqual(seen.map(({ name, reason }) => [name, reason]).sort(), [
    ['work.lasts', 'moved'],
    ['work.stays', 'moved'],
  ])
  assert.deepEqual([done, dead], [[], []])
})

for (const [name, storeOf] of STORES) {
  test(`a job at a date that is told to end is run again by the next process (${name})`, async (t) => {
    const dueMs = Date.now() + 3000
    const stage = await stageOf(
      t,
      storeOf,
      `scheduler.at('long', new Date(${dueMs}), async (run) => {
        await run0(run)
        if (run.attempt === 1) await new Promise((_, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason)))
        await db.execute('UPDATE runs SET name = $1 WHERE attempt = $2', ['ended', run.attempt])
      })
      const run0 = run('begun')`,
    )
    if (stage === null) return t.skip('no such server')
    const first = await stage.start({ SHUTDOWN_TIMEOUT_MS: '3000' })
    await until(async () => (await stage.runs('begun')).length === 1, 'its first run')
    assert.equal(await first.stop(), 0)
    await stage.start()
    await until(async () => (await stage.runs('ended')).length === 1, 'its second run')
    assert.deepEqual(
      (await stage.runs()).map((run) => [run.name, run.attempt]),
      [
        ['begun', 1],
        ['ended', 2],
      ],
    )
  })
}
