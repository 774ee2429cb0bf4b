import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { suiteOwner } from '../../support/replicas.ts'
import { Outage } from './outage.ts'

const CLAIM_IDLE_MS = 1000
const FROZEN_MS = 3000

describe('servers and replicas that are away for a while', () => {
  const owner = suiteOwner()
  let outage: Outage | null = null

  test('boot', async (t) => {
    outage = await Outage.start({ after: owner.after, skip: (reason) => t.skip(reason) }, CLAIM_IDLE_MS)
  })

  const scenario = (name: string, run: (outage: Outage) => Promise<void>): void => {
    test(name, async (t) => {
      if (outage === null) return t.skip('there are no servers')
      const { line, isWhole } = await outage.under(t, () => run(outage!))
      t.diagnostic(line)
      assert.ok(isWhole, line)
    })
  }

  scenario('a Redis that is restarted with its append-only file', (each) => each.restartRedis())
  scenario('a Redis that stands still', (each) => each.freezeRedis(FROZEN_MS))
  scenario('a PostgreSQL that is restarted', (each) => each.restartPostgres())
  scenario('a replica that stands still, and goes on when the others have done its work', (each) =>
    each.freezeReplica(FROZEN_MS),
  )

  test('what is in hand while Redis stands still is given to nobody else, and runs once', async (t) => {
    if (outage === null) return t.skip('there are no servers')
    assert.deepEqual(new Set(await outage.freezeRedisWhileHandling(FROZEN_MS)), new Set([1]))
  })

  test('a replica ends while Redis stands still, and what it could not acknowledge is handled', async (t) => {
    if (outage === null) return t.skip('there are no servers')
    assert.equal(await outage.stopWithoutRedis(), 0)
  })
})
