import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const plugin = (name: string, thread: string): string => `export default class ${name} {
  static thread = '${thread}'
  constructor({ http, logger, scheduler }) {
    scheduler.at('once', new Date(0), () => logger.info('once'))
    scheduler.every('poll', 20, () => logger.info('poll'))
    scheduler.every('long', 50, async () => {
      logger.info('long begins')
      await new Promise((resolve) => setTimeout(resolve, 130))
      logger.info('long ends')
    })
    scheduler.cron('second', '* * * * * *', () => logger.info('second'))
    http.addEndpoint('/${thread}/jobs', 'GET', async () => ({ jobs: await scheduler.list() }))
  }
}
`

test('of two processes that know the same jobs the one with SCHEDULER_ENABLED runs them, once whatever the number of lanes and never beside themselves, and the other says so', {
  timeout: 60_000,
}, async (t) => {
  const folder = await folderOf(t, {
    'work/plugins/work.ts': plugin('Work', 'worker'),
    'work/plugins/sweep.ts': plugin('Sweep', 'primary'),
  })
  const [leader, other] = await Promise.all(
    ['true', 'false'].map((enabled) =>
      startHeddle(t, { domains: [folder], lanes: 3, env: { SCHEDULER_ENABLED: enabled } }),
    ),
  )
  const lines = (heddle: Heddle, message: string) => heddle.logs.filter(({ msg }) => msg === message)
  await until(() => lines(leader!, 'poll').length >= 20 && lines(leader!, 'second').length >= 2, 'some runs')
  for (const thread of ['worker', 'primary']) {
    const [here, there] = (await Promise.all(
      [leader, other].map(async (heddle) => (await heddle!.json(`/${thread}/jobs`)).body.jobs),
    )) as [JobInfo[], JobInfo[]]
    assert.equal(here.length, 8)
    assert.ok(here.every(({ fires_here, runs }) => fires_here && runs > 0))
    assert.ok(here.every(({ name, skipped }) => name !== 'long' || skipped > 0))
    assert.deepEqual(
      there.map(({ plugin, name, fires_here, next_run, runs }) => [plugin, name, fires_here, next_run, runs]).sort(),
      ['work.Sweep', 'work.Work'].flatMap((name) =>
        ['long', 'once', 'poll', 'second'].map((job) => [name, job, false, null, 0]),
      ),
    )
  }
  assert.deepEqual(
    ['once', 'poll', 'second', 'long begins'].flatMap((name) => lines(other!, name)),
    [],
  )
  assert.deepEqual(
    lines(leader!, 'once')
      .map(({ identity }) => identity)
      .sort(),
    ['work.Sweep', 'work.Work'],
  )
  for (const plugin of ['work.Sweep', 'work.Work']) {
    const own = leader!.logs.filter(({ identity }) => identity === plugin)
    const polls = own.flatMap(({ msg, time }) => (msg === 'poll' ? [time as number] : []))
    const tookMs = polls.at(-1)! - polls[0]!
    assert.ok(polls.length <= tookMs / 20 + 2, `${polls.length} runs in ${tookMs} ms`)
    const long = own.map(({ msg }) => msg).filter((msg) => msg.startsWith('long '))
    for (const [n, msg] of long.entries()) assert.equal(msg, n % 2 === 0 ? 'long begins' : 'long ends')
  }
  assert.deepEqual(await Promise.all([leader!.stop(), other!.stop()]), [0, 0])
})
