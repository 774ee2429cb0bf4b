import type { ChaosArguments } from './arguments.ts'
import type { Finding, Verdict } from './verdict.ts'

/** The outcome of a run, as `--json` writes it. */
export interface Report {
  readonly options: ChaosArguments
  readonly node: string
  /** Seconds from the end of the faults until everything had settled. */
  readonly drainSeconds: number
  readonly faults: Record<string, number>
  /** Those that found no lane up, or their plugin set aside. */
  readonly refusedFaults: number
  readonly deaths: { byKind: Record<string, number>; unexplained: string[] }
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

export function isPassed({ faultsOfProcess, findings }: Report): boolean {
  return faultsOfProcess.length === 0 && findings.length === 0
}

/** The report as a table that reads on a terminal and, pasted, in Markdown. */
export function formatReport(report: Report): string {
  const { options, users, events, trees, deaths, p99Ms } = report
  const total = sum(report.requests)
  const rows: [string, string][] = [
    ['seed', String(options.seed)],
    ['seconds', `${options.seconds}, and ${report.drainSeconds.toFixed(1)} until all had settled`],
    ['lanes', String(options.lanes)],
    ['faults', `${sum(report.faults)}, refused ${report.refusedFaults}: ${listed(report.faults)}`],
    ['lanes killed', `${sum(deaths.byKind)}: ${listed(deaths.byKind)}`],
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
  const width = Math.max(...rows.map(([name]) => name.length))
  const valueWidth = Math.max(...rows.map(([, value]) => value.length))
  const line = (name: string, value: string) => `| ${name.padEnd(width)} | ${value.padEnd(valueWidth)} |`
  const shown = report.findings.slice(0, SHOWN_FINDINGS).map(({ what, id, problem }) => `! ${what} ${id}: ${problem}`)
  const hidden = report.findings.length - shown.length
  return [
    line('chaos', ''),
    `| ${'-'.repeat(width)} | ${'-'.repeat(valueWidth)} |`,
    ...rows.map(([name, value]) => line(name, value)),
    ...deaths.unexplained.map((message) => `  a death that no fault explains: ${message}`),
    ...report.faultsOfProcess.map((fault) => `! ${fault}`),
    ...shown,
    ...(hidden > 0 ? [`! and ${hidden} more`] : []),
    isPassed(report) ? 'Nothing was lost.' : `Failed: repeat it with --seed ${options.seed}`,
  ].join('\n')
}

function listed(counts: Record<string, number>): string {
  const entries = Object.entries(counts)
  return entries.length === 0 ? 'none' : entries.map(([name, count]) => `${name} ${count}`).join(', ')
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function succeeded(requests: Record<string, number>): number {
  return sum(Object.fromEntries(Object.entries(requests).filter(([outcome]) => /^2\d\d$/.test(outcome))))
}

function milliseconds(value: number | null): string {
  return value === null ? '–' : `${value.toFixed(1)} ms`
}
