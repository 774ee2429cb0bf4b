import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobInfo } from '../../../src/contracts/scheduler.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixture('deployed')]

test('jobs fire on the leader alone, once whatever the number of lanes, and never beside themselves', async (t) => {
  const [leader, other] = await Promise.all(
    ['true', 'false'].map((enabled) =>
      startHeddle(t, { domains: DOMAINS, lanes: 3, env: { SCHEDULER_ENABLED: enabled } }),
    ),
  )
  const jobsOf = async (heddle: typeof leader): Promise<JobInfo[]> => (await heddle!.json('/jobs')).body.jobs
  const lines = (message: string) => leader!.logs.filter(({ msg }) => msg === message)
  await until(() => lines('tick').length >= 8 && lines('long ends').length >= 3, 'some runs')

  const ticks = lines('tick').map(({ time }) => time as number)
  const tookMs = ticks.at(-1)! - ticks[0]!
  assert.ok(ticks.length <= tookMs / 100 + 2, `${ticks.length} runs in ${tookMs} ms`)
  const long = leader!.logs.map(({ msg }) => msg).filter((msg) => msg.startsWith('long '))
  for (const [n, msg] of long.entries()) assert.equal(msg, n % 2 === 0 ? 'long begins' : 'long ends')
  const [skipping] = (await jobsOf(leader)).filter(({ name }) => name === 'long')
  assert.ok(skipping!.skipped > 0)

  const idle = await jobsOf(other)
  assert.deepEqual(
    idle.map(({ plugin, name, next_run, runs }) => [plugin, name, next_run, runs]),
    [
      ['fleet.RunJobs', 'tick', null, 0],
      ['fleet.RunJobs', 'long', null, 0],
    ],
  )
  assert.ok(!other!.logs.some(({ msg }) => msg === 'tick' || msg.startsWith('long ')))
})
