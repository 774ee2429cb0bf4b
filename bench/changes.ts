import { readFileSync } from 'node:fs'
import { UsageFault } from '../src/core/config/arguments.ts'
import type { Row } from './bench-case.ts'
import { formatGrid } from './table.ts'

/** What one run has written to `bench/results`, as far as it is compared. */
export interface EarlierRun {
  startedAt: string
  /** Runs did not always write it. */
  command?: string
  machine: { cpu: string; node: string }
  rows: Row[]
}

/** @throws UsageFault for a file that no run has written */
export function readRun(path: string): EarlierRun {
  let run: Partial<EarlierRun>
  try {
    run = JSON.parse(readFileSync(path, 'utf8')) as Partial<EarlierRun>
  } catch (error) {
    throw new UsageFault(`--compare: ${path} cannot be read: ${(error as Error).message}`)
  }
  if (!Array.isArray(run.rows) || run.machine === undefined)
    throw new UsageFault(`--compare: ${path} is no file of results`)
  return run as EarlierRun
}

/**
 * What has changed since an earlier run. Ratios to a baseline of the same run are compared where both have one: the machine is in both.
 * Figures alone differ with the machine.
 */
export function formatChanges(before: readonly Row[], now: readonly Row[]): string {
  const earlier = new Map(before.map((row) => [keyOf(row), row]))
  const lines = now.map((row) => {
    const then = earlier.get(keyOf(row))
    earlier.delete(keyOf(row))
    const byRatio = row.ratio !== null && then?.ratio != null
    const [was, is] = byRatio ? [then.ratio, row.ratio] : [then?.heddle ?? null, row.heddle]
    const unit = byRatio ? '×' : row.unit
    return [row.label, against(row), text(was, unit), text(is, unit), changeOf(was, is)]
  })
  const gone = [...earlier.values()].map((row) => [
    row.label,
    against(row),
    text(row.ratio ?? row.heddle, row.ratio === null ? row.unit : '×'),
    '–',
    'not run',
  ])
  return formatGrid([['case', 'against', 'before', 'now', 'change'], ...lines, ...gone])
}

/** Some cases compare one figure with several baselines. */
const keyOf = ({ label, baselineName }: Row): string => `${label}\n${baselineName}`
const against = ({ baselineName, ratio }: Row): string => (ratio === null ? '–' : (baselineName ?? '–'))
const text = (value: number | null, unit: string): string =>
  value === null ? '–' : `${value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)} ${unit}`

function changeOf(was: number | null, is: number | null): string {
  if (was === null) return is === null ? '–' : 'new'
  if (is === null || was === 0) return '–'
  const percent = (is / was - 1) * 100
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(0)} %`
}
