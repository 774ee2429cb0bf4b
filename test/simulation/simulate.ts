/**
 * `npm run simulate -- --runs 10000 --seed 1`: runs the hub under faults that each seed draws, and prints the shortest story of the first that fails. With `--log sqlite` the event store is between, over a real SQLite
 * whose answers are late, refused and lost, and whole processes are killed; with `--log postgres` several of them share a server.
 * `--story` tells that of one seed, `--planted` after how many seeds each planted fault is found, `--digest` what must be the same on each Node.
 */
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Batch, ENGINE, STEPS, seedsUntilFound } from './batch.ts'
import { Nursery, PLANTED } from './planted.ts'
import { Run } from './run.ts'
import { StoredBatch, storedSeedsUntilFound, storedStoryOf } from './stored/batch.ts'
import { SHARED_PLANTED, STORED_PLANTED } from './stored/planted.ts'
import type { StoredLog } from './stored/run.ts'
import { shortest, storyOf } from './story.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    log: { type: 'string', default: 'memory' },
    planted: { type: 'boolean', default: false },
    digest: { type: 'boolean', default: false },
    story: { type: 'boolean', default: false },
  },
})
if (!['memory', 'sqlite', 'postgres'].includes(values.log)) throw new Error('--log is memory, sqlite or postgres')
const isStored = values.log !== 'memory'
const log = values.log as StoredLog
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
    const planted = { memory: PLANTED, sqlite: STORED_PLANTED, postgres: SHARED_PLANTED }
    for (const each of planted[values.log as keyof typeof planted]) {
      const seeds = isStored
        ? await storedSeedsUntilFound(log, await nursery.plantInLog(each), firstSeed, runs)
        : await seedsUntilFound(await nursery.plant(each), firstSeed, runs)
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

async function simulateStored(): Promise<void> {
  const batch = new StoredBatch(log)
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    if ((await batch.run(seed)) === null) continue
    console.log(
      `${(await storedStoryOf(log, seed)).join('\n')}\n\nnpm run simulate -- --log ${log} --seed ${seed} --story`,
    )
    process.exitCode = 1
    break
  }
  console.log(`seeds from ${firstSeed}: ${batch.summary}`)
}

if (values.digest) tellDigest()
else if (values.planted) void tellPlanted()
else if (isStored && values.story) void storedStoryOf(log, firstSeed).then((lines) => console.log(lines.join('\n')))
else if (isStored) void simulateStored()
else if (values.story) console.log(storyOf(ENGINE, { seed: firstSeed, steps: STEPS }).join('\n'))
else void simulate()
