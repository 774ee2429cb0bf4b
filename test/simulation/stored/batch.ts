/** Many runs one after another in this thread, and the story of one that fails. */

import { Durable } from '../../../src/primary/event-store/durable.ts'
import { askLimits } from '../../../src/primary/event-store/shared-limits.ts'
import { askPermits, tellPermits } from '../../../src/primary/event-store/shared-permits.ts'
import { StoredDeadLetters } from '../../../src/primary/event-store/stored-dead-letters.ts'
import { Hub } from '../../../src/primary/events/hub.ts'
import { LaneSubscribers } from '../../../src/primary/events/lane-subscribers.ts'
import { Following } from '../../../src/runtime/event-store/following.ts'
import { Report } from '../../../src/runtime/event-store/report.ts'
import { writeStoreChanges } from '../../../src/runtime/event-store/write-changes.ts'
import { STEPS } from '../batch.ts'
import { type StoredEngine, type StoredLog, StoredRun } from './run.ts'

export const STORED_ENGINE: StoredEngine = {
  Hub,
  LaneSubscribers,
  Durable,
  StoredDeadLetters,
  writeStoreChanges,
  askLimits,
  askPermits,
  tellPermits,
  Report,
  Following,
}
/** Lines that are told of a run that has failed. */
const LINES = 120

/** Several processes look for each other all the time: a run of theirs has more steps. */
const optionsOf = (log: StoredLog, seed: number) => ({ log, seed, steps: log === 'sqlite' ? STEPS : 3 * STEPS })

export class StoredBatch {
  readonly #log: StoredLog
  readonly #engine: StoredEngine
  readonly #startedNs = process.hrtime.bigint()
  runs = 0
  steps = 0
  events = 0
  processes = 0

  constructor(log: StoredLog, engine = STORED_ENGINE) {
    this.#log = log
    this.#engine = engine
  }

  /** @returns what was found, or null */
  async run(seed: number): Promise<string | null> {
    const { finding, steps, events, processes } = await new StoredRun(
      this.#engine,
      optionsOf(this.#log, seed),
    ).execute()
    this.runs++
    this.steps += steps
    this.events += events
    this.processes += processes
    return finding
  }

  get seconds(): number {
    return Number(process.hrtime.bigint() - this.#startedNs) / 1e9
  }

  get summary(): string {
    const { runs, steps, events, processes, seconds } = this
    const aMinute = Math.round(((steps / STEPS) * 60) / seconds)
    return `${runs} runs, ${steps} steps, ${processes} processes, ${events} events in ${seconds.toFixed(1)} s: ${aMinute} runs of ${STEPS} steps a minute`
  }
}

/** What happened last in a run, and what was found. */
export async function storedStoryOf(log: StoredLog, seed: number): Promise<string[]> {
  const lines: string[] = []
  const run = new StoredRun(STORED_ENGINE, { ...optionsOf(log, seed), tell: (line) => void lines.push(line) })
  const { finding } = await run.execute()
  return [
    `seed ${seed}: ${JSON.stringify(run.plan)}`,
    ...lines.slice(-(Number(process.env.STORY_LINES) || LINES)),
    finding ?? 'Nothing was found',
  ]
}

/** @returns after how many seeds a fault is found; null when it is not */
export async function storedSeedsUntilFound(
  log: StoredLog,
  engine: StoredEngine,
  firstSeed: number,
  most: number,
): Promise<number | null> {
  const batch = new StoredBatch(log, engine)
  for (let n = 0; n < most; n++) {
    // A log that is broken may throw anything, which is found, too.
    const found = await batch.run(firstSeed + n).catch((error: unknown) => String(error))
    if (found !== null) return n + 1
  }
  return null
}

/** @returns the first thing that one of some seeds finds and `says` matches, else the first of all, or null */
export async function storedFindingLike(
  log: StoredLog,
  engine: StoredEngine,
  seeds: number,
  says: RegExp,
  firstSeed = 1,
): Promise<string | null> {
  const batch = new StoredBatch(log, engine)
  let first: string | null = null
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const found = await batch.run(seed).catch((error: unknown) => String(error))
    if (found !== null && says.test(found)) return found
    first ??= found
  }
  return first
}

/** Runs seeds for some time. @returns the story of the first that fails, or null */
export async function storedFindingWithin(
  log: StoredLog,
  firstSeed: number,
  seconds: number,
): Promise<{ story: string | null; batch: StoredBatch }> {
  const batch = new StoredBatch(log)
  for (let seed = firstSeed; batch.seconds < seconds; seed++)
    if ((await batch.run(seed)) !== null) return { story: (await storedStoryOf(log, seed)).join('\n'), batch }
  return { story: null, batch }
}
