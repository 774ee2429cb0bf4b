import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import { CRASHES_MAX } from '../../../src/primary/supervision/isolation.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

/** A plugin's file: `body` stands in the constructor, where the tools are variables. */
const plugin = (name: string, body: string): string => `export default class ${name} {
  constructor({ http, logger, scheduler, state }) {
    ${body}
    http.addEndpoint('/${name.toLowerCase()}/jobs', 'GET', async () => ({ jobs: await scheduler.list() }))
  }
}
`

async function started(t: TestContext, body: string, lanes = 2): Promise<Heddle> {
  const folder = await folderOf(t, { 'work/plugins/work.ts': plugin('Work', body) })
  return startHeddle(t, { domains: [folder], lanes })
}

const jobsOf = async (heddle: Heddle): Promise<JobInfo[]> => (await heddle.json('/work/jobs')).body.jobs
const lines = (heddle: Heddle, pattern: RegExp) => heddle.logs.filter(({ msg }) => pattern.test(msg))
const deaths = (heddle: Heddle): number => lines(heddle, / died: /).length

test('a date whose lane dies in it is run again by another, until it has come to its end', {
  timeout: 120_000,
}, async (t) => {
  const heddle = await started(
    t,
    `scheduler.at('bill', new Date(0), async () => {
      const attempt = await state.increment('attempts')
      if (attempt < 3) process.exit(1)
      logger.info('billed', { attempt })
    })`,
  )
  const billed = await until(() => lines(heddle, /^billed$/)[0], 'the run that ends', 60_000)
  assert.equal(billed.attempt, 3)
  const [bill] = await until(async () => {
    // 503 while the plugin gets a lane of its own.
    const jobs: Awaited<ReturnType<typeof jobsOf>> | undefined = await jobsOf(heddle)
    return jobs?.[0]?.running === false ? jobs : undefined
  }, 'its end')
  assert.deepEqual([bill!.runs, bill!.next_run], [3, null])
  assert.equal(deaths(heddle), 2)
  assert.equal(lines(heddle, /^Job bill of work\.Work: its lane died in it; it is tried again$/).length, 2)
  assert.equal(await heddle.stop(), 0)
})

test('a date that kills three lanes is given up, with an error', { timeout: 120_000 }, async (t) => {
  const heddle = await started(t, `scheduler.at('kill', new Date(0), () => process.exit(1))`, 1)
  const given = await until(() => lines(heddle, /^Job kill of work\.Work is given up/)[0], 'the end of it', 60_000)
  assert.equal(given.msg, 'Job kill of work.Work is given up: 3 lanes died in it')
  const [kill] = await until(async () => (await heddle.json('/work/jobs')).body?.jobs, 'a lane', 30_000)
  assert.deepEqual([kill!.runs, kill!.next_run, kill!.running], [3, null, false])
  assert.equal(deaths(heddle), 3)
  assert.equal(await heddle.stop(), 0)
})

test('a date that other plugins kill the lane of is not given up for it', { timeout: 120_000 }, async (t) => {
  // One each: a plugin that kills lanes again is kept in a lane of its own.
  const harm = (n: number) => plugin(`Harm${n}`, `http.addEndpoint('/exit/${n}', 'GET', () => process.exit(1))`)
  const folder = await folderOf(t, {
    'work/plugins/work.ts': plugin(
      'Work',
      `scheduler.at('wait', new Date(0), async () => {
        const attempt = await state.increment('attempts')
        logger.info('begun', { attempt })
        if (attempt < 5) await new Promise(() => {})
        logger.info('ended', { attempt })
      })`,
    ),
    ...Object.fromEntries([1, 2, 3, 4].map((n) => [`harm/plugins/harm-${n}.ts`, harm(n)])),
  })
  const heddle = await startHeddle(t, { domains: [folder], lanes: 1 })
  for (let attempt = 1; attempt < 5; attempt++) {
    await until(() => lines(heddle, /^begun$/).length === attempt, `attempt ${attempt}`, 30_000)
    // Right after a death the lane may be kept for those that are known to do no harm.
    await until(async () => (await heddle.json(`/exit/${attempt}`)).status === 500, 'the lane that dies', 30_000)
  }
  await until(() => lines(heddle, /^ended$/).length === 1, 'its end', 30_000)
  assert.equal(deaths(heddle), 4)
  assert.equal(await heddle.stop(), 0)
})

/** A process whose plugin is set aside, with a job that is due at `dueMs`; null when the machine was too slow to get there before. */
async function openCircuit(t: TestContext, dueMs: number): Promise<Heddle | null> {
  const heddle = await started(
    t,
    `http.addEndpoint('/exit', 'GET', () => process.exit(1))
    scheduler.at('once', new Date(${dueMs}), () => logger.info('once'))
    scheduler.every('tick', 50, () => logger.info('tick'))`,
  )
  for (let n = 1; n < CRASHES_MAX; n++) {
    await until(async () => (await heddle.json('/exit')).status === 500, 'a lane', 30_000)
    await until(() => deaths(heddle) === n, `death ${n}`)
  }
  const isInTime = Date.now() < dueMs
  // The pause is longer than what is left.
  await until(() => Date.now() > dueMs - 3000, 'its time', 60_000)
  await until(async () => (await heddle.json('/exit')).status === 500, 'a lane', 30_000)
  await until(() => lines(heddle, /^Plugin work\.Work: Disabled until/).length === 1, 'the pause')
  if (isInTime && Date.now() < dueMs) return heddle
  await heddle.stop()
  return null
}

test('while its plugin is set aside a date waits, and runs of an interval are left out', {
  timeout: 240_000,
}, async (t) => {
  let heddle: Heddle | null = null
  for (let inMs = 10_000; heddle === null; inMs *= 2) heddle = await openCircuit(t, Date.now() + inMs)
  const runner = heddle
  await until(
    () => lines(runner, /^Job once of work\.Work is due and waits: its plugin is set aside$/)[0],
    'the warning',
  )
  const ticks = lines(runner, /^tick$/).length
  const back = await until(() => lines(runner, /^Plugin work\.Work is tried again$/)[0], 'the end of the pause', 30_000)
  await until(() => lines(runner, /^once$/).length === 1, 'the date')
  await until(() => lines(runner, /^tick$/).length > ticks, 'the interval')
  const between = lines(runner, /^(?:tick|once)$/).filter(
    ({ time }) => (time as number) > (back.time as number) - 5000 && (time as number) < (back.time as number),
  )
  assert.deepEqual(between, [], 'nothing ran in the pause')
  assert.equal(lines(runner, /^Job tick of work\.Work is due and is skipped: its plugin is set aside$/).length, 1)
  const jobs = await jobsOf(runner)
  const [once, tick] = ['once', 'tick'].map((name) => jobs.find((job) => job.name === name)!)
  assert.deepEqual([once!.runs, once!.next_run], [1, null])
  assert.ok(tick!.skipped >= 50, `${tick!.skipped} skipped`)
  assert.equal(await runner.stop(), 0)
})
