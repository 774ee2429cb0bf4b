// Measures small pieces of code in this process, with tinybench, by processor time: the clock on the wall also counts the neighbours.
import { Bench } from 'tinybench'
import { median } from '../report.ts'
import type { WindowPlan } from '../windows.ts'

/** Calls in one sample: a single call is shorter than the clock's resolution. */
const CALLS = 1000
const WARMUP_MS = 500

/** Makes `CALLS` calls. */
export type Task = () => void | Promise<void>

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Repeats a call within one sample. */
export const repeated = (call: () => void) => (): void => {
  for (let n = 0; n < CALLS; n++) call()
}

/** Repeats an asynchronous call within one sample. */
export const repeatedLater = (call: () => Promise<void>) => async (): Promise<void> => {
  for (let n = 0; n < CALLS; n++) await call()
}

/** Returns the processor time of one call of each task, nanoseconds: the median of the rounds' medians. */
export async function nanosecondsOf<Name extends string>(
  tasks: Readonly<Record<Name, Task>>,
  { measureMs, rounds }: WindowPlan,
): Promise<Record<Name, number>> {
  const names = Object.keys(tasks) as Name[]
  const found = new Map(names.map((name) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round++) {
    const bench = new Bench({ time: measureMs, warmup: round === 0, warmupTime: WARMUP_MS, now: cpuMs, throws: true })
    // Each task is first, second and last equally often.
    for (let n = 0; n < names.length; n++) {
      const name = names[(round + n) % names.length]!
      bench.add(name, tasks[name])
    }
    await bench.run()
    for (const { name, result } of bench.tasks) {
      if (result.state !== 'completed') throw new Error(`${name} is ${result.state}`)
      found.get(name as Name)!.push((result.latency.p50 * 1e6) / CALLS)
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(found.get(name)!) ?? 0])) as Record<Name, number>
}
