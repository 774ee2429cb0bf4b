import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Jobs } from '../../../src/primary/jobs/jobs.ts'
import { Terminal, wantsColours } from '../../../src/primary/logging/terminal.ts'
import { jobOf, laneOf } from '../../support/fake-lane.ts'

test('colours are for terminals that have some, unless somebody says otherwise', () => {
  assert.equal(wantsColours(true, { TERM: 'xterm' }), true)
  assert.equal(wantsColours(true, {}), true)
  assert.equal(wantsColours(false, { TERM: 'xterm' }), false)
  assert.equal(wantsColours(true, { TERM: 'dumb' }), false)
  assert.equal(wantsColours(true, { NO_COLOR: '1' }), false)
  assert.equal(wantsColours(true, { NO_COLOR: '' }), true, 'empty counts as unset')
  assert.equal(wantsColours(false, { FORCE_COLOR: '1' }), true)
  assert.equal(wantsColours(true, { FORCE_COLOR: '0' }), false)
  assert.equal(wantsColours(false, { FORCE_COLOR: '1', NO_COLOR: '1' }), true)
})

/** A terminal of ten columns, and what it was sent. */
function terminalOf(isTerminal: boolean) {
  let sent = ''
  const terminal = new Terminal(
    (text) => {
      sent += text
    },
    isTerminal,
    {},
    () => 10,
  )
  return { terminal, sent: () => sent }
}

test('a line is written over until a whole one comes, and never wraps', () => {
  const { terminal, sent } = terminalOf(true)
  terminal.replace('one')
  terminal.replace('one')
  terminal.replace('a line that is too long')
  terminal.write('whole\n')
  terminal.replace('two')
  terminal.clear()
  terminal.clear()
  terminal.write('end\n')
  assert.equal(sent(), 'one\r\x1b[Ka line th\nwhole\ntwo\r\x1b[Kend\n')
})

test('where nothing can be written over, only whole lines are written', () => {
  const { terminal, sent } = terminalOf(false)
  terminal.replace('one')
  terminal.clear()
  terminal.write('whole\n')
  assert.equal(sent(), 'whole\n')
  assert.equal(terminal.paint('red', 'text'), 'text')
})

function jobsOf(t: TestContext): Jobs {
  const jobs = new Jobs({
    enabled: true,
    lanes: () => [],
    isPaused: () => false,
    database: () => null,
    isStored: () => false,
    replica: 'one',
    log: () => {},
  })
  t.after(() => jobs.stop())
  return jobs
}

const names = (jobs: Jobs): string[] => jobs.list().map(({ plugin, name }) => `${plugin}/${name}`)

test('jobs that no lane has any more are taken away; those of the primary stay', (t) => {
  const jobs = jobsOf(t)
  jobs.addLocal({
    owner: { name: 'system.Sweep', instance: {} },
    name: 'sweep',
    schedule: { kind: 'every', everyMs: 3_600_000 },
    missed: 'skip',
    handler: () => {},
  })
  jobs.start()
  const before = [jobOf('shop.Sell', 'old'), jobOf('shop.Sell', 'stays')]
  jobs.addOf(laneOf(t, { manifest: { jobs: before } }), () => false)
  const after = [jobOf('shop.Sell', 'stays'), jobOf('shop.Buy', 'stays'), jobOf('shop.Buy', 'refused')]
  const fresh = laneOf(t, { generation: 1, manifest: { jobs: after } })
  jobs.addOf(fresh, (plugin) => plugin === 'shop.Buy')
  jobs.keepHosted([fresh])
  assert.deepEqual(names(jobs), ['system.Sweep/sweep', 'shop.Sell/stays'])
})

test('a job stays as long as one of the lanes has it', (t) => {
  const jobs = jobsOf(t)
  const lanes = [['one'], ['one', 'two']].map((of) =>
    laneOf(t, { manifest: { jobs: of.map((name) => jobOf('shop.Sell', name)) } }),
  )
  for (const lane of lanes) jobs.addOf(lane, () => false)
  jobs.keepHosted(lanes)
  assert.deepEqual(names(jobs), ['shop.Sell/one', 'shop.Sell/two'])
  jobs.keepHosted(lanes.slice(0, 1))
  assert.deepEqual(names(jobs), ['shop.Sell/one'])
})
