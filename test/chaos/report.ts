import type { Outcome } from '../support/ledger.ts'
import type { ChaosArguments } from './arguments.ts'
import type { Death } from './deaths.ts'
import type { Fault } from './schedule.ts'
import { countOf, listed, tableOf } from './table.ts'
import type { Finding, Verdict } from './verdict.ts'

/** The outcome of a run, as `--json` writes it. */
export interface Report {
  readonly options: ChaosArguments
  readonly node: string
  /** Seconds from the end of the faults until everything had settled. */
  readonly drainSeconds: number
  /** ISO 8601 UTC. */
  readonly startedAt: string
  /** `atMs` here and in the deaths: milliseconds after the start. */
  readonly faults: readonly (Fault & { outcome: Outcome })[]
  readonly deaths: readonly (Omit<Death, 'timeMs'> & { atMs: number })[]
  readonly requests: Record<string, number>
  readonly users: Verdict['users']
  readonly events: Verdict['events']
  readonly trees: Verdict['trees']
  readonly longestGapMs: number
  readonly p99Ms: { user: number | null; count: number | null }
  readonly peakMemoryMib: number | null
  /** What is wrong beside lost writes, lost events and broken trees. */
  readonly faultsOfProcess: readonly string[]
  readonly findings: readonly Finding[]
}

/** Findings that are shown; the JSON has all. */
const SHOWN_FINDINGS = 20
/** Faults that are named beside a death that none of them seems to have caused. */
const EXPLAINED_WITHIN_MS = 5000

export function isPassed({ faultsOfProcess, findings }: Report): boolean {
  return faultsOfProcess.length === 0 && findings.length === 0
}

/** The report as a table that reads on a terminal and, pasted, in Markdown. */
export function formatReport(report: Report): string {
  const { options, users, events, trees, faults, deaths, p99Ms } = report
  const total = sum(report.requests)
  const refused = faults.filter(({ outcome }) => outcome === 503).length
  const rows: [string, string][] = [
    ['seed', String(options.seed)],
    ['seconds', `${options.seconds}, and ${report.drainSeconds.toFixed(1)} until all had settled`],
    ['lanes', String(options.lanes)],
    ['faults', `${faults.length}, refused ${refused}: ${listed(countOf(faults.map(({ kind }) => kind)))}`],
    ['lanes killed', `${deaths.length}: ${listed(countOf(deaths.map(({ cause }) => cause)))}`],
    ['requests', `${total}: ${listed(report.requests)}`],
    ['answered with success', total === 0 ? '–' : `${((succeeded(report.requests) / total) * 100).toFixed(2)} %`],
    ['longest time without success', `${Math.round(report.longestGapMs)} ms`],
    ['p99 of a count, of a sign-up', `${milliseconds(p99Ms.count)}, ${milliseconds(p99Ms.user)}`],
    ['most memory', report.peakMemoryMib === null ? 'not measured' : `${report.peakMemoryMib} MiB`],
    ['acknowledged users', String(users.acknowledged)],
    ['… lost', String(users.lost)],
    ['unacknowledged users', `${users.unacknowledged}, of which in the database ${users.thereAllTheSame}`],
    ['acknowledged events', String(events.acknowledged)],
    ['accepted events, children included', String(events.accepted)],
    ['… handled', `${events.handled}, more than once ${events.handledMoreThanOnce}`],
    ['… dead letters', `${events.deadLetters}, of which not meant to be ${events.innocentDeadLetters}`],
    ['… lost', String(events.lost)],
    ['causal trees', String(trees.whole + trees.broken)],
    ['… broken', String(trees.broken)],
  ]
  const shown = report.findings.slice(0, SHOWN_FINDINGS).map(({ what, id, problem }) => `! ${what} ${id}: ${problem}`)
  const hidden = report.findings.length - shown.length
  return [
    ...tableOf('chaos', rows),
    ...deaths.filter(({ cause }) => cause === 'other').map((death) => unexplained(death, faults)),
    ...report.faultsOfProcess.map((fault) => `! ${fault}`),
    ...shown,
    ...(hidden > 0 ? [`! and ${hidden} more`] : []),
    isPassed(report) ? 'Nothing was lost.' : `Failed: repeat it with --seed ${options.seed}`,
  ].join('\n')
}

/** What ended a lane that no fault had struck? The faults just before it may tell. */
function unexplained({ atMs, message, inFlight }: Report['deaths'][number], faults: Report['faults']): string {
  const before = faults.filter((fault) => fault.atMs <= atMs && fault.atMs > atMs - EXPLAINED_WITHIN_MS)
  const told = before.map((fault) => `${fault.kind} at ${seconds(fault.atMs)}`)
  return `  no fault explains, at ${seconds(atMs)}: ${message}; in flight: ${listed(countOf(inFlight))}; before: ${told.join(', ') || 'none'}`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function succeeded(requests: Record<string, number>): number {
  return sum(Object.fromEntries(Object.entries(requests).filter(([outcome]) => /^2\d\d$/.test(outcome))))
}

function milliseconds(value: number | null): string {
  return value === null ? '–' : `${value.toFixed(1)} ms`
}
