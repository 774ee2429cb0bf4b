/** The outcome of a run, for people and as JSON. */
import type { ChaosArguments } from './arguments.ts'
import type { KillKind, TroubleKind } from './faults.ts'
import type { Outcome } from './orders.ts'
import { FAULTS, type Verdict } from './verdict.ts'

/** The outcome of a run, as `--json` writes it. */
export interface Report {
  readonly options: ChaosArguments
  readonly node: string
  /** Seconds from the last write until nothing waited in the log. */
  readonly drainSeconds: number
  readonly struck: readonly { kind: KillKind | TroubleKind; outcome: Outcome }[]
  readonly lanesDied: number
  /** How often the guardian ended after too many deaths within a minute, and was started again. */
  readonly gaveUp: number
  readonly outcomes: Record<string, number>
  readonly longestGapMs: number
  /** Dead letters of bad checks that were edited and replayed, and deleted. */
  readonly healed: { readonly edited: number; readonly deleted: number }
  /** What is wrong beside data. */
  readonly faultsOfProcess: readonly string[]
  readonly verdict: Verdict
  /** Where what the services logged lies, when something is wrong. */
  readonly keptLog: string | null
}

const LOG_NAMES = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL, two processes',
  redis: 'Redis, rows in PostgreSQL, two processes',
} as const

/** Findings of one kind that are shown; the JSON has all. */
const SHOWN = 10

export function isPassed({ faultsOfProcess, verdict }: Pick<Report, 'faultsOfProcess' | 'verdict'>): boolean {
  return faultsOfProcess.length === 0 && FAULTS.every((name) => verdict.faults[name].length === 0)
}

export function formatReport(report: Report): string {
  const { options, struck, verdict, outcomes } = report
  const { faults, acknowledged, rows, events, trees, repeats, setAside } = verdict
  const refused = struck.filter(({ outcome }) => outcome === 503).length
  const shown = FAULTS.flatMap((name) => faults[name].slice(0, SHOWN).map((what) => `! ${name}: ${what}`))
  return [
    ...tableOf(options.killProcess ? 'kills of the process' : 'chaos', [
      ['seed', String(options.seed)],
      ['events in', LOG_NAMES[options.log]],
      ['seconds', `${options.seconds}, and ${report.drainSeconds.toFixed(1)} until all had settled`],
      ['faults', `${struck.length}, refused ${refused}: ${listed(countOf(struck.map(({ kind }) => kind)))}`],
      ['lanes that died', String(report.lanesDied)],
      ['the guardian gave up, and was started again', String(report.gaveUp)],
      ['requests', listed(outcomes)],
      ['longest time without success', `${Math.round(report.longestGapMs)} ms`],
      ['acknowledged', String(acknowledged)],
      ['rows', String(rows)],
      ['events', `${events}, handled again ${repeats}`],
      ['causal trees', String(trees)],
      ['bad checks', `${report.healed.edited} edited and replayed, ${report.healed.deleted} deleted`],
      ['of these in flight at three deaths, and set aside as dead letters', String(setAside)],
      ...FAULTS.map((name): [string, string] => [name, String(faults[name].length)]),
    ]),
    ...report.faultsOfProcess.map((fault) => `! ${fault}`),
    ...shown,
    ...(report.keptLog === null ? [] : [`The log of the services: ${report.keptLog}`]),
    isPassed(report) ? 'Nothing was lost.' : `Failed: repeat it with --seed ${options.seed}`,
  ].join('\n')
}

/** A table that reads on a terminal and, pasted, in Markdown. */
function tableOf(title: string, rows: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(title.length, ...rows.map(([name]) => name.length))
  const valueWidth = Math.max(...rows.map(([, value]) => value.length))
  const line = (name: string, value: string) => `| ${name.padEnd(width)} | ${value.padEnd(valueWidth)} |`
  return [
    line(title, ''),
    `| ${'-'.repeat(width)} | ${'-'.repeat(valueWidth)} |`,
    ...rows.map(([name, value]) => line(name, value)),
  ]
}

/** Name → how often it occurs. */
function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

function listed(counts: Record<string, number>): string {
  const entries = Object.entries(counts)
  return entries.length === 0 ? 'none' : entries.map(([name, count]) => `${name} ${count}`).join(', ')
}
