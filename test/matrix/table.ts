import type { Cell } from './cell.ts'
import { FAULTS } from './faults.ts'
import { PLACES } from './places.ts'
import { faultsOf } from './verdict.ts'

/** Cells as a table in Markdown: a place a row, a fault a column; the worst of the cells of a pair. */
export function tableOf(cells: readonly Cell[]): string {
  const row = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`
  const head = row(['', ...FAULTS.map(({ name }) => name)])
  const rule = row(['', ...FAULTS].map(() => '---'))
  const rows = PLACES.map((place) =>
    row([
      place.name,
      ...FAULTS.map((fault) => textOf(cells.filter((cell) => cell.place === place.name && cell.fault === fault.name))),
    ]),
  )
  return [head, rule, ...rows].join('\n')
}

/** The longest gap, milliseconds; `R` where the process was another one afterwards; in bold what is bad. */
function textOf(cells: readonly Cell[]): string {
  if (cells.length === 0) return ''
  const gapMs = Math.max(...cells.map((cell) => cell.gapMs))
  const restarted = cells.some(({ restarts }) => restarts > 0) ? ' R' : ''
  const bad = [...new Set(cells.flatMap(faultsOf))]
  return bad.length > 0 ? `**${bad.join('; ')}**${restarted}` : `${gapMs}${restarted}`
}
