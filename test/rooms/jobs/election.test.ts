import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { kill, onPostgres, onSqlite } from '../event-store/databases.ts'
import { type Run, stageOf } from './stored-jobs.ts'

const TIMEOUT = { timeout: 180_000 }
/** The lease, the other's next look, and a slow machine. */
const FAILOVER_MS = 60_000

const jobsOf = async (heddle: Heddle): Promise<JobInfo[]> => (await heddle.json('/work/jobs')).body.jobs
const firesHere = async (heddle: Heddle): Promise<boolean> => (await jobsOf(heddle)).every((job) => job.fires_here)
const ticksBy = (runs: readonly Run[], heddle: Heddle): Run[] =>
  runs.filter(({ name, pid }) => name === 'tick' && pid === heddle.process.pid)

function assertEachOnce(runs: readonly Run[]): void {
  const times = runs.map(({ name, due }) => `${name} ${due}`)
  assert.deepEqual(
    times.filter((time, n) => times.indexOf(time) !== n),
    [],
    'nothing ran twice',
  )
}

const jobs = (dueMs: number): string => `scheduler.every('tick', 100, run('tick'))
  scheduler.cron('second', '* * * * * *', run('second'))
  scheduler.at('bill', new Date(${dueMs}), run('bill'))`

test('of several processes on one database one runs the jobs, and another when it ends', TIMEOUT, async (t) => {
  const stage = await stageOf(t, (own) => onPostgres(own), jobs(0))
  if (stage === null) return
  const both = await Promise.all([stage.start(), stage.start()])
  const never = await stage.start({ SCHEDULER_ENABLED: 'false' })
  await until(async () => (await stage.runs('second')).length >= 2, 'some runs')
  const [leader, other] = (await firesHere(both[0])) ? both : [both[1], both[0]]
  for (const heddle of [other, never]) {
    for (const job of await jobsOf(heddle!))
      assert.deepEqual([job.fires_here, job.next_run, job.runs], [false, null, 0])
  }
  assert.equal(await leader!.stop(), 0)
  await until(async () => ticksBy(await stage.runs(), other!).length > 2, 'the other one', FAILOVER_MS)
  // Killed, it is known to be dead on this machine: the next one need not wait for the end of its lease.
  await kill(other!)
  const next = await stage.start()
  await until(async () => ticksBy(await stage.runs(), next).length > 2, 'the next one', FAILOVER_MS)
  const runs = await stage.runs()
  assertEachOnce(runs)
  assert.equal(runs.filter(({ name }) => name === 'bill').length, 1)
  assert.equal(runs.filter(({ pid }) => pid === never.process.pid).length, 0)
  assert.deepEqual(
    [leader!, other!, next].map((heddle) => [...new Set(ticksBy(runs, heddle).map(({ fence }) => fence))]),
    [[1], [2], [3]],
  )
  assert.deepEqual(await Promise.all([next.stop(), never.stop()]), [0, 0])
})

test('a lease that nobody renews keeps no job waiting, however far its end is', TIMEOUT, async (t) => {
  const stage = await stageOf(t, (own) => onPostgres(own), jobs(0))
  if (stage === null) return
  const heddle = await stage.start()
  await until(async () => (await stage.runs('tick')).length > 2, 'some runs')
  await stage.store.rows("UPDATE heddle_lease SET holder = 'others', fence = fence + 1, expires_ms = 9000000000000")
  await until(async () => !(await firesHere(heddle)), 'it knows', FAILOVER_MS)
  const before = (await stage.runs('tick')).length
  await until(async () => (await stage.runs('tick')).length > before + 2, 'runs again', FAILOVER_MS)
  assertEachOnce(await stage.runs())
  assert.equal(await heddle.stop(), 0)
})

test('a process that stood still while another was elected runs nothing twice when it goes on', TIMEOUT, async (t) => {
  const dueMs = Date.now() + 10_000
  const stage = await stageOf(t, (own) => onPostgres(own), jobs(dueMs))
  if (stage === null) return
  const both = await Promise.all([stage.start(), stage.start()])
  await until(async () => (await stage.runs('tick')).length >= 5, 'some runs')
  const [leader, other] = (await firesHere(both[0])) ? both : [both[1], both[0]]
  leader!.process.kill('SIGSTOP')
  try {
    await until(async () => ticksBy(await stage.runs(), other!).length > 2, 'the other one', FAILOVER_MS)
    await until(async () => (await stage.runs('bill')).length > 0, 'the date', FAILOVER_MS)
  } finally {
    leader!.process.kill('SIGCONT')
  }
  // Its lease on events is as long: once they are taken over, too, it ends by itself.
  const isOver = () => leader!.process.exitCode !== null
  await until(async () => isOver() || !(await firesHere(leader!).catch(isOver)), 'it knows', FAILOVER_MS)
  const before = ticksBy(await stage.runs(), other!).length
  await until(async () => ticksBy(await stage.runs(), other!).length > before + 20, 'more runs')
  const runs = await stage.runs()
  assertEachOnce(runs)
  assert.equal(runs.filter(({ name }) => name === 'bill').length, 1)
  const ranLast = Math.max(...ticksBy(runs, leader!).map(({ due }) => due))
  const ranFirst = Math.min(...ticksBy(runs, other!).map(({ due }) => due))
  assert.ok(ranLast < ranFirst, 'the frozen one ran nothing after the other had begun')
  const [itsCode, code] = await Promise.all([leader!.stop(), other!.stop()])
  assert.ok(itsCode === 0 || itsCode === 75, `${itsCode}`)
  assert.equal(code, 0)
})

test(
  'of two processes on one file the last to start runs the jobs, and the first one again when it is killed',
  TIMEOUT,
  async (t) => {
    const stage = (await stageOf(t, onSqlite, `scheduler.every('tick', 100, run('tick'))`))!
    // The event store of the file is this one's, which never runs jobs.
    const env = { EVENT_BUS_DRIVER: 'in_process' }
    const never = await stage.start({ ...env, SCHEDULER_ENABLED: 'false' })
    const first = await stage.start(env)
    await until(async () => ticksBy(await stage.runs(), first).length > 2, 'the first one', FAILOVER_MS)
    const last = await stage.start(env)
    await until(async () => ticksBy(await stage.runs(), last).length > 2, 'the last one', FAILOVER_MS)
    await until(async () => !(await firesHere(first)), 'the first one knows')
    const before = ticksBy(await stage.runs(), first).length
    await kill(last)
    await until(async () => ticksBy(await stage.runs(), first).length > before + 2, 'the first one again', FAILOVER_MS)
    const fences = new Set(ticksBy(await stage.runs(), first).map(({ fence }) => fence))
    assert.deepEqual([...fences], [1, 3])
    assert.deepEqual(await Promise.all([first.stop(), never.stop()]), [0, 0])
  },
)
