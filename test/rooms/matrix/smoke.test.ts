import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Circumstances, runCell } from '../../matrix/cell.ts'
import { FAULTS } from '../../matrix/faults.ts'
import { PLACES } from '../../matrix/places.ts'
import { wrongsOf } from '../../matrix/verdict.ts'

/** One of each kind: at the start, late, beside native calls, and what a plugin leaves behind. */
const CELLS: readonly [place: string, fault: string, circumstances: Partial<Circumstances>][] = [
  ['timer of onBoot', 'throw', {}],
  ['module', 'rejection of nobody', { lanes: 1 }],
  ['timer of a handler', 'throw', { isNative: true }],
  ['handler', 'process.exit', { isNative: true, mode: 'development' }],
  ['subscriber', 'endless loop', { isNative: true }],
  ['handler', 'children of its own', {}],
]

test('a plugin that fails, wherever it does and however', { concurrency: 2 }, async (t) => {
  const trials = CELLS.map(([placeName, faultName, circumstances]) => {
    const place = PLACES.find(({ name }) => name === placeName)!
    const fault = FAULTS.find(({ name }) => name === faultName)!
    return t.test(`${placeName} × ${faultName}`, async () => {
      const cell = await runCell(place, fault, { lanes: 2, mode: 'production', isNative: false, ...circumstances })
      assert.deepEqual(wrongsOf(cell), [], JSON.stringify(cell))
      assert.equal(cell.restarts, 0, 'it is the same process')
    })
  })
  await Promise.all(trials)
})
