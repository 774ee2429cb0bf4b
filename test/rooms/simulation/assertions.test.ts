/** Holds that each assertion of the event store speaks when the rule is broken that it guards. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Nursery } from '../../simulation/planted.ts'
import { storedFindingLike } from '../../simulation/stored/batch.ts'
import { ASSERTED_PLANTED } from '../../simulation/stored/planted.ts'

/** Each is found in one of this many seeds. */
const SEEDS = 150
/** A rare one is looked for from here on. */
const FIRST_SEEDS = new Map([
  ['a row of a blocked key is handed out', 251],
  ['deliveries begin although the lease was not renewed', 401],
])

for (const planted of ASSERTED_PLANTED) {
  test(`EVENT_STORE_BROKEN is reported when ${planted.what}`, async () => {
    const nursery = new Nursery()
    try {
      const engine = await nursery.plantInLog(planted)
      const firstSeed = FIRST_SEEDS.get(planted.what) ?? 1
      const found = await storedFindingLike(planted.log, engine, SEEDS, planted.says, firstSeed)
      assert.match(found ?? 'nothing', planted.says)
    } finally {
      nursery.end()
    }
  })
}
