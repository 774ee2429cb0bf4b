import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NOTED_MAX, NotedRuns, readNoted } from '../../../src/primary/jobs/noted-runs.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

const KEY = 'shop.Bill/bill'
const facts = (id: string) => ({ id, asked_by: null, thread: 0, replica: 'one' })

async function database(t: TestContext): Promise<StoreDatabase> {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  return db
}

async function opened(db: StoreDatabase, fence: number): Promise<NotedRuns> {
  const noted = new NotedRuns({ database: db, fence, log: () => {} })
  await noted.open()
  return noted
}

test('NotedRuns: keeps the last runs of a job, without secrets', async (t) => {
  const db = await database(t)
  const noted = await opened(db, 1)
  for (let n = 0; n < 30; n++)
    noted.begin(KEY, facts(`job_${n}`))(n === 29 ? 'no Authorization: Bearer swordfish-0123456789abcdef' : null)
  assert.equal((await readNoted(db)).size, 0, 'written at most once a second')
  await noted.stop()
  const runs = (await readNoted(db)).get(KEY)!
  assert.deepEqual([runs.length, runs[0]!.id, runs.at(-1)!.id], [NOTED_MAX, 'job_29', 'job_20'])
  assert.deepEqual([runs[0]!.outcome, runs[1]!.outcome], ['failed', 'done'])
  assert.match(runs[0]!.error!, /^no/)
  assert.ok(!runs[0]!.error!.includes('swordfish'), runs[0]!.error!)
})

test('NotedRuns: a run that another process has begun is unfinished, and that process notes nothing more', async (t) => {
  const db = await database(t)
  const old = await opened(db, 1)
  const end = old.begin(KEY, facts('job_1'))
  await old.stop()
  const next = await opened(db, 2)
  next.begin(KEY, facts('job_2'))(null)
  await next.stop()
  end(null)
  await old.stop()
  assert.deepEqual(
    (await readNoted(db)).get(KEY)!.map(({ id, outcome }) => [id, outcome]),
    [
      ['job_2', 'done'],
      ['job_1', 'unfinished'],
    ],
  )
})

test('readNoted(): a row that somebody else wrote is no run', async (t) => {
  const db = await database(t)
  await db.execute(`INSERT INTO heddle_job_run VALUES ('a', 1, '{'), ('b', 1, '[null, 1, {"id": 1}]')`)
  assert.deepEqual([...(await readNoted(db)).values()], [[], []])
})
