// Bars of what the bench has seen of heddle and its peers, as SVG.

export const THEMES = ['light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

/** One server, and its figures by the first word of their column: 1, 8, 64 and 512 connections, requests a second, MB. */
export interface Side {
  name: string
  figures: Map<string, number[]>
}

/** What is drawn: a column of the table, and which of the figures that stand in it. */
const PANELS = [
  { title: 'requests a second, 64 connections', column: '64', n: 0, isMoreBetter: true },
  { title: 'µs of CPU a request, 64 connections', column: '64', n: 1, isMoreBetter: false },
  { title: 'µs of CPU a request, 1 connection', column: '1', n: 1, isMoreBetter: false },
  { title: 'MB after the load', column: 'MB', n: 1, isMoreBetter: false },
] as const

const COLOURS = {
  light: { text: '#1f2328', muted: '#626a73', heddle: '#0b6e75', other: '#b9bdc1' },
  dark: { text: '#e6e8ea', muted: '#9aa4ae', heddle: '#5cc5c9', other: '#4a525a' },
} as const

const WIDTH = 860
const NAMES = 0.36
const ROW = 22
const GAP = 44

/** The table of the case `peers` in a file of results; null where the run did not have that case. */
export function gridOfRun(run: { cases?: { name: string; result?: { details: { grid?: string } } }[] }): Side[] | null {
  const grid = run.cases?.find(({ name }) => name === 'peers')?.result?.details.grid
  return grid === undefined ? null : sidesOf(grid)
}

/** The same table, as it stands under its heading in the page of figures. */
export function gridOfPage(page: string): Side[] {
  const [, section] = page.split('\n## Beside its peers\n')
  const grid = /(?:^\|.*\n)+/m.exec(section ?? '')?.[0]
  if (grid === undefined) throw new Error('The page of figures has no table under "Beside its peers"')
  return sidesOf(grid)
}

function sidesOf(grid: string): Side[] {
  const [head, , ...lines] = grid.trim().split('\n').map(cellsOf)
  const columns = head!.map((title) => title.split(/[ :]/)[0]!)
  return lines.map(([name, ...cells]) => ({
    name: name!,
    figures: new Map(cells.map((cell, n) => [columns[n + 1]!, cell.split(' · ').map(numberOf)])),
  }))
}

const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
const numberOf = (text: string): number => Number(text.replaceAll(',', ''))

/** @throws where the table lacks a figure that is drawn */
export function drawPeers(sides: readonly Side[], theme: Theme): string {
  const colours = COLOURS[theme]
  const panelWidth = (WIDTH - GAP) / 2
  const panelHeight = sides.length * ROW + 40
  const panels = PANELS.map((panel, n) => {
    const values = sides.map(({ name, figures }) => {
      const value = figures.get(panel.column)?.[panel.n]
      if (value === undefined || !Number.isFinite(value))
        throw new Error(`There is no figure of ${name} for ${panel.title}`)
      return value
    })
    const most = Math.max(...values)
    const bars = sides.map(({ name }, row) => {
      const y = 30 + row * ROW
      const from = panelWidth * NAMES
      const width = ((panelWidth - from - 56) * values[row]!) / most
      const isOwn = name.startsWith('heddle')
      return [
        text(from - 8, y + 13, name, isOwn ? colours.text : colours.muted, 'end', isOwn),
        `<rect x="${from}" y="${y + 2}" width="${width.toFixed(1)}" height="${ROW - 8}" rx="2" fill="${isOwn ? colours.heddle : colours.other}"/>`,
        text(from + width + 6, y + 13, values[row]!.toLocaleString('en'), colours.text, 'start', isOwn),
      ].join('')
    })
    const better = panel.isMoreBetter ? 'more is better' : 'less is better'
    const title = `${text(0, 14, panel.title, colours.text, 'start', true)}${text(panelWidth, 14, better, colours.muted, 'end', false)}`
    const [x, y] = [(n % 2) * (panelWidth + GAP), Math.floor(n / 2) * panelHeight]
    return `<g transform="translate(${x} ${y})">${title}${bars.join('')}</g>`
  })
  const height = Math.ceil(PANELS.length / 2) * panelHeight - 10
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12">\n<title>heddle beside its peers</title>\n${panels.join('\n')}\n</svg>\n`
}

function text(x: number, y: number, shown: string, fill: string, anchor: 'start' | 'end', isBold: boolean): string {
  const weight = isBold ? ' font-weight="600"' : ''
  return `<text x="${x.toFixed(1)}" y="${y}" fill="${fill}" text-anchor="${anchor}"${weight}>${shown}</text>`
}
