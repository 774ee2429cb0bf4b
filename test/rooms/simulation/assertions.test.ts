/** Holds that each assertion of the event store speaks when the rule is broken that it guards. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Nursery } from '../../simulation/planted.ts'
import { storedFindingLike } from '../../simulation/stored/batch.ts'
import { ASSERTED_PLANTED } from '../../simulation/stored/planted.ts'

/** Each is found in one of this many seeds. */
const SEEDS = 300

for (const planted of ASSERTED_PLANTED) {
  test(`EVENT_STORE_BROKEN is reported when ${planted.what}`, async () => {
    const nursery = new Nursery()
    try {
      const engine = await nursery.plantInLog(planted)
      assert.match((await storedFindingLike(planted.log, engine, SEEDS, planted.says)) ?? 'nothing', planted.says)
    } finally {
      nursery.end()
    }
  })
}
