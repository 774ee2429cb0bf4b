import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Missed, Schedule } from '../../../src/contracts/scheduler.ts'
import { Jobs } from '../../../src/primary/jobs/jobs.ts'
import { type StorableJob, StoredJobs } from '../../../src/primary/jobs/stored-jobs.ts'
import type { StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { jobOf, laneOf } from '../../support/fake-lane.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { until } from '../../support/until.ts'

const KEY = 'shop.Bill/bill'

const LATER_MS = Date.now() + 3_600_000

async function database(t: TestContext): Promise<StoreDatabase> {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  return db
}

/** The jobs as a process sees them that has become the leader. @param bootMs by the database's clock */
async function elected(db: StoreDatabase, fence: number, bootMs = 0, logs: string[] = []): Promise<StoredJobs> {
  const stored = new StoredJobs({
    database: db,
    fence,
    bootMs,
    startedMs: Date.now(),
    maxAttempts: 3,
    log: (level, message) => logs.push(`${level} ${message}`),
  })
  await stored.open()
  return stored
}

const job = (schedule: Schedule, missed: Missed = 'skip'): StorableJob => ({
  plugin: 'shop.Bill',
  name: 'bill',
  schedule,
  missed,
})

const at = (atMs: number) => job({ kind: 'at', atMs })

test('a date that waits is set anew by a process that booted later, and by no other', async (t) => {
  const db = await database(t)
  await (await elected(db, 1, 1000)).place(KEY, at(LATER_MS))
  const placed = async (bootMs: number, fence: number, atMs: number) =>
    (await (await elected(db, fence, bootMs)).place(KEY, at(atMs)))!.dueMs
  assert.equal(await placed(2000, 2, LATER_MS + 1), LATER_MS + 1)
  assert.equal(await placed(1000, 3, LATER_MS), LATER_MS + 1, 'it booted before: the date of the other stays')
  assert.equal(await placed(1500, 4, LATER_MS + 5), LATER_MS + 1)
})

test('a date that has run is over for processes that were there, and another one for those that come', async (t) => {
  const db = await database(t)
  const bootMs = Date.now() - 1000
  const leader = await elected(db, 1, bootMs)
  const { dueMs } = (await leader.place(KEY, at(0)))!
  assert.equal(dueMs, 0)
  assert.equal(await leader.claim(KEY, at(0), { dueMs: 0, nextMs: null, attempt: 1 }), true)
  await leader.done(KEY)
  assert.deepEqual(await (await elected(db, 2, bootMs)).place(KEY, at(5)), { dueMs: null, attempts: 1 })
  assert.deepEqual(await (await elected(db, 3, Date.now() + 60_000)).place(KEY, at(0)), { dueMs: null, attempts: 1 })
  assert.deepEqual(await (await elected(db, 4, Date.now() + 60_000)).place(KEY, at(5)), { dueMs: 5, attempts: 0 })
})

test('a leader from before places and claims nothing', async (t) => {
  const db = await database(t)
  const [old, leader] = [await elected(db, 1), await elected(db, 2)]
  const run = { dueMs: LATER_MS, nextMs: null, attempt: 1 }
  assert.ok(await old.place(KEY, at(LATER_MS)))
  assert.ok(await leader.place(KEY, at(LATER_MS)))
  assert.equal(await old.claim(KEY, at(LATER_MS), run), false)
  assert.equal(await old.place(KEY, at(LATER_MS)), null)
  await old.done(KEY)
  assert.equal(await leader.claim(KEY, at(LATER_MS), run), true)
  assert.deepEqual(await leader.place(KEY, at(LATER_MS)), { dueMs: LATER_MS, attempts: 1 })
})

test('a date that processes have ended in is tried three times', async (t) => {
  const db = await database(t)
  const logs: string[] = []
  const placements: (number | null)[] = []
  for (const attempt of [1, 2, 3]) {
    const leader = await elected(db, attempt, 0, logs)
    placements.push((await leader.place(KEY, at(LATER_MS)))!.dueMs)
    await leader.claim(KEY, at(LATER_MS), { dueMs: LATER_MS, nextMs: null, attempt })
  }
  placements.push((await (await elected(db, 4, 0, logs)).place(KEY, at(LATER_MS)))!.dueMs)
  assert.deepEqual(placements, [LATER_MS, LATER_MS, LATER_MS, null])
  assert.deepEqual(logs, [
    'WARNING Job bill of shop.Bill: its process ended in it; it is tried again',
    'WARNING Job bill of shop.Bill: its process ended in it; it is tried again',
    'ERROR Job bill of shop.Bill is given up: its process ended in it, at attempt 3',
  ])
})

test('another cron expression or interval begins anew, and the same goes on', async (t) => {
  const db = await database(t)
  const every = (everyMs: number) => job({ kind: 'every', everyMs })
  const { dueMs } = (await (await elected(db, 1)).place(KEY, every(3_600_000)))!
  assert.deepEqual(await (await elected(db, 2)).place(KEY, every(3_600_000)), { dueMs, attempts: 0 })
  const anew = await (await elected(db, 3)).place(KEY, every(7_200_000))
  assert.ok(anew!.dueMs! > dueMs! + 3_000_000)
  assert.deepEqual(await (await elected(db, 4)).place(KEY, every(7_200_000)), anew)
})

test('a job goes to a lane whose loop turns, and to one that stands still only where there is no other', async (t) => {
  const manifest = { jobs: [{ ...jobOf('shop.Sell', 'tick'), schedule: { kind: 'every', everyMs: 10 } as const }] }
  const [still, well] = [0, 1].map((index) => laneOf(t, { index, manifest }))
  const jobs = new Jobs({
    enabled: true,
    lanes: () => [still!, well!],
    isPaused: () => false,
    database: () => null,
    isStored: () => false,
    replica: 'one',
    log: () => {},
  })
  t.after(() => jobs.stop())
  still!.responsive = false
  jobs.addOf(still!, () => false)
  jobs.start()
  await until(() => jobs.list()[0]!.runs === 1, 'a run')
  assert.deepEqual([jobs.workInFlight(still!).length, jobs.workInFlight(well!).length], [0, 1])
  well!.responsive = false
  jobs.laneGone(well!, null)
  await until(() => jobs.list()[0]!.runs === 2, 'another run')
  jobs.laneGone(still!, null)
  jobs.laneGone(well!, null)
})

for (const schedule of [
  { kind: 'cron', expression: '* * * * *' },
  { kind: 'every', everyMs: 60_000 },
] as const) {
  test(`a run of ${schedule.kind} that was stored before the clock was set back does not wait for that time`, async (t) => {
    const db = await database(t)
    const placed = async (fence: number) => (await (await elected(db, fence)).place(KEY, job(schedule)))!.dueMs!
    await placed(1)
    await db.execute('UPDATE heddle_job SET due_ms = due_ms + $1', [4 * 3_600_000])
    assert.ok((await placed(2)) <= Date.now() + 60_000)
  })
}
