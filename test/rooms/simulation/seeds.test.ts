/** Six hundred seeds of the simulation: each pair of step and crash is met, and a seed tells the same story again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batch, ENGINE, STEPS, seedsUntilFound } from '../../simulation/batch.ts'
import { Nursery, PLANTED } from '../../simulation/planted.ts'
import { Run } from '../../simulation/run.ts'

const FIRST_SEED = 1_000_000
const SEEDS = 600
/** A planted fault that one of them finds is found. */
const SEEDS_MAX = 2_000

test('six hundred seeds find nothing, and meet every pair of step and crash', async () => {
  const batch = new Batch()
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)
    assert.equal(await batch.run(seed), null, `npm run simulate -- --seed ${seed} --story`)
  assert.deepEqual(batch.crashes.never, [])
})

test('a seed tells the same story each time', () => {
  const storyOf = (): string => {
    const lines: string[] = []
    new Run(ENGINE, { seed: 7, steps: STEPS, tell: (line) => lines.push(line) }).execute()
    return lines.join('\n')
  }
  assert.equal(storyOf(), storyOf())
})

test('planted faults are found: the first of each file', async () => {
  const nursery = new Nursery()
  try {
    const firsts = PLANTED.filter(({ file }, n) => PLANTED.findIndex((other) => other.file === file) === n)
    for (const each of firsts)
      assert.notEqual(await seedsUntilFound(await nursery.plant(each), 1, SEEDS_MAX), null, each.what)
  } finally {
    nursery.end()
  }
})
