import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JobReport, RunWithLogs } from '../../../domains/system/job-reports.ts'
import { temporaryFolder } from '../../support/folder.ts'
import type { Heddle } from '../../support/heddle.ts'
import { pgBouncerServer } from '../../support/servers/pgbouncer.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { kill, type LogStore, onPostgres, onSqlite, type StoreMaker } from '../event-store/databases.ts'
import { stageOf } from './stored-jobs.ts'

const TIMEOUT = { timeout: 180_000 }
const HOUR_MS = 3_600_000
const WORK = 'work.Work'

/** `slow` goes on until its row is there. */
const JOBS = `
  scheduler.cron('report', '0 3 * * *', async ({ id, askedBy }) => {
    logger.info('The report begins', { id, askedBy })
    await run('report')({ due: new Date(), attempt: 1, fence: 0 })
    logger.warning('The report is late')
  }, { timeZone: 'Europe/Vienna' })
  scheduler.every('often', 700_000, () => {})
  scheduler.every('broken', ${HOUR_MS}, () => { throw new Error('no paper') })
  scheduler.at('bill', new Date(${Date.now()} + ${24 * HOUR_MS}), run('bill'))
  scheduler.every('slow', ${HOUR_MS}, async () => {
    while ((await db.query("SELECT 1 FROM runs WHERE name = 'go on'")).length === 0) await new Promise((go) => setTimeout(go, 20))
  })
  scheduler.every('deadly', ${HOUR_MS}, () => process.exit(1))
  http.post('/work/run/:name', async ({ name }) => scheduler.runNow(name))`

const run = (heddle: Heddle, name: string, plugin = WORK) =>
  heddle.json('/system/jobs/run', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ job: `${plugin}/${name}` }),
  })

const jobsOf = async (heddle: Heddle): Promise<Record<string, JobReport>> => {
  const { status, body } = await heddle.json('/system/jobs')
  assert.equal(status, 200, JSON.stringify(body))
  const { jobs } = body as { jobs: JobReport[] }
  return Object.fromEntries(jobs.filter(({ plugin }) => plugin === WORK).map((job) => [job.name, job]))
}

async function runsOf(heddle: Heddle, name: string): Promise<RunWithLogs[]> {
  const { status, body } = await heddle.json(`/system/jobs/runs?job=${WORK}/${name}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body.runs
}

/** The run with this id, once it has ended. */
const ended = (heddle: Heddle, name: string, id: string) =>
  until(async () => {
    const run = (await runsOf(heddle, name)).find((each) => each.id === id)
    return run !== undefined && run.outcome !== 'running' ? run : null
  }, `the end of ${name}`)

/** Runs a job now. @returns the id of the run */
async function started(heddle: Heddle, name: string): Promise<string> {
  const { status, body } = await run(heddle, name)
  assert.equal(status, 202, JSON.stringify(body))
  return body.data.id
}

/** Processes that share histories. Null where there is no such server. */
async function stagedOn(t: TestContext, storeOf: StoreMaker, replicas: readonly string[], histories = 1) {
  const stage = await stageOf(t, storeOf, JOBS, [SHIPPED])
  if (stage === null) return null
  const folder = temporaryFolder(t)
  const all: Heddle[] = []
  for (const [n, replica] of replicas.entries()) {
    const env = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, `history-${n % histories}.db`) }
    all.push(await stage.start({ ...env, REPLICA_ID: replica }))
  }
  const placed = `SELECT name FROM heddle_job WHERE name LIKE '${WORK}/%'`
  await until(async () => (await stage.store.rows(placed)).length === 6, 'stored jobs')
  const fires = await until(async () => {
    const found = await Promise.all(all.map(async (heddle) => (await jobsOf(heddle)).often!.fires_here))
    return found.filter((is) => is).length === 1 ? found : null
  }, 'one process runs the jobs')
  const at = fires.indexOf(true)
  return { stage, leader: all[at]!, other: all.find((_, n) => n !== at) ?? all[at]!, name: replicas[at]! }
}

async function runsOnEither(t: TestContext, storeOf: StoreMaker, replicas: readonly string[]): Promise<void> {
  const found = await stagedOn(t, storeOf, replicas)
  if (found === null) return
  const { stage, leader, other, name } = found
  // The runs of the next hour, on either process.
  for (const heddle of [leader, other]) {
    await until(async () => (await jobsOf(heddle)).often!.upcoming?.count === 5, 'the next runs')
    const { often, report, bill } = await jobsOf(heddle)
    assert.equal(often!.upcoming!.runs.length, 5)
    assert.equal(report!.time_zone, 'Europe/Vienna')
    assert.equal(bill!.upcoming!.count, 0)
    assert.equal(often!.last_run, null)
  }

  // Run now, on either process: the one that runs the jobs runs it.
  for (const heddle of [leader, other]) {
    const { status, body } = await run(heddle, 'report')
    assert.deepEqual([status, body.data.replica], [202, name])
    const last = await ended(heddle, 'report', body.data.id)
    assert.deepEqual([last.outcome, last.error], ['done', null])
    assert.deepEqual([last.replica, last.thread, last.asked_by], [name, 0, 'anyone from 127.0.0.1'])
    assert.deepEqual(
      last.logs!.map(({ level, message }) => [level, message]),
      [
        ['INFO', 'The report begins'],
        ['WARNING', 'The report is late'],
      ],
    )
    assert.deepEqual(last.logs![0]!.fields, { id: last.id, askedBy: last.asked_by })
    assert.ok(last.logs!.every(({ at }) => at >= last.began_at))
  }
  assert.equal((await stage.runs('report')).length, 2)
  assert.equal((await runsOf(other, 'report')).length, 2)
  assert.equal((await jobsOf(other)).report!.last_run!.asked_by, 'anyone from 127.0.0.1')

  // A plugin in a lane asks for its own job, and is named.
  const own = await other.json('/work/run/report', { method: 'POST' })
  assert.deepEqual([own.status, own.body.replica], [200, name])
  assert.equal((await ended(other, 'report', own.body.id)).asked_by, WORK)

  // A date has had its run then, for all processes.
  await started(other, 'bill')
  await until(
    async () => (await stage.store.rows('SELECT 1 FROM heddle_job WHERE due_ms IS NULL')).length === 1,
    'its end',
  )
  assert.equal((await stage.runs('bill')).length, 1)

  // What fails says so.
  const broken = await ended(other, 'broken', await started(other, 'broken'))
  assert.deepEqual([broken.outcome, broken.error], ['failed', 'no paper'])

  // A run that goes on is there, and keeps others from beginning.
  const slow = await started(other, 'slow')
  await until(async () => (await runsOf(other, 'slow'))[0]?.outcome === 'running', 'the run')
  for (const heddle of [leader, other]) {
    const refused = await run(heddle, 'slow')
    assert.equal(refused.status, 409)
    assert.match(refused.body.error, /Job slow of work\.Work is running/)
  }
  await stage.store.rows("INSERT INTO runs (name, due) VALUES ('go on', 0)")
  assert.equal((await ended(other, 'slow', slow)).outcome, 'done')

  // The lane of this one dies in it.
  const deadly = await ended(other, 'deadly', await started(other, 'deadly'))
  assert.equal(deadly.outcome, 'failed')
  assert.match(deadly.error!, /Lane 0 died/)

  for (const heddle of [leader, other]) {
    const unknown = await run(heddle, 'nothing')
    assert.equal(unknown.status, 404)
    assert.match(unknown.body.error, /No plugin has registered the job work\.Work\/nothing/)
  }
  assert.deepEqual(await stage.store.rows('SELECT id FROM heddle_job_ask'), [])
}

test('run now: one of two processes runs the job, whichever is asked, on PostgreSQL', TIMEOUT, (t) =>
  runsOnEither(t, (own) => onPostgres(own), ['one', 'two']),
)

/** Behind a pooler that gives each transaction a session. */
async function pooled(t: TestContext): Promise<LogStore | null> {
  const store = await onPostgres(t)
  const pooler = store && (await pgBouncerServer(t, store.server!, 'transaction'))
  if (store === null || pooler === null) return null
  return { ...store, start: (env) => store.start({ ...pooler.env, RDB_POOLER: 'transaction', ...env }) }
}

test('run now: one of two processes runs the job, whichever is asked, behind a pooler', TIMEOUT, (t) =>
  runsOnEither(t, pooled, ['one', 'two']),
)

test('run now: the process runs the job, on a file', TIMEOUT, (t) => runsOnEither(t, (own) => onSqlite(own), ['one']))

test('a process with a history of its own knows the last runs, and which process ran them', TIMEOUT, async (t) => {
  const found = await stagedOn(t, (own) => onPostgres(own), ['one', 'two'], 2)
  if (found === null) return
  const { leader, other, name } = found
  const broken = await started(other, 'broken')
  const failed = await ended(other, 'broken', broken)
  assert.deepEqual([failed.outcome, failed.error, failed.replica, failed.thread], ['failed', 'no paper', name, 0])
  assert.equal(failed.asked_by, 'anyone from 127.0.0.1')
  // Its logs are in the other history.
  assert.equal(failed.logs, null)
  assert.deepEqual((await ended(leader, 'broken', broken)).logs, [])
  assert.equal((await jobsOf(other)).broken!.last_run!.id, broken)

  const slow = await started(other, 'slow')
  await until(async () => (await runsOf(other, 'slow'))[0]?.outcome === 'running', 'the run')
  await kill(leader)
  await until(async () => (await jobsOf(other)).often!.fires_here, 'the next election', 60_000)
  assert.equal((await ended(other, 'slow', slow)).outcome, 'unfinished')
  assert.notEqual((await run(other, 'broken')).body.data.replica, name)
})

test(
  'a run that a killed process had begun is unfinished, and without a scheduler nobody runs the job',
  TIMEOUT,
  async (t) => {
    const stage = await stageOf(t, (own) => onSqlite(own), JOBS, [SHIPPED])
    const env = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(temporaryFolder(t), 'history.db') }
    const first = await stage!.start(env)
    await until(async () => (await jobsOf(first)).slow!.fires_here, 'the election')
    const id = await until(async () => {
      const { status, body } = await run(first, 'slow')
      return status === 202 ? (body.data.id as string) : null
    }, 'the run')
    await until(async () => (await runsOf(first, 'slow'))[0]?.outcome === 'running', 'the run in the history')
    await kill(first)

    const next = await stage!.start({ ...env, SCHEDULER_ENABLED: 'false' })
    const unfinished = await ended(next, 'slow', id)
    assert.deepEqual([unfinished.outcome, unfinished.error], ['unfinished', 'The process ended before the run did'])
    const refused = await run(next, 'broken')
    assert.equal(refused.status, 503)
    assert.match(refused.body.error, /work\.Work\/broken was not started: no process has taken the request within 5 s/)
    assert.deepEqual(await stage!.store.rows('SELECT id FROM heddle_job_ask'), [])
  },
)
