import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import { AskedRuns, askForRun } from '../../../src/primary/jobs/job-asks.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { until } from '../../support/until.ts'

const asked = (id: string) => ({ id, askedBy: 'anna' })

async function storeDatabase(t: TestContext): Promise<StoreDatabase> {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  return db
}

/** The process that runs the jobs. */
function leader(t: TestContext, db: StoreDatabase, run: (key: string) => Promise<void>): string[] {
  const runs: string[] = []
  const asks = new AskedRuns({
    database: () => db,
    replica: 'two',
    run: (key, { id, askedBy }) => {
      runs.push(`${key} ${id} ${askedBy}`)
      return run(key)
    },
    log: () => {},
  })
  asks.start()
  t.after(() => asks.stop())
  return runs
}

const rows = (db: StoreDatabase) => db.query('SELECT id, answer FROM heddle_job_ask')

test('askForRun(): resolves with the process that has begun the run', async (t) => {
  const db = await storeDatabase(t)
  const runs = leader(t, db, async () => {})
  assert.equal(await askForRun(db, 'p/job', asked('job_1')), 'two')
  assert.deepEqual(runs, ['p/job job_1 anna'])
  assert.deepEqual(await rows(db), [])
})

test('askForRun(): rejects with what the other process says', async (t) => {
  const db = await storeDatabase(t)
  leader(t, db, () => Promise.reject(new HeddleError('JOB_RUNNING', 'Job job of p is running')))
  await assert.rejects(askForRun(db, 'p/job', asked('job_1')), {
    code: 'JOB_RUNNING',
    message: 'Job job of p is running',
  })
  assert.deepEqual(await rows(db), [])
})

test('askForRun(): withdraws what no process has taken in time', async (t) => {
  const db = await storeDatabase(t)
  await assert.rejects(askForRun(db, 'p/job', asked('job_1'), { answerMs: 300 }), {
    code: 'JOB_NOT_STARTED',
    message: /no process has taken the request within 0.3 s/,
  })
  assert.deepEqual(await rows(db), [])
  const runs = leader(t, db, async () => {})
  assert.equal(await askForRun(db, 'p/job', asked('job_2')), 'two')
  assert.deepEqual(runs, ['p/job job_2 anna'])
})

test('askForRun(): says so when the process that has taken it does not answer', async (t) => {
  const db = await storeDatabase(t)
  leader(t, db, () => new Promise((resolve) => setTimeout(resolve, 2000)))
  await assert.rejects(askForRun(db, 'p/job', asked('job_1'), { takenMs: 1500 }), {
    code: 'JOB_NOT_STARTED',
    message: /has taken the request and does not answer/,
  })
})

test('AskedRuns: neither runs nor keeps what a process has asked for that ended long ago', async (t) => {
  const db = await storeDatabase(t)
  await db.execute("INSERT INTO heddle_job_ask VALUES ('job_old', 'p/job', 'anna', 1000, NULL)")
  const runs = leader(t, db, async () => {})
  await until(async () => (await rows(db)).length === 0, 'the sweep')
  assert.deepEqual(runs, [])
})
