import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Jobs } from '../../../src/primary/jobs/jobs.ts'
import { jobOf, laneOf } from '../../support/fake-lane.ts'
import { until } from '../../support/until.ts'

test('a job goes to a lane whose loop turns, and to one that stands still only where there is no other', async (t) => {
  const manifest = { jobs: [{ ...jobOf('shop.Sell', 'tick'), schedule: { kind: 'every', everyMs: 10 } as const }] }
  const [still, well] = [0, 1].map((index) => laneOf(t, { index, manifest }))
  const jobs = new Jobs({
    enabled: true,
    lanes: () => [still!, well!],
    isPaused: () => false,
    database: () => null,
    isStored: () => false,
    log: () => {},
  })
  t.after(() => jobs.stop())
  still!.responsive = false
  jobs.addOf(still!, () => false)
  jobs.start()
  await until(() => jobs.list()[0]!.runs === 1, 'a run')
  assert.deepEqual([jobs.workInFlight(still!).length, jobs.workInFlight(well!).length], [0, 1])
  well!.responsive = false
  jobs.laneGone(well!, null)
  await until(() => jobs.list()[0]!.runs === 2, 'another run')
  jobs.laneGone(still!, null)
  jobs.laneGone(well!, null)
})
