import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { kill, onSqlite, STORES } from '../event-store/databases.ts'
import { stageOf, stageOn } from './stored-jobs.ts'

const HOUR_MS = 3_600_000
const TIMEOUT = { timeout: 120_000 }

const jobOf = async (heddle: Heddle, name: string): Promise<JobInfo> =>
  (await heddle.json('/work/jobs')).body.jobs.find((job: JobInfo) => job.name === name)

for (const [name, storeOf] of STORES) {
  test(`a date outlives the process that registered it, and runs once (${name})`, TIMEOUT, async (t) => {
    const dueMs = Date.now() + 5000
    const stage = await stageOf(
      t,
      storeOf,
      `scheduler.at('bill', new Date(${dueMs}), run('bill'), { missed: 'once' })
      scheduler.every('tick', 50, run('tick'))`,
    )
    if (stage === null) return
    const first = await stage.start()
    await stage.placed(2)
    await kill(first)
    const second = await stage.start()
    await until(async () => (await stage.runs('bill')).length > 0, 'its run', 30_000)
    await until(async () => (await stage.runs('tick')).some(({ pid }) => pid === second.process.pid), 'a tick')
    await until(
      async () => (await stage.store.rows('SELECT name FROM heddle_job WHERE due_ms IS NULL')).length === 1,
      'its end',
    )
    await kill(second)
    const third = await stage.start()
    await until(async () => (await stage.runs('tick')).some(({ pid }) => pid === third.process.pid), 'another tick')
    const [bill, ...more] = await stage.runs('bill')
    assert.deepEqual([bill!.due, bill!.attempt, more.length], [dueMs, 1, 0])
    assert.deepEqual([(await jobOf(third, 'bill')).next_run, (await jobOf(third, 'bill')).runs], [null, 0])
    const fences = new Set((await stage.runs()).map(({ fence }) => fence))
    assert.ok(Math.max(...fences) === 3 && Math.min(...fences) > 0, `fences ${[...fences]}`)
    assert.equal(await third.stop(), 0)
  })

  test(`what was missed while no process ran is left out, or made up for by one run (${name})`, TIMEOUT, async (t) => {
    const dueMs = Date.now() + HOUR_MS
    const jobs = ['skip', 'once'].map(
      (missed) => `scheduler.at('at ${missed}', new Date(${dueMs}), run('at ${missed}'), { missed: '${missed}' })
      scheduler.every('every ${missed}', ${HOUR_MS}, run('every ${missed}'), { missed: '${missed}' })
      scheduler.cron('cron ${missed}', '0 3 1 * *', run('cron ${missed}'), { missed: '${missed}' })`,
    )
    const stage = await stageOf(t, storeOf, jobs.join('\n'))
    if (stage === null) return
    await kill(
      await (async () => {
        const first = await stage.start()
        await stage.placed(6)
        return first
      })(),
    )
    // As if more than one of their times had passed.
    const missedMs = Date.now() - 90 * 60_000
    await stage.store.rows(`UPDATE heddle_job SET due_ms = ${missedMs}`)
    const second = await stage.start()
    await until(async () => (await stage.runs()).length >= 3, 'the runs that are made up for')
    await until(
      () => second.logs.some(({ msg }) => /^Job at skip of work\.Work was due at .+ and is left out/.test(msg)),
      'the warning',
    )
    const next = await Promise.all(['every skip', 'every once'].map((job) => jobOf(second, job)))
    for (const { next_run } of next) {
      // On the grid that it had before.
      assert.ok(Math.abs(Date.parse(next_run!) - (missedMs + 2 * HOUR_MS)) < 1000, `${next_run}`)
    }
    assert.equal(await second.stop(), 0)
    assert.deepEqual((await stage.runs()).map((run) => [run.name, run.due]).sort(), [
      ['at once', missedMs],
      ['cron once', missedMs],
      ['every once', missedMs],
    ])
    const third = await stage.start()
    await until(async () => (await jobOf(third, 'every once')).next_run, 'its jobs')
    assert.equal(await third.stop(), 0)
    assert.equal((await stage.runs()).length, 3)
  })

  test(`a date whose process is killed in it is tried again by the next one (${name})`, TIMEOUT, async (t) => {
    const stage = await stageOf(
      t,
      storeOf,
      `scheduler.at('bill', new Date(0), async (of) => {
        await run('bill')(of)
        if (of.attempt < 3) await new Promise(() => {})
      })`,
    )
    if (stage === null) return
    for (const attempt of [1, 2]) {
      const heddle = await stage.start()
      await until(async () => (await stage.runs()).length === attempt, `attempt ${attempt}`)
      await kill(heddle)
    }
    const last = await stage.start()
    await until(async () => (await jobOf(last, 'bill')).runs === 1 && !(await jobOf(last, 'bill')).running, 'its end')
    assert.deepEqual(
      (await stage.runs()).map(({ attempt }) => attempt),
      [1, 2, 3],
    )
    assert.equal(await last.stop(), 0)
  })

  test(
    `another date is another job, and one that nobody registers is removed after a day (${name})`,
    TIMEOUT,
    async (t) => {
      const stage = await stageOf(t, storeOf, `scheduler.at('bill', new Date(0), run('bill'))`)
      if (stage === null) return
      const first = await stage.start()
      await until(
        async () => (await jobOf(first, 'bill')).runs === 1 && !(await jobOf(first, 'bill')).running,
        'its end',
      )
      assert.equal(await first.stop(), 0)
      const later = await stageOn(t, stage.store, `scheduler.at('bill', new Date(1), run('bill'))`)
      const second = await later.start()
      await until(async () => (await stage.runs()).length === 2, 'the other date')
      assert.equal(await second.stop(), 0)
      const none = await stageOn(t, stage.store, `scheduler.every('tick', 50, run('tick'))`)
      const stored = async () =>
        await stage.store.rows<{ name: string; gone_ms: number | null }>(
          'SELECT name, gone_ms FROM heddle_job ORDER BY name',
        )
      const third = await none.start()
      await until(async () => (await stored())[0]!.gone_ms !== null, 'the mark')
      assert.equal(await third.stop(), 0)
      assert.deepEqual(
        (await stored()).map((row) => row.name),
        ['work.Work/bill', 'work.Work/tick'],
      )
      await stage.store.rows(`UPDATE heddle_job SET gone_ms = gone_ms - ${25 * HOUR_MS} WHERE gone_ms IS NOT NULL`)
      const fourth = await none.start()
      await until(async () => (await stored()).length === 1, 'its removal')
      assert.equal((await stored())[0]!.name, 'work.Work/tick')
      assert.equal(await fourth.stop(), 0)
    },
  )
}

test('a date that waits for its plugin when the process ends has not been missed', TIMEOUT, async (t) => {
  const dueMs = Date.now() + HOUR_MS
  const stage = (await stageOf(t, onSqlite, `scheduler.at('bill', new Date(${dueMs}), run('bill'))`))!
  const first = await stage.start()
  await stage.placed(1)
  await kill(first)
  // As a process leaves it that has found it due, and its plugin set aside.
  await stage.store.rows(`UPDATE heddle_job SET due_ms = ${dueMs} - 7200000, last_due_ms = ${dueMs} - 7200000`)
  const second = await stage.start()
  await until(async () => (await stage.runs()).length === 1, 'its run')
  assert.equal(await second.stop(), 0)
})
