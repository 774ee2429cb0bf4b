// The table of a run, and what has changed since an earlier one.

import { readFileSync } from 'node:fs'
import { UsageFault } from '../src/core/config/command-line.ts'
import { isMet, type Row, type Target } from './bench-case.ts'

/** The median; of an even number of values the mean of the two in the middle; null when there are none. */
export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const HEADINGS = ['case', 'heddle', 'baseline', 'ratio', 'target', 'met?']
const NONE = '–'

/** The rows as a table that reads on a terminal and, pasted, in Markdown. Faults and notes stand below it. */
export function formatTable(rows: readonly Row[]): string {
  const remarks = rows.flatMap((row) => [
    ...row.faults.map((fault) => `! ${row.label}: ${fault}`),
    ...(row.note ? [`  ${row.label}: ${row.note}`] : []),
  ])
  return [formatGrid([HEADINGS, ...rows.map(rowCells)]), ...remarks].join('\n')
}

/** Cells as a table; the first line is its head. */
export function formatGrid(cells: readonly (readonly string[])[]): string {
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)))
  const line = (texts: readonly string[]) =>
    `| ${texts.map((text, column) => text.padEnd(widths[column]!)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [line(cells[0]!), rule, ...cells.slice(1).map(line)].join('\n')
}

function rowCells(row: Row): string[] {
  return [
    row.label,
    figure(row.heddle, row.unit),
    row.baselineName ? `${figure(row.baseline, row.unit)} (${row.baselineName})` : NONE,
    row.ratio === null ? NONE : `${row.ratio.toFixed(2)} ×`,
    describeTarget(row.target),
    verdict(row),
  ]
}

function verdict(row: Row): string {
  const met = isMet(row)
  if (row.target === null && row.heddle !== null) return row.faults.length > 0 ? 'void, see below' : NONE
  if (met === null) return 'not measured'
  if (met) return 'yes'
  return row.faults.length > 0 ? 'void, see below' : 'below target'
}

function describeTarget(target: Target | null): string {
  if (target === null) return NONE
  const { sense, value, unit } = target
  return `${sense} ${unit === '×' ? value.toFixed(2) : value.toLocaleString('en')} ${unit}`
}

function figure(value: number | null, unit: string): string {
  if (value === null) return NONE
  return `${value >= 1000 ? whole(value) : value.toPrecision(3)} ${unit}`
}

/** Without what stands behind the point. */
export const whole = (value: number | null): string => (value === null ? NONE : Math.round(value).toLocaleString('en'))

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
    return [row.label, against(row), figure(was, unit), figure(is, unit), changeOf(was, is)]
  })
  const gone = [...earlier.values()].map((row) => [
    row.label,
    against(row),
    figure(row.ratio ?? row.heddle, row.ratio === null ? row.unit : '×'),
    '–',
    'not run',
  ])
  return formatGrid([['case', 'against', 'before', 'now', 'change'], ...lines, ...gone])
}

/** Some cases compare one figure with several baselines. */
const keyOf = ({ label, baselineName }: Row): string => `${label}\n${baselineName}`
const against = ({ baselineName, ratio }: Row): string => (ratio === null ? '–' : (baselineName ?? '–'))

function changeOf(was: number | null, is: number | null): string {
  if (was === null) return is === null ? '–' : 'new'
  if (is === null || was === 0) return '–'
  const percent = (is / was - 1) * 100
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(0)} %`
}
