import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { allUp, boxesOf, deathsIn, lanesOf } from './deadly.ts'

const DOMAINS = [fixtureDomains('leaky'), SYSTEM_ROUTES]
const MEMORY_MB = 128
/** Many times what a lane may keep. */
const USED_MIB = 8 * MEMORY_MB

const LEAKS = [
  ['buffers', /^its buffers took more than 128 MiB$/],
  ['heap', /^its heap took more than 128 MiB$/],
] as const

async function endsOneLane(heddle: Heddle, what: string, message: RegExp): Promise<void> {
  const before = await lanesOf(heddle)
  const diedBefore = new Set((await boxesOf(heddle)).map(({ at }) => at))
  const answer = await heddle.json(`/use/${what}?mib=${USED_MIB}`)
  assert.equal(answer.status, 500)
  await allUp(heddle)
  const [box, ...others] = (await boxesOf(heddle)).filter(({ at }) => !diedBefore.has(at))
  assert.deepEqual(others, [])
  assert.equal(box!.reason, 'memory')
  assert.match(box!.message, message)
  // Memory says nothing of who has taken it: the report lists what was in flight.
  assert.equal(box!.guilty, null)
  assert.deepEqual(
    box!.in_flight.map(({ plugin, name }) => [plugin, name]),
    [['leaks.LeakMemory', 'GET /use/:what']],
  )
  const after = await lanesOf(heddle)
  const restartsOf = ({ restarts, started_at }: LaneInfo) => [restarts, started_at]
  const isSame = (lane: LaneInfo) =>
    isDeepStrictEqual(restartsOf(lane), restartsOf(before.find(({ index }) => index === lane.index)!))
  assert.deepEqual(after.map(isSame).sort(), [false, true])
  assert.equal((await heddle.json('/calm')).status, 200)
}

describe('memory', () => {
  const heddleOf = shareService((owner) =>
    startHeddle(owner, { domains: DOMAINS, env: { LANE_MEMORY_MB: String(MEMORY_MB) } }),
  )

  test('as much memory that is not kept ends no lane', async () => {
    const heddle = heddleOf()
    for (const what of ['short-lived', 'short-lived-shared']) {
      for (const piece of [1, 32]) {
        const path = `/use/${what}?mib=${USED_MIB}&piece_mib=${piece}`
        assert.equal((await heddle.json(path)).status, 200, `${what} of ${piece} MiB`)
      }
    }
    assert.deepEqual(deathsIn(heddle), [])
  })

  for (const [what, message] of LEAKS) {
    test(`memory that is kept over many turns (${what}) ends its lane, and no other`, () =>
      endsOneLane(heddleOf(), what, message))
  }
})

// In a service of its own: at its third death the plugin has a lane of its own.
test('memory that is shared between threads counts as buffers of the lane that has made it', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, env: { LANE_MEMORY_MB: String(MEMORY_MB) } })
  await endsOneLane(heddle, 'shared', /^its buffers took more than 128 MiB$/)
})
