import { isMet, type Row, type Target } from './bench-case.ts'

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
  return `${value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)} ${unit}`
}
