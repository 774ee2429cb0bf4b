import type { Finding } from './finding.ts'
import { type Observed, observe, type RunningProcess, type SourceFacts } from './observed.ts'

/** The report that `/system/lint` answers with and `npm run lint:architecture` prints. */
export interface LintReport {
  /** True when no finding is an error. */
  ok: boolean
  /** Sorted by file and line. */
  findings: Finding[]
  /** The numbers of what was checked: files of plugins and migrations, registered routes, names of events. */
  checked: { plugins: number; migrations: number; routes: number; events: number }
  /** The differences between the running process and its sources; left out when no process was given. */
  observed?: Observed
}

/** @param running the state of a process that runs these sources */
export function reportOf(facts: SourceFacts, running?: RunningProcess): LintReport {
  const { findings, checked } = facts
  return {
    ok: findings.every(({ severity }) => severity !== 'error'),
    findings,
    checked,
    ...(running ? { observed: observe(facts, running) } : {}),
  }
}
