import { el, empty, setAttribute, setText } from '/system/dashboard/dom.js'
import { Sparkline } from './charts.js'
import { count, duration } from './format.js'

/** The time that a chart covers, seconds. */
const CHART_SECONDS = 120
const COLUMNS = [
  ['call', 'Call', ''],
  ['calls', 'Per second', 'number'],
  ['minute_calls', 'Last minute', 'number'],
  ['minute_errors', 'Errors', 'number'],
  ['minute_refused', 'Refused', 'number'],
  ['p50_ms', 'p50', 'number'],
  ['p95_ms', 'p95', 'number'],
  ['p99_ms', 'p99', 'number'],
]

/** Latencies and errors of tool calls, and the health of the tools. */
export class ToolsView {
  title = 'Tools'
  badge = ''
  #tools = {}
  #series = new Map()
  #sortBy = 'call'
  #isDescending = false
  #chips = el('ul.health', { 'aria-label': 'Health of the tools' })
  #body = el('tbody')
  #headings = new Map()
  #none = empty(
    'No tool was called in the last minute',
    el('p', {}, 'Every call of every tool is measured: send the process a request, and its calls appear here.'),
  )
  #table
  #paint

  constructor(page) {
    this.#paint = page.painter.job(() => this.#draw(), 500)
    const heads = COLUMNS.map(([key, text, kind]) => {
      const button = el('button.sort', { type: 'button', click: () => this.#sort(key) }, text)
      const head = el('th', { scope: 'col', class: kind }, button)
      this.#headings.set(key, head)
      return head
    })
    heads.push(el('th.chart', { scope: 'col' }, 'p95, two minutes'))
    this.#table = el('table.calls', {}, el('thead', {}, el('tr', {}, ...heads)), this.#body)
    this.element = el(
      'section.view.tools',
      { 'aria-label': 'Tools' },
      el('div.card', {}, this.#chips),
      el(
        'div.card.scrolls',
        {},
        this.#none,
        this.#table,
        el(
          'p.note',
          {},
          'Percentiles are those of the last minute, over all threads. A few calls a second are this page’s own: registry.get…, event_bus.getTopology. Refused are calls that failed by their caller’s fault, such as a violated constraint: the tool has answered as it should.',
        ),
      ),
    )
    this.#sort('call', false)
  }

  onHello({ status }, isOtherProcess) {
    if (isOtherProcess) this.#series.clear()
    this.#learn(status)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ calls, status }) {
    if (status !== undefined) this.#learn(status)
    const seen = new Set()
    for (const figures of calls) {
      seen.add(figures.call)
      const series = this.#series.get(figures.call) ?? newSeries(figures.call)
      this.#series.set(figures.call, series)
      series.figures = figures
      series.chart.push(figures.second_p95_ms)
    }
    for (const call of this.#series.keys()) if (!seen.has(call)) this.#series.delete(call)
    this.#paint()
  }

  #learn({ tools }) {
    this.#tools = tools
    const ill = Object.values(tools).filter(isIll).length
    this.badge = ill === 0 ? '' : String(ill)
    this.#paint()
  }

  show() {
    this.#paint(true)
  }

  #sort(key, isDescending = key === this.#sortBy ? !this.#isDescending : key !== 'call') {
    this.#sortBy = key
    this.#isDescending = isDescending
    for (const [each, head] of this.#headings) {
      setAttribute(head, 'aria-sort', each !== key ? null : isDescending ? 'descending' : 'ascending')
    }
    this.#paint(true)
  }

  #draw() {
    if (!this.element.isConnected) return
    this.#drawHealth()
    const list = [...this.#series.values()].sort((a, b) => {
      const [x, y] = [a.figures[this.#sortBy], b.figures[this.#sortBy]]
      const order = x < y ? -1 : x > y ? 1 : a.figures.call < b.figures.call ? -1 : 1
      return this.#isDescending ? -order : order
    })
    this.#none.hidden = list.length > 0
    this.#table.hidden = list.length === 0
    list.forEach((series, n) => {
      if (this.#body.children[n] !== series.row) this.#body.insertBefore(series.row, this.#body.children[n] ?? null)
      fill(series)
    })
    while (this.#body.children.length > list.length) this.#body.lastChild.remove()
  }

  #drawHealth() {
    const shape = JSON.stringify(this.#tools)
    if (this.#chips.dataset.shape === shape) return
    this.#chips.dataset.shape = shape
    this.#chips.replaceChildren(
      ...Object.entries(this.#tools).map(([name, { status, message, fault }]) =>
        el(
          'li',
          { class: `state state-${colourOf(status, fault)}` },
          el('span.dot', { 'aria-hidden': 'true' }),
          el('strong', {}, name),
          ` ${status}`,
          fault === 'caller' ? el('span.muted', {}, ' by its caller’s fault:') : null,
          status !== 'OK' && message ? el('span.muted', {}, ` ${message}`) : null,
        ),
      ),
    )
  }
}

function colourOf(status, fault) {
  if (status === 'OK') return 'ok'
  if (fault === 'caller') return 'refused'
  return status === 'FAIL' ? 'warn' : 'bad'
}

function newSeries(call) {
  const cells = COLUMNS.slice(1).map(([, label, kind]) => el('td', { class: kind, 'data-label': label }))
  const chart = new Sparkline(CHART_SECONDS)
  const peak = el('span.peak')
  const row = el(
    'tr',
    {},
    el('th', { scope: 'row' }, el('code', {}, call)),
    ...cells,
    el('td.chart', {}, chart.element, peak),
  )
  return { row, cells, chart, peak, figures: null }
}

function fill({ row, cells, chart, peak, figures }) {
  const { calls, minute_calls, minute_errors, minute_refused, p50_ms, p95_ms, p99_ms } = figures
  const texts = [
    count(calls),
    count(minute_calls),
    count(minute_errors),
    count(minute_refused),
    duration(p50_ms),
    duration(p95_ms),
    duration(p99_ms),
  ]
  for (const [n, text] of texts.entries()) setText(cells[n], text)
  setAttribute(row, 'data-errors', minute_errors > 0 ? 'true' : null)
  setText(peak, chart.peak === 0 ? '' : `peak ${duration(chart.peak)}`)
  chart.paint()
}

/** Whether somebody has to look at a tool: what it refused by its caller's fault, such as an e-mail that is taken, is no alarm. */
export function isIll({ fault }) {
  return fault === 'tool'
}
