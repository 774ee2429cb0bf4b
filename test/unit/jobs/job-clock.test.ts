import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { JobClock, type RunEnd } from '../../../src/primary/jobs/job-clock.ts'
import { until as waitUntil } from '../../support/until.ts'

interface Run {
  key: string
  atMs: number
  askedBy: string | null
}

/** @param obstacle what stands in the way of all jobs at the start */
function build(
  t: TestContext,
  work: (key: string) => Promise<unknown> = async () => {},
  enabled = true,
  obstacle: string | null = null,
) {
  const runs: Run[] = []
  const logs: string[] = []
  const way = { obstacle }
  const clock = new JobClock({
    enabled,
    maxDeaths: 3,
    onRefused: () => {},
    obstacleTo: () => way.obstacle,
    run: async (key, { askedBy }) => {
      runs.push({ key, atMs: Date.now(), askedBy })
      return ((await work(key)) ?? 'done') as RunEnd
    },
    log: (level, message) => logs.push(`${level} ${message}`),
  })
  t.after(() => clock.stop())
  return { clock, runs, logs, way }
}

const until = (fact: () => boolean) => waitUntil(fact, 'it comes true', 5000)
const every = (everyMs: number) => ({ kind: 'every', everyMs }) as const
const at = (atMs: number) => ({ kind: 'at', atMs }) as const
const cron = (expression: string) => ({ kind: 'cron', expression }) as const

test('nothing runs before the clock has started', async (t) => {
  const { clock, runs } = build(t)
  clock.add('a', 'p', 'a', at(0))
  clock.add('b', 'p', 'b', every(10))
  await sleep(40)
  assert.deepEqual(runs, [])
  assert.equal(clock.list()[0]!.next_run, null)
  clock.start()
  await until(() => runs.length >= 2)
})

test('an interval keeps its grid, however late a run was', async (t) => {
  const nextRunsMs: number[] = []
  const { clock } = build(t, async () => {
    nextRunsMs.push(Date.parse(clock.list()[0]!.next_run!))
    // Holds the thread from before the next run until 8 ms after its time.
    setTimeout(() => {
      const untilMs = nextRunsMs.at(-1)! + 8
      while (Date.now() < untilMs);
    }, 10)
  })
  clock.add('job', 'p', 'job', every(40))
  clock.start()
  await until(() => nextRunsMs.length >= 6)
  for (const nextMs of nextRunsMs) {
    const offMs = (nextMs - nextRunsMs[0]! + 20) % 40
    assert.ok(Math.abs(offMs - 20) <= 3, `off the grid by ${offMs - 20} ms`)
  }
})

test('runs that a blocked thread missed are made up for by one', async (t) => {
  const everyMs = 10
  const { clock, runs } = build(t)
  clock.add('job', 'p', 'job', every(everyMs))
  clock.start()
  await until(() => runs.length >= 1)
  const before = runs.length
  const blockedUntilMs = Date.now() + 200
  while (Date.now() < blockedUntilMs);
  await until(() => runs.length > before)
  // One for those that were missed, and those that were due since.
  const due = 1 + Math.ceil((Date.now() - blockedUntilMs) / everyMs)
  assert.ok(runs.length - before <= 1 + due, `${runs.length - before} runs, ${due} of them due`)
})

test('a run that is still going is not started again, and what was due meanwhile counts as skipped', async (t) => {
  let end = () => {}
  const going = new Promise<void>((resolve) => {
    end = resolve
  })
  const { clock, runs } = build(t, () => going)
  clock.add('job', 'p', 'job', every(10))
  clock.start()
  await until(() => clock.list()[0]!.skipped >= 3)
  assert.deepEqual([runs.length, clock.list()[0]!.running], [1, true])
  end()
  await until(() => runs.length >= 2)
})

test('a failing run is logged and does not end the job', async (t) => {
  const { clock, runs, logs } = build(t, async () => {
    throw new Error('broken')
  })
  clock.add('job', 'mail.Digest', 'poll', every(10))
  clock.start()
  await until(() => runs.length >= 3)
  assert.equal(logs[0], 'ERROR Job poll of mail.Digest failed: broken')
})

test('a run that throws instead of rejecting is one that failed', async (t) => {
  const logs: string[] = []
  const clock = new JobClock({
    enabled: true,
    maxDeaths: 3,
    onRefused: () => {},
    obstacleTo: () => null,
    run: () => {
      throw new Error('at once')
    },
    log: (level, message) => logs.push(`${level} ${message}`),
  })
  t.after(() => clock.stop())
  clock.add('job', 'p', 'job', at(0))
  clock.start()
  await until(() => logs.length >= 1)
})

test('a date runs once: in the past at the start, in the future when it comes', async (t) => {
  const { clock, runs } = build(t)
  const soonMs = Date.now() + 60
  clock.add('past', 'p', 'past', at(Date.now() - 86_400_000))
  clock.add('soon', 'p', 'soon', at(soonMs))
  clock.start()
  assert.equal(clock.list()[1]!.next_run, new Date(soonMs).toISOString())
  await until(() => runs.length >= 2)
  assert.ok(runs.find((run) => run.key === 'soon')!.atMs >= soonMs)
  await sleep(40)
  assert.equal(runs.length, 2)
  assert.deepEqual(
    clock.list().map((job) => [job.next_run, job.runs]),
    [
      [null, 1],
      [null, 1],
    ],
  )
})

test('a date beyond the longest timer of Node waits', async (t) => {
  const { clock, runs } = build(t)
  const warned = once(process, 'warning', { signal: AbortSignal.timeout(40) }).catch(() => undefined)
  clock.add('far', 'p', 'far', at(Date.now() + 2 ** 32))
  clock.add('farther', 'p', 'farther', at(9e15))
  clock.start()
  assert.equal(await warned, undefined)
  assert.deepEqual(runs, [])
  assert.equal(clock.list()[1]!.next_run, null)
})

test('a cron expression runs in its second, once', async (t) => {
  const { clock, runs } = build(t)
  clock.add('job', 'p', 'job', cron('* * * * * *'))
  clock.start()
  await until(() => runs.length >= 2)
  const seconds = runs.map((run) => Math.floor(run.atMs / 1000))
  assert.ok(seconds[1]! > seconds[0]!, 'no second has two')
})

test('cron expressions are read in UTC', (t) => {
  const { clock } = build(t)
  clock.add('job', 'p', 'job', cron('30 3 * * *'))
  clock.start()
  assert.match(clock.list()[0]!.next_run!, /T03:30:00\.000Z$/)
})

test('a key that is added again is the same job', async (t) => {
  const { clock, runs } = build(t)
  const atMs = Date.now() + 30
  for (let lane = 0; lane < 3; lane++) clock.add('p.once', 'p', 'once', at(atMs + lane))
  for (let lane = 0; lane < 3; lane++) clock.add('p.poll', 'p', 'poll', every(50))
  assert.equal(clock.list().length, 2)
  clock.start()
  await until(() => runs.some((run) => run.key === 'p.once'))
  clock.add('p.once', 'p', 'once', at(Date.now()))
  await until(() => runs.some((run) => run.key === 'p.poll'))
  assert.equal(runs.filter((run) => run.key === 'p.once').length, 1)
})

test('a key that comes again with another interval takes it', async (t) => {
  const { clock, runs } = build(t)
  clock.add('job', 'p', 'job', every(700_000))
  clock.start()
  clock.add('job', 'p', 'job', every(10))
  await until(() => runs.length >= 1)
  assert.deepEqual(clock.list()[0]!.schedule, every(10))
})

test('a job that is added after the start runs', async (t) => {
  const { clock, runs } = build(t)
  clock.start()
  clock.add('job', 'p', 'job', at(0))
  await until(() => runs.length >= 1)
})

test('a clock that is not enabled lists its jobs and never fires', async (t) => {
  const { clock, runs } = build(t, undefined, false)
  clock.add('job', 'p', 'job', every(10))
  clock.start()
  await sleep(50)
  assert.deepEqual(runs, [])
  assert.deepEqual(clock.list(), [
    {
      plugin: 'p',
      name: 'job',
      schedule: every(10),
      fires_here: false,
      next_run: null,
      runs: 0,
      failures: 0,
      skipped: 0,
      running: false,
    },
  ])
})

test('stop waits for the run under way, and nothing starts after it', async (t) => {
  let isDone = false
  const { clock, runs } = build(t, async () => {
    await sleep(50)
    isDone = true
  })
  clock.add('job', 'p', 'job', every(10))
  clock.start()
  await until(() => runs.length >= 1)
  await clock.stop()
  assert.equal(isDone, true)
  const before = runs.length
  clock.start()
  clock.add('late', 'p', 'late', at(0))
  await sleep(40)
  assert.equal(runs.length, before)
  await clock.stop()
})

test('a date that cannot be kept waits, and runs when the way is free; an interval leaves its runs out', async (t) => {
  const { clock, runs, logs, way } = build(t, undefined, true, 'its plugin is set aside')
  clock.add('once', 'p', 'once', at(Date.now()))
  clock.add('poll', 'p', 'poll', every(10))
  clock.start()
  const [once, poll] = [() => clock.list()[0]!, () => clock.list()[1]!]
  await until(() => poll().skipped >= 5)
  assert.deepEqual(runs, [])
  assert.ok(once().next_run !== null && Date.parse(once().next_run!) <= Date.now(), 'it is due still')
  assert.deepEqual(logs.sort(), [
    'WARNING Job once of p is due and waits: its plugin is set aside',
    'WARNING Job poll of p is due and is skipped: its plugin is set aside',
  ])
  way.obstacle = null
  await until(() => once().runs === 1 && poll().runs >= 2)
  assert.equal(once().next_run, null)
})

test('a date whose lane ended is tried again until it has come to its end', async (t) => {
  const ends: RunEnd[] = ['fatal', 'cut-off', 'cut-off', 'fatal', 'done']
  const { clock, runs, logs } = build(t, async () => ends.shift())
  clock.add('once', 'p', 'once', at(0))
  clock.start()
  await until(() => runs.length >= 5)
  await sleep(300)
  assert.equal(runs.length, 5)
  assert.equal(clock.list()[0]!.next_run, null)
  assert.equal(
    logs.filter((line) => line === 'WARNING Job once of p: its lane died in it; it is tried again').length,
    2,
  )
})

test('a date that three lanes died in is given up', async (t) => {
  const { clock, runs, logs } = build(t, async () => 'fatal')
  clock.add('once', 'p', 'once', at(0))
  clock.start()
  await until(() => logs.includes('ERROR Job once of p is given up: 3 lanes died in it'))
  await sleep(300)
  assert.equal(runs.length, 3)
})

test('an interval whose lane died goes on', async (t) => {
  const { clock, runs, logs } = build(t, async () => 'fatal')
  clock.add('poll', 'p', 'poll', every(10))
  clock.start()
  await until(() => runs.length >= 5)
  assert.equal(logs[0], 'ERROR Job poll of p: its lane died in it; it runs again when it is due next')
})

test('a job that was taken away and comes back does not run beside itself', async (t) => {
  let isGoing = false
  let isBeside = false
  let end = () => {}
  const { clock, runs } = build(t, async () => {
    isBeside ||= isGoing
    isGoing = true
    await new Promise<void>((resolve) => {
      end = resolve
    })
    isGoing = false
  })
  clock.add('poll', 'p', 'poll', every(10))
  clock.start()
  await until(() => runs.length >= 1)
  clock.keep(() => false)
  assert.deepEqual(clock.list(), [], 'it is not shown')
  clock.add('poll', 'p', 'poll', every(10))
  await until(() => clock.list()[0]!.skipped >= 3)
  assert.deepEqual([runs.length, clock.list()[0]!.running], [1, true])
  end()
  await until(() => runs.length >= 2)
  assert.equal(isBeside, false)
  clock.keep(() => false)
  end()
  await until(() => !isGoing)
  clock.add('poll', 'p', 'poll', every(600_000))
  await until(() => clock.list()[0]!.runs === 0)
})

test('a job that is taken away while it waits is forgotten', async (t) => {
  const { clock, runs, way } = build(t, undefined, true, 'no lane that hosts it is up')
  clock.add('once', 'p', 'once', at(0))
  clock.start()
  await until(() => clock.list()[0]!.next_run !== null)
  clock.keep(() => false)
  way.obstacle = null
  await sleep(300)
  assert.deepEqual(runs, [])
})

test('a stop says which date it leaves undone', async (t) => {
  const { clock, logs } = build(t, undefined, true, 'its plugin is set aside')
  clock.add('once', 'p', 'once', at(0))
  clock.add('far', 'p', 'far', at(Date.now() + 1e9))
  clock.start()
  await until(() => logs.length >= 1)
  await clock.stop()
  assert.deepEqual(logs.slice(1), [
    'WARNING Job once of p was due and has not come to its end: this process does not run it any more',
  ])
})

test('a stored date is kept to the millisecond, though the clock turns while it is read', async (t) => {
  const { clock } = build(t)
  const dueMs = Date.now() + 60_000
  const store = {
    fence: 1,
    place: async () => ({ dueMs, attempts: 0 }),
    claim: async () => true,
    waits: async () => {},
    done: async () => {},
  }
  let nowMs = Date.now()
  t.mock.method(Date, 'now', () => nowMs++)
  clock.add('job', 'p', 'job', at(dueMs))
  clock.start(store)
  await until(() => clock.list()[0]!.next_run !== null)
  assert.equal(clock.list()[0]!.next_run, new Date(dueMs).toISOString())
})

test('a clock that is set back plans cron anew, and leaves intervals and dates', async (t) => {
  const { clock, runs } = build(t)
  const realNow = Date.now
  let aheadMs = 4 * 3_600_000
  t.mock.method(Date, 'now', () => realNow() + aheadMs)
  const dateMs = Date.now() + 1e9
  clock.add('cron', 'p', 'cron', cron('* * * * * *'))
  clock.add('far', 'p', 'far', cron('0 0 * * *'))
  clock.add('every', 'p', 'every', every(1e7))
  clock.add('at', 'p', 'at', at(dateMs))
  clock.start()
  await until(() => runs.length > 0)
  aheadMs = 0
  clock.replan()
  const before = runs.length
  await until(() => runs.length > before)
  const nextOf = (name: string) => Date.parse(clock.list().find((job) => job.name === name)!.next_run!)
  assert.ok(nextOf('far') - Date.now() <= 24 * 3_600_000)
  assert.ok(Math.abs(nextOf('every') - Date.now() - 1e7) < 60_000, 'an interval goes on')
  assert.equal(nextOf('at'), dateMs)
  aheadMs = 2e9
  clock.replan()
  await until(() => runs.some(({ key }) => key === 'at') && runs.some(({ key }) => key === 'far'))
  assert.equal(runs.filter(({ key }) => key === 'far').length, 1, 'one run makes up for all')
})

test('runNow(): runs a job once more, and leaves the times of its schedule', async (t) => {
  const { clock, runs } = build(t)
  clock.add('a', 'p', 'a', every(60_000))
  clock.add('b', 'p', 'b', cron('0 3 * * *'))
  clock.start()
  const before = clock.list().map(({ next_run }) => next_run)
  await clock.runNow('a', { id: 'job_1', askedBy: 'anna' })
  await clock.runNow('b', { id: 'job_2', askedBy: 'anna' })
  assert.deepEqual(
    runs.map(({ key, askedBy }) => [key, askedBy]),
    [
      ['a', 'anna'],
      ['b', 'anna'],
    ],
  )
  const after = clock.list()
  for (const [n, { next_run }] of after.entries()) {
    assert.ok(Math.abs(Date.parse(next_run!) - Date.parse(before[n]!)) <= 1, `${before[n]} became ${next_run}`)
  }
  assert.deepEqual(
    after.map((job) => job.runs),
    [1, 1],
  )
})

test('runNow(): a date has had its run, and can be asked for again', async (t) => {
  const { clock, runs } = build(t)
  clock.add('job', 'p', 'job', at(Date.now() + 3_600_000))
  clock.start()
  await clock.runNow('job', { id: 'job_1', askedBy: 'anna' })
  await until(() => !clock.list()[0]!.running)
  assert.equal(clock.list()[0]!.next_run, null)
  await clock.runNow('job', { id: 'job_2', askedBy: 'anna' })
  assert.equal(runs.length, 2)
})

test('runNow(): is refused with the reason', async (t) => {
  const { clock, runs, way } = build(t, () => new Promise((resolve) => setTimeout(resolve, 100, 'done')))
  const ask = (key: string) => clock.runNow(key, { id: 'job_1', askedBy: 'anna' })
  clock.add('job', 'p', 'job', every(60_000))
  await assert.rejects(ask('job'), { code: 'JOB_NOT_STARTED', message: /this process does not run jobs now/ })
  clock.start()
  await assert.rejects(ask('other'), { code: 'JOB_UNKNOWN', message: /other/ })
  way.obstacle = 'no lane that hosts it is up'
  await assert.rejects(ask('job'), { code: 'JOB_NOT_STARTED', message: /no lane that hosts it is up/ })
  way.obstacle = null
  await ask('job')
  await assert.rejects(ask('job'), { code: 'JOB_RUNNING', message: /Job job of p is running/ })
  assert.equal(runs.length, 1)
})

test('runNow(): what cannot be claimed does not run later, and a date keeps its time', async (t) => {
  const { clock, runs } = build(t)
  const dueMs = Date.now() + 3_600_000
  const answers: (boolean | Error)[] = [new Error('the server is gone'), false, true]
  clock.add('job', 'p', 'job', at(dueMs))
  clock.start({
    fence: 1,
    place: async () => ({ dueMs, attempts: 0 }),
    claim: async () => {
      const answer = answers.shift()!
      if (answer instanceof Error) throw answer
      return answer
    },
    waits: async () => {},
    done: async () => {},
  })
  await until(() => clock.list()[0]!.next_run !== null)
  const ask = () => clock.runNow('job', { id: 'job_1', askedBy: 'anna' })
  await assert.rejects(ask(), { code: 'JOB_NOT_STARTED', message: /the database does not answer: the server is gone/ })
  assert.equal(clock.list()[0]!.next_run, new Date(dueMs).toISOString())
  await assert.rejects(ask(), { code: 'JOB_NOT_STARTED', message: /another process runs the jobs now/ })
  assert.equal(clock.list()[0]!.next_run, new Date(dueMs).toISOString())
  assert.deepEqual(runs, [])
  await ask()
  assert.equal(runs.length, 1)
  assert.equal(clock.list()[0]!.next_run, null)
})

test('list(): has the runs of the next hour where it is asked for them', (t) => {
  const { clock } = build(t)
  clock.add('job', 'p', 'job', every(700_000))
  assert.equal(clock.list()[0]!.upcoming, undefined)
  // Who runs it, and when, is not known yet.
  assert.equal(clock.list(true)[0]!.upcoming, null)
  clock.start()
  const [job] = clock.list(true)
  assert.equal(job!.upcoming!.count, 5)
  assert.equal(job!.upcoming!.runs[0], job!.next_run)
})

for (const [night, from, expected] of [
  ['when clocks go forward', '2026-03-29T00:00:00Z', ['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z']],
  ['when clocks go back', '2026-10-24T23:00:00Z', ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']],
] as const) {
  test(`a job at 02:30 in Vienna runs once in the night ${night}`, async (t) => {
    t.mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.parse(from) })
    const { clock, runs } = build(t)
    clock.add('job', 'p', 'job', { kind: 'cron', expression: '30 2 * * *', timeZone: 'Europe/Vienna' })
    clock.start()
    // The clock sleeps for a minute at most, and lets the run before end.
    for (let minute = 0; minute < 27 * 60; minute++) {
      t.mock.timers.tick(60_000)
      await Promise.resolve()
      await Promise.resolve()
    }
    assert.deepEqual(
      runs.map(({ atMs }) => new Date(atMs).toISOString()),
      expected,
    )
  })
}
