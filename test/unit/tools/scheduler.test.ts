import assert from 'node:assert/strict'
import { test } from 'node:test'
import SchedulerTool from '../../../src/tools/scheduler/index.ts'
import { buildTool, owner } from '../../support/tool-runtime.ts'

function build() {
  const { tool, recorded } = buildTool(SchedulerTool)
  const plugin = owner('mail.Digest')
  return { ...tool.api(plugin), recorded, plugin, tool }
}
const handler = () => {}

test('each kind of job reaches the host with its owner and schedule', () => {
  const { cron, every, at, recorded, plugin } = build()
  cron('nightly', '0 3 * * *', handler)
  every('poll', 10, handler)
  at('once', new Date(5000), handler, { missed: 'once' })
  assert.deepEqual(recorded.jobs, [
    { owner: plugin, name: 'nightly', schedule: { kind: 'cron', expression: '0 3 * * *' }, missed: 'skip', handler },
    { owner: plugin, name: 'poll', schedule: { kind: 'every', everyMs: 10 }, missed: 'skip', handler },
    { owner: plugin, name: 'once', schedule: { kind: 'at', atMs: 5000 }, missed: 'once', handler },
  ])
})

test('a cron expression has five fields or six, with names and blanks around', () => {
  const { cron } = build()
  const good = ['* * * * *', '*/5 * * * * *', '0 0 1 JAN *', '0 9-17 * * MON-FRI', ' 0 3 * * * ']
  for (const [n, expression] of good.entries()) cron(`job ${n}`, expression, handler)
})

test('what is no cron expression, no interval and no date is refused, and no job of it is left', () => {
  const { cron, every, at, recorded } = build()
  const expected = { code: 'SCHEDULER_INVALID' }
  const ofOddFields = ['* * * *', '* * * * * * *', '60 * * * *', '0 0 30 2 *']
  const others = [undefined, 5, '', 'every day at nine by the clock', '@daily', '2099-01-01T00:00:00']
  for (const expression of [...ofOddFields, ...others])
    assert.throws(() => cron('job', expression as string, handler), {
      ...expected,
      message: /Job "job": the cron expression/,
    })
  for (const everyMs of [9, 0, -1, 10.5, Number.NaN, Number.POSITIVE_INFINITY, '10'])
    assert.throws(() => every('job', everyMs as number, handler), expected, String(everyMs))
  for (const date of [new Date('never'), '2030-01-01', 5, undefined])
    assert.throws(() => at('job', date as Date, handler), expected, String(date))
  assert.deepEqual(recorded.jobs, [])
})

test('cron(): refuses a time zone that the IANA data base does not have', () => {
  const { cron, recorded } = build()
  for (const timeZone of ['Europe/Wien', 'Mars/Olympus', '', ' ', 'GMT+2', null, 5, {}])
    assert.throws(() => cron('job', '0 3 * * *', handler, { timeZone: timeZone as string }), {
      code: 'SCHEDULER_INVALID',
      message: /Job "job": .* is no time zone: write one of the IANA data base, such as 'Europe\/Vienna'/,
    })
  assert.equal(recorded.jobs.length, 0)
  cron('job', '0 3 * * *', handler, { timeZone: 'Europe/Vienna', missed: 'once' })
  assert.deepEqual(recorded.jobs[0]!.schedule, { kind: 'cron', expression: '0 3 * * *', timeZone: 'Europe/Vienna' })
})

test('what is to become of missed runs is one of two words', () => {
  const options = { missed: 'all' as 'once' }
  assert.throws(() => build().every('job', 10, handler, options), {
    code: 'SCHEDULER_INVALID',
    message: `Job "job": missed is 'skip' or 'once', not "all"`,
  })
})

test('a name is not empty and unique in its plugin, and free in another', () => {
  const { every, cron, tool, recorded } = build()
  for (const name of ['', ' ', 'x'.repeat(201), undefined]) {
    assert.throws(() => every(name as string, 10, handler), { code: 'SCHEDULER_INVALID' })
  }
  every('job', 10, handler)
  assert.throws(() => cron('job', '* * * * *', handler), /mail\.Digest has a job of this name already/)
  tool.api(owner('users.Cleanup')).every('job', 10, handler)
  assert.equal(recorded.jobs.length, 2)
})

test('a job that was refused leaves its name free', () => {
  const { every, recorded } = build()
  assert.throws(() => every('job', 1, handler))
  assert.throws(() => every('job', 10, undefined!), /the handler must be a function/)
  every('job', 10, handler)
  assert.equal(recorded.jobs.length, 1)
})

test('list asks the host', async () => assert.deepEqual(await build().list(), []))
