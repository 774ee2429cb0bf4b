/** Many runs one after another in this thread, and the story of one that fails. */
import { DurableLog } from '../../../src/primary/event-log/durable-log.ts'
import { StoredLetters } from '../../../src/primary/event-log/stored-letters.ts'
import { Hub } from '../../../src/primary/events/hub.ts'
import { LaneSubscribers } from '../../../src/primary/events/lane-subscribers.ts'
import { STEPS } from '../batch.ts'
import { type StoredEngine, StoredRun } from './run.ts'

export const STORED_ENGINE: StoredEngine = { Hub, LaneSubscribers, DurableLog, StoredLetters }
/** Lines that are told of a run that has failed. */
const LINES = 120

export class StoredBatch {
  readonly #engine: StoredEngine
  readonly #startedNs = process.hrtime.bigint()
  runs = 0
  steps = 0
  events = 0
  processes = 0

  constructor(engine = STORED_ENGINE) {
    this.#engine = engine
  }

  /** @returns what was found, or null. It replaces the clock and the timers of this thread meanwhile */
  async run(seed: number): Promise<string | null> {
    const { finding, steps, events, processes } = await new StoredRun(this.#engine, { seed, steps: STEPS }).execute()
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
export async function storedStoryOf(seed: number): Promise<string[]> {
  const lines: string[] = []
  const run = new StoredRun(STORED_ENGINE, { seed, steps: STEPS, tell: (line) => void lines.push(line) })
  const { finding } = await run.execute()
  return [`seed ${seed}: ${JSON.stringify(run.plan)}`, ...lines.slice(-LINES), finding ?? 'Nothing was found']
}

/** @returns after how many seeds a fault is found; null when it is not */
export async function storedSeedsUntilFound(
  engine: StoredEngine,
  firstSeed: number,
  most: number,
): Promise<number | null> {
  const batch = new StoredBatch(engine)
  for (let n = 0; n < most; n++) {
    // A log that is broken may throw anything, which is found, too.
    const found = await batch.run(firstSeed + n).catch((error: unknown) => String(error))
    if (found !== null) return n + 1
  }
  return null
}

/** Runs seeds for some time. @returns the story of the first that fails, or null */
export async function storedFindingWithin(
  firstSeed: number,
  seconds: number,
): Promise<{ story: string | null; batch: StoredBatch }> {
  const batch = new StoredBatch()
  for (let seed = firstSeed; batch.seconds < seconds; seed++)
    if ((await batch.run(seed)) !== null) return { story: (await storedStoryOf(seed)).join('\n'), batch }
  return { story: null, batch }
}
