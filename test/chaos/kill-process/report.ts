import type { ChaosArguments } from '../arguments.ts'
import { countOf, listed, tableOf } from '../table.ts'
import type { KillKind } from './kills.ts'
import { FAULTS, type Verdict } from './verdict.ts'

/** The outcome of a run, as `--json` writes it. */
export interface KillReport {
  readonly options: ChaosArguments
  readonly node: string
  /** Seconds from the last write until nothing waited in the log. */
  readonly drainSeconds: number
  readonly killed: readonly KillKind[]
  /** How often the guardian ended after too many deaths within a minute, and was started again. */
  readonly gaveUp: number
  readonly outcomes: Record<string, number>
  readonly longestGapMs: number
  /** Dead letters of bad checks that were edited and replayed, and deleted. */
  readonly healed: { readonly edited: number; readonly deleted: number }
  /** What is wrong beside data. */
  readonly faultsOfProcess: readonly string[]
  readonly verdict: Verdict
}

const LOG_NAMES = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL, two processes',
  redis: 'Redis, rows in PostgreSQL, two processes',
} as const

/** Findings of one kind that are shown; the JSON has all. */
const SHOWN = 10

export function isKillPassed({ faultsOfProcess, verdict }: KillReport): boolean {
  return faultsOfProcess.length === 0 && FAULTS.every((name) => verdict.faults[name].length === 0)
}

export function formatKillReport(report: KillReport): string {
  const { options, killed, verdict, outcomes } = report
  const { faults, acknowledged, rows, events, repeats, setAside } = verdict
  const shown = FAULTS.flatMap((name) => faults[name].slice(0, SHOWN).map((what) => `! ${name}: ${what}`))
  return [
    ...tableOf('kills of the process', [
      ['seed', String(options.seed)],
      ['events in', LOG_NAMES[options.log]],
      ['seconds', `${options.seconds}, and ${report.drainSeconds.toFixed(1)} until all had settled`],
      ['kills', `${killed.length}: ${listed(countOf(killed))}`],
      ['the guardian gave up, and was started again', String(report.gaveUp)],
      ['requests', listed(outcomes)],
      ['longest time without success', `${Math.round(report.longestGapMs)} ms`],
      ['acknowledged', String(acknowledged)],
      ['rows', String(rows)],
      ['events', `${events}, handled again ${repeats}`],
      ['bad checks', `${report.healed.edited} edited and replayed, ${report.healed.deleted} deleted`],
      ['of these in flight at three deaths, and set aside as dead letters', String(setAside)],
      ...FAULTS.map((name): [string, string] => [name, String(faults[name].length)]),
    ]),
    ...report.faultsOfProcess.map((fault) => `! ${fault}`),
    ...shown,
    isKillPassed(report) ? 'Nothing was lost.' : `Failed: repeat it with --seed ${options.seed}`,
  ].join('\n')
}
