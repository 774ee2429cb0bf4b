// Sides of a comparison in one process: each has a window in each round, in turn.
import { median } from './report.ts'

/** What a side does until a time, in milliseconds of `performance.now()`. @returns how often it has done it */
export type Loop = (endMs: number) => Promise<number> | number

export interface WindowSide {
  /** Per second: the median of the rounds. */
  perSecond: number
  /** CPU time of the process, user and system, for each in microseconds: the median of the rounds. */
  cpuUs: number
  /** Per second, round by round. */
  rounds: number[]
  /** How often it was done, warm-up included. */
  count: number
}

export interface WindowPlan {
  /** Length of one measured window; every side has one in each round. */
  measureMs: number
  /** How often the sides are measured, in turn. */
  rounds: number
}

const WARMUP_MS = 1000

/** Measures the sides in turn. Each is first, second and last equally often. */
export async function inWindows<Name extends string>(
  sides: Readonly<Record<Name, Loop>>,
  { measureMs, rounds }: WindowPlan,
): Promise<Record<Name, WindowSide>> {
  const names = Object.keys(sides) as Name[]
  const windows = new Map(names.map((name) => [name, [] as Window[]]))
  const counts = new Map<Name, number>()
  const add = (name: Name, count: number) => counts.set(name, (counts.get(name) ?? 0) + count)
  for (const name of names) add(name, await sides[name](performance.now() + Math.min(WARMUP_MS, measureMs)))
  for (let round = 0; round < rounds; round++) {
    for (let n = 0; n < names.length; n++) {
      const name = names[(round + n) % names.length]!
      const window = await measured(sides[name], measureMs)
      windows.get(name)!.push(window)
      add(name, window.count)
    }
  }
  const sideOf = (name: Name): WindowSide => {
    const all = windows.get(name)!
    const rates = all.map(({ perSecond }) => perSecond)
    const cpuUs = median(all.map((window) => window.cpuUs)) ?? 0
    return { perSecond: median(rates) ?? 0, cpuUs, rounds: rates, count: counts.get(name)! }
  }
  return Object.fromEntries(names.map((name) => [name, sideOf(name)])) as Record<Name, WindowSide>
}

interface Window {
  count: number
  perSecond: number
  cpuUs: number
}

async function measured(loop: Loop, measureMs: number): Promise<Window> {
  const startedMs = performance.now()
  const cpu = process.cpuUsage()
  const count = await loop(startedMs + measureMs)
  const { user, system } = process.cpuUsage(cpu)
  return { count, perSecond: (count * 1000) / (performance.now() - startedMs), cpuUs: (user + system) / count }
}

/** The median of the ratios of the rounds, because the other load of the machine changes from round to round. */
export const ratioOf = (side: WindowSide, baseline: WindowSide): number =>
  median(side.rounds.map((perSecond, round) => perSecond / baseline.rounds[round]!)) ?? 0

/** So many callers, each of which waits for its answer before it calls again. @param call gets the number of the caller, and of its call */
export const callers =
  (count: number, call: (caller: number, n: number) => Promise<unknown>): Loop =>
  async (endMs) => {
    let calls = 0
    const caller = async (index: number): Promise<void> => {
      for (let n = 0; performance.now() < endMs; n++) {
        await call(index, n)
        calls++
      }
    }
    await Promise.all(Array.from({ length: count }, (_, index) => caller(index)))
    return calls
  }
