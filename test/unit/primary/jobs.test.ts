import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Jobs } from '../../../src/primary/jobs/jobs.ts'
import { jobOf, laneOf } from '../../support/fake-lane.ts'

function jobsOf(t: TestContext): Jobs {
  const jobs = new Jobs({
    enabled: true,
    lanes: () => [],
    isPaused: () => false,
    database: () => null,
    isStored: () => false,
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
