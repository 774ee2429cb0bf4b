/** Many runs one after another in this thread. */
import { Hub } from '../../src/primary/events/hub.ts'
import { LaneSubscribers } from '../../src/primary/events/lane-subscribers.ts'
import { CrashCounts } from './crashes.ts'
import { type Engine, Run, type RunResult } from './run.ts'

export const ENGINE: Engine = { Hub, LaneSubscribers }
/** Of the part of a run in which things go wrong. */
export const STEPS = 1000

export class Batch {
  readonly #engine: Engine
  readonly crashes = new CrashCounts()
  runs = 0
  steps = 0
  events = 0
  readonly #startedMs = performance.now()

  constructor(engine: Engine = ENGINE) {
    this.#engine = engine
  }

  /** @returns what was found, or null */
  async run(seed: number, steps = STEPS): Promise<string | null> {
    const result = new Run(this.#engine, { seed, steps }).execute()
    this.runs++
    this.steps += result.steps
    this.events += result.events
    this.crashes.addAll(result.crashes)
    return result.finding ?? (await unanswered(result))
  }

  get seconds(): number {
    return (performance.now() - this.#startedMs) / 1000
  }

  get summary(): string {
    const { runs, steps, events, seconds } = this
    const aMinute = Math.round(((steps / STEPS) * 60) / seconds)
    return `${runs} runs, ${steps} steps, ${events} events in ${seconds.toFixed(1)} s: ${aMinute} runs of ${STEPS} steps a minute`
  }
}

/** Promises settle in a later turn. */
async function unanswered({ requests }: RunResult): Promise<string | null> {
  const open = await requests
  return open === 0 ? null : `${open} requests were never answered`
}

/** @returns after how many seeds a fault is found; null when it is not */
export async function seedsUntilFound(engine: Engine, firstSeed: number, most: number): Promise<number | null> {
  const batch = new Batch(engine)
  for (let n = 0; n < most; n++) {
    // A hub that is broken may throw anything, which is found, too.
    const found = await batch.run(firstSeed + n).catch((error: unknown) => String(error))
    if (found !== null) return n + 1
  }
  return null
}
