/**
 * `npm run simulate -- --runs 10000 --seed 1`: runs the hub under faults that each seed draws, and prints the shortest story of the first that fails.
 * `--story` tells that of one seed, `--planted` after how many seeds each planted fault is found, `--digest` what must be the same on each Node.
 */
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Batch, ENGINE, STEPS, seedsUntilFound } from './batch.ts'
import { Nursery, PLANTED } from './planted.ts'
import { Run } from './run.ts'
import { shortest, storyOf } from './story.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    planted: { type: 'boolean', default: false },
    digest: { type: 'boolean', default: false },
    story: { type: 'boolean', default: false },
  },
})
const runs = Number(values.runs)
const firstSeed = Number(values.seed ?? (values.planted || values.digest ? 1 : Math.floor(Math.random() * 2 ** 31)))

function tellDigest(): void {
  const hash = createHash('sha256')
  for (let seed = firstSeed; seed < firstSeed + runs; seed++)
    new Run(ENGINE, { seed, steps: STEPS, tell: (line) => hash.update(`${line}\n`) }).execute()
  console.log(hash.digest('hex'))
}

async function tellPlanted(): Promise<void> {
  const nursery = new Nursery()
  try {
    for (const each of PLANTED) {
      const seeds = await seedsUntilFound(await nursery.plant(each), firstSeed, runs)
      if (seeds === null) process.exitCode = 1
      console.log(`${String(seeds ?? 'never').padStart(6)}  ${each.what}`)
    }
  } finally {
    nursery.end()
  }
}

async function simulate(): Promise<void> {
  const batch = new Batch()
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const finding = await batch.run(seed)
    if (finding === null) continue
    console.log(
      `${storyOf(ENGINE, shortest(ENGINE, { seed, steps: STEPS })).join('\n')}\n\nnpm run simulate -- --seed ${seed} --story`,
    )
    process.exitCode = 1
    break
  }
  console.log(`seeds from ${firstSeed}: ${batch.summary}`)
  for (const line of batch.crashes.table) console.log(line)
}

if (values.digest) tellDigest()
else if (values.planted) void tellPlanted()
else if (values.story) console.log(storyOf(ENGINE, { seed: firstSeed, steps: STEPS }).join('\n'))
else void simulate()
