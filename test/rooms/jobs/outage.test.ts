import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { spawnHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'
import { stageOf } from './stored-jobs.ts'

const TIMEOUT = { timeout: 180_000 }

test('while the database is away nothing runs, and afterwards it goes on', TIMEOUT, async (t) => {
  const dueMs = Date.now() + 6000
  const stage = await stageOf(
    t,
    (own) => onPostgres(own, true),
    `scheduler.every('tick', 100, run('tick'))
    scheduler.at('bill', new Date(${dueMs}), run('bill'))`,
  )
  if (stage === null) return
  const heddle = await stage.start()
  await until(async () => (await stage.runs('tick')).length > 2, 'some runs')
  await stage.store.server!.stop()
  await until(() => heddle.logs.some(({ msg }) => /waits for the database/.test(msg)), 'the warning', 30_000)
  await until(() => Date.now() > dueMs + 200, 'the date', 30_000)
  await stage.store.server!.start()
  const before = Date.now()
  await until(async () => (await stage.runs('bill').catch(() => [])).length === 1, 'the date', 60_000)
  await until(async () => (await stage.runs('tick')).some(({ due }) => due > before), 'the interval', 60_000)
  assert.equal((await stage.runs('bill'))[0]!.due, dueMs)
  assert.equal(await heddle.stop(), 0)
})

test(
  'where the tables are missing and must not be made, jobs wait for them, and the log says so',
  TIMEOUT,
  async (t) => {
    const stage = (await stageOf(t, onSqlite, `scheduler.at('bill', new Date(0), () => {})`))!
    const heddle = await stage.start({ DB_AUTO_MIGRATE: 'false' })
    await until(() => heddle.logs.some(({ msg }) => /tables are missing.+ and jobs wait/.test(msg)), 'the warning')
    const [bill] = (await heddle.json('/work/jobs')).body.jobs
    assert.deepEqual([bill.fires_here, bill.runs], [false, 0])
    const { child } = await spawnHeddle(t, {
      domains: [],
      env: { DB_AUTO_MIGRATE: 'true', SQLITE_PATH: stage.store.path! },
      args: ['--boot-tool', 'db'],
    })
    await once(child, 'exit')
    await until(async () => (await heddle.json('/work/jobs')).body.jobs[0].runs === 1, 'its run', 30_000)
    assert.equal(await heddle.stop(), 0)
  },
)
