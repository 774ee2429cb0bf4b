import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
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

test('jobs of lanes and of the primary run once, whatever the number of lanes, and never beside themselves', {
  timeout: 60_000,
}, async (t) => {
  const folder = await folderOf(t, {
    'work/plugins/work.ts': plugin('Work', 'worker'),
    'work/plugins/sweep.ts': plugin('Sweep', 'primary'),
  })
  const heddle = await startHeddle(t, { domains: [folder], lanes: 3 })
  const lines = (message: string) => heddle.logs.filter(({ msg }) => msg === message)
  await until(() => lines('poll').length >= 20 && lines('second').length >= 2, 'some runs')
  for (const thread of ['worker', 'primary']) {
    const jobs = (await heddle.json(`/${thread}/jobs`)).body.jobs as JobInfo[]
    assert.equal(jobs.length, 8)
    assert.ok(jobs.every(({ fires_here, runs }) => fires_here && runs > 0))
    assert.ok(jobs.every(({ name, skipped }) => name !== 'long' || skipped > 0))
  }
  const once = lines('once').map(({ identity }) => identity)
  assert.deepEqual(once.sort(), ['work.Sweep', 'work.Work'])
  for (const plugin of ['work.Sweep', 'work.Work']) {
    const own = heddle.logs.filter(({ identity }) => identity === plugin)
    const polls = own.flatMap(({ msg, time }) => (msg === 'poll' ? [time as number] : []))
    const tookMs = polls.at(-1)! - polls[0]!
    assert.ok(polls.length <= tookMs / 20 + 2, `${polls.length} runs in ${tookMs} ms`)
    const long = own.map(({ msg }) => msg).filter((msg) => msg.startsWith('long '))
    for (const [n, msg] of long.entries()) assert.equal(msg, n % 2 === 0 ? 'long begins' : 'long ends')
  }
  assert.equal(await heddle.stop(), 0)
})
