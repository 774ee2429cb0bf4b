import type { CaseContext } from './bench-case.ts'
import type { LoadPlan, LoadResult } from './load/plan.ts'
import type { BenchServer } from './server.ts'
import { median } from './statistics.ts'

/** Until the compilers of both sides have settled. */
const WARMUP_MS = 2000
/** Cores used by anything else, above which a round says so. */
const BUSY_CORES = 0.2

export type Load = Pick<LoadPlan, 'requests' | 'connections'>

/** Results per side, one per round; those of one index belong together. */
export type Rounds = Record<string, LoadResult[]>

export interface Comparison {
  /** Starts a fresh server of each side, by the side's name. */
  sides: Record<string, () => Promise<BenchServer>>
  load: Load
  /** Load before it is measured, milliseconds. Default WARMUP_MS. */
  warmupMs?: number
  /** Looks at a server before the load: a side that does less than the other voids the comparison. */
  before?(server: BenchServer): Promise<void>
  /** Looks at it afterwards, with what the load has seen. */
  after?(server: BenchServer, result: LoadResult): Promise<void>
}

/**
 * Puts the same load on each side in turn, A B C A B C …, so that whatever else the machine does meets all of them alike.
 * Every trial has a process of its own and has the machine to itself: two processes of one program differ by a tenth in what a
 * request costs, for as long as they live, and more of it when others wait beside them. The medians take that out.
 */
export async function compare(
  context: CaseContext,
  { sides, load, warmupMs = WARMUP_MS, before, after }: Comparison,
): Promise<Rounds> {
  const rounds: Rounds = {}
  const starts = Object.entries(sides)
  for (let round = 1; round <= context.rounds; round++) {
    for (const [n, [side, start]] of starts.entries()) {
      const done = ((round - 1) * starts.length + n) / (context.rounds * starts.length)
      context.step(`round ${round} of ${context.rounds}, ${side}`, done)
      const server = await start()
      try {
        await before?.(server)
        const result = await context.load.run({
          ...load,
          host: server.host,
          port: server.port,
          observedPid: server.pid,
          warmupMs,
          measureMs: context.measureMs,
        })
        context.say(`round ${round} ${side.padEnd(9)} ${describe(result)}`)
        await after?.(server, result)
        rounds[side] = [...(rounds[side] ?? []), result]
      } finally {
        await server.stop()
      }
    }
  }
  return rounds
}

/** Median of one measure of one side; null when it was not run. */
export function medianOf(rounds: Rounds, side: string, measure: Measure): number | null {
  return median((rounds[side] ?? []).map(measure))
}

/** Median over the rounds of the ratio between two sides in the same round; null when one was not run. */
export function medianRatio(rounds: Rounds, side: string, baseline: string, measure: Measure): number | null {
  const others = rounds[baseline] ?? []
  const pairs = (rounds[side] ?? []).slice(0, others.length)
  return median(pairs.map((result, round) => measure(result) / measure(others[round]!)))
}

/** Says how busy the machine was with other things in the median round, when that is much. */
export function busyNote(rounds: Record<string, readonly { otherCores: number | null }[]>): { note?: string } {
  const cores = median(
    Object.values(rounds).flatMap((results) => results.flatMap(({ otherCores }) => otherCores ?? [])),
  )
  return cores === null || cores <= BUSY_CORES
    ? {}
    : { note: `the machine was busy otherwise with ${cores.toFixed(1)} cores: measure again` }
}

/** What went wrong on either side, in words; a figure with any of it is not to be trusted. */
export function faultsOf(rounds: Rounds, ...sides: string[]): string[] {
  return sides.flatMap((side) => {
    const results = rounds[side] ?? []
    const non2xx = results.reduce((sum, result) => sum + result.non2xx, 0)
    const errors = results.reduce((sum, result) => sum + result.errors, 0)
    const silent = results.some((result) => result.ok === 0)
    return [
      ...(non2xx > 0 ? [`${side}: ${non2xx} answers other than 2xx`] : []),
      ...(errors > 0 ? [`${side}: ${errors} connection errors`] : []),
      ...(silent ? [`${side}: a round without one good answer`] : []),
    ]
  })
}

export type Measure = (result: LoadResult) => number
export const cpuUs: Measure = (result) => result.serverCpuUsPerRequest ?? Number.NaN
export const perSec: Measure = (result) => result.okPerSec

function describe(result: LoadResult): string {
  const { okPerSec, serverCpuUsPerRequest, loadCpuUsPerRequest, latencyMs, otherCores, non2xx, errors } = result
  const busy = otherCores !== null && otherCores > BUSY_CORES ? `, machine busy: ${otherCores.toFixed(1)} cores` : ''
  const faults = non2xx + errors > 0 ? `, ${non2xx} non-2xx, ${errors} errors` : ''
  return (
    `${Math.round(okPerSec)}/s, ${serverCpuUsPerRequest?.toFixed(2)} µs CPU each, ` +
    `p50 ${latencyMs.p50} ms, p99 ${latencyMs.p99} ms (load ${loadCpuUsPerRequest.toFixed(2)} µs each)${busy}${faults}`
  )
}
