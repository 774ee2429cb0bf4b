// Sides of a comparison in turn, and the figures of a row from what they have shown.
import { type CaseContext, noteOf, type Row, ratioTo } from './bench-case.ts'
import type { LoadPlan, LoadResult, StreamResult } from './load/plan.ts'
import { median } from './report.ts'
import type { BenchServer, Sides } from './server.ts'

/** Warm-up in milliseconds, until V8 has compiled the hot code of both sides. */
const WARMUP_MS = 2000
/** When other processes use more cores than this, the round reports it. */
const BUSY_CORES = 0.2

export type Load = Pick<LoadPlan, 'requests' | 'connections'>

/** Results per side, one for each round. Results with the same index are from the same round. */
export type Rounds = Record<string, LoadResult[]>

export interface Comparison {
  sides: Sides
  /** The same for all sides, or what one of them gets. */
  load: Load | ((side: string) => Load)
  /** Load before it is measured, milliseconds. Default WARMUP_MS. */
  warmupMs?: number
  /** Checks a server before the load: the comparison is invalid if one side does less than the other. */
  before?(server: BenchServer): Promise<void>
  /** Checks it afterwards, with the results of the load. */
  after?(server: BenchServer, result: LoadResult): Promise<void>
}

/**
 * Tries a fresh server of each side in turn, A B C A B C …, so that other load of the machine affects all sides alike.
 * Every trial has its own process and no other server runs meanwhile. Two processes of the same program differ by a tenth in the cost of
 * a request as long as they live, and by more when others wait beside them. The medians remove that.
 */
export async function inTurn<Result>(
  context: CaseContext,
  sides: Sides,
  trial: (server: BenchServer, side: string, round: number) => Promise<Result>,
  { rounds = context.rounds, what = '' }: { rounds?: number; what?: string } = {},
): Promise<Record<string, Result[]>> {
  const results: Record<string, Result[]> = {}
  const starts = Object.entries(sides)
  for (let round = 1; round <= rounds; round++) {
    for (const [n, [side, start]] of starts.entries()) {
      const done = ((round - 1) * starts.length + n) / (rounds * starts.length)
      context.step(`${what}round ${round} of ${rounds}, ${side}`, done)
      const server = await start()
      try {
        results[side] = [...(results[side] ?? []), await trial(server, side, round)]
      } finally {
        await server.stop()
      }
    }
  }
  return results
}

/** Puts the same load on each side in turn. */
export async function compare(
  context: CaseContext,
  { sides, load, warmupMs = WARMUP_MS, before, after }: Comparison,
): Promise<Rounds> {
  return inTurn(context, sides, async (server, side, round) => {
    await before?.(server)
    const result = await context.load.run({
      ...(typeof load === 'function' ? load(side) : load),
      ...server.target,
      warmupMs,
      measureMs: context.measureMs,
    })
    context.say(`round ${round} ${side.padEnd(9)} ${describe(result)}`)
    await after?.(server, result)
    return result
  })
}

type Results<Result> = Readonly<Record<string, readonly Result[]>>

/** Median of one measure of one side; null when it was not run. */
export function medianOf<Result>(
  rounds: Results<Result>,
  side: string,
  measure: (result: Result) => number,
): number | null {
  return median((rounds[side] ?? []).map(measure))
}

/** Median over the rounds of the ratio between two sides in the same round; null when one was not run. */
export function medianRatio<Result>(
  rounds: Results<Result>,
  side: string,
  baseline: string,
  measure: (result: Result) => number,
): number | null {
  const others = rounds[baseline] ?? []
  const pairs = (rounds[side] ?? []).slice(0, others.length)
  return median(pairs.map((result, round) => measure(result) / measure(others[round]!)))
}

/** The figures of a row: one measure of a side, of its baseline, and the ratio in the same round. */
export function figures<Result>(
  rounds: Results<Result>,
  measure: (result: Result) => number,
  side: string,
  baseline: string,
  baselineName: string,
): Pick<Row, 'heddle' | 'baseline' | 'baselineName' | 'ratio'> {
  return {
    heddle: medianOf(rounds, side, measure),
    baseline: medianOf(rounds, baseline, measure),
    baselineName,
    ratio: medianRatio(rounds, side, baseline, measure),
  }
}

/** The same of loads, with what went wrong on either side, and with what the figures need said. */
export function compared(
  rounds: Rounds,
  measure: Measure,
  side: string,
  baseline: string,
  baselineName: string,
  ...notes: string[]
): Pick<Row, 'heddle' | 'baseline' | 'baselineName' | 'ratio' | 'faults' | 'note'> {
  const faults = faultsOf(rounds, side, baseline)
  const note = noteOf(...notes, busyNote(rounds))
  return { ...figures(rounds, measure, side, baseline, baselineName), faults, ...note }
}

/** What a request costs on a side, beside its baseline. */
function cpuNote(rounds: Rounds, side: string, baseline: string): string {
  const { heddle, baseline: other, ratio } = figures(rounds, cpuUs, side, baseline, '')
  const [own, others, times] = [heddle, other, ratio].map((figure) => figure?.toFixed(2) ?? '–')
  return `CPU per request ${own} / ${others} µs, ${times} ×`
}

/** A side with something turned on. */
export interface Keeping {
  label: string
  env: Record<string, string>
  /** The share of the throughput without it that it must keep. */
  atLeast: number
}

/** How much of the throughput without it a side keeps. @param off the side without @param what is turned on */
export function keptRow(
  what: string,
  { label, atLeast }: Keeping,
  rounds: Rounds,
  side: string,
  off: string,
  offName: string,
  ...notes: string[]
): Row {
  return {
    label: `${what}: requests per second, ${label}`,
    unit: 'requests/s',
    ...compared(rounds, perSec, side, off, offName, cpuNote(rounds, side, off), ...notes),
    target: ratioTo('at least', atLeast),
  }
}

/** Reports how many cores other processes used in the median round, when that is much. */
export function busyNote(rounds: Record<string, readonly { otherCores: number | null }[]>): string | undefined {
  const cores = median(
    Object.values(rounds).flatMap((results) => results.flatMap(({ otherCores }) => otherCores ?? [])),
  )
  return cores === null || cores <= BUSY_CORES
    ? undefined
    : `the machine was busy otherwise with ${cores.toFixed(1)} cores: measure again`
}

/** Describes what went wrong on either side. A figure with any fault cannot be trusted. */
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

/** How many requests of a stream were answered well, and what happened to the others. */
export function outcomesOf({ name, ok, offered, statuses, lost, unanswered, unsent }: StreamResult): string {
  const bad = ok === offered ? '' : ` (${JSON.stringify(statuses)}, ${lost} lost, ${unanswered + unsent} unanswered)`
  return `${name} ${ok}/${offered}${bad}`
}

export type Measure = (result: LoadResult) => number
export const cpuUs: Measure = (result) => result.serverCpuUsPerRequest ?? Number.NaN
/** Of the primary's thread. */
export const mainCpuUs: Measure = (result) => result.serverMainCpuUsPerRequest ?? Number.NaN
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
