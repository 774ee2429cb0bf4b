import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fault, faultsOf, LETHAL, TROUBLE } from '../../chaos/schedule.ts'
import { seededRandom } from '../../support/random.ts'

const countOf = (faults: Fault[], kind: string) => faults.filter((fault) => fault.kind === kind).length

test('the faults follow from the seed alone', () => {
  const faults = faultsOf(seededRandom(5), 120_000, 8000)
  assert.deepEqual(faultsOf(seededRandom(5), 120_000, 8000), faults)
  assert.notDeepEqual(faultsOf(seededRandom(6), 120_000, 8000), faults)
})

test('the faults come in order, and within the time', () => {
  for (let seed = 0; seed < 50; seed++) {
    const times = faultsOf(seededRandom(seed), 10_000, 9000).map(({ atMs }) => atMs)
    assert.deepEqual(
      times.toSorted((a, b) => a - b),
      times,
    )
    assert.ok(times[0]! >= 1500 && times.at(-1)! <= 9500, String(times))
  }
})

test('two minutes hold every kind, poison once', () => {
  for (let seed = 0; seed < 50; seed++) {
    const faults = faultsOf(seededRandom(seed), 120_000, 8000)
    for (const kind of LETHAL) assert.equal(countOf(faults, kind), 2, kind)
    for (const kind of TROUBLE) assert.ok(countOf(faults, kind) >= 6, kind)
    assert.equal(countOf(faults, 'poison'), 1)
  }
})

test('a short run has three lethal faults and one that is not', () => {
  const faults = faultsOf(seededRandom(1), 5000, 9000)
  assert.equal(faults.filter(({ kind }) => (TROUBLE as readonly string[]).includes(kind)).length, 1)
  assert.equal(faults.length, 4)
})
