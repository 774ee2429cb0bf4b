import { kept, sparkline } from './charts.js'
import { count, duration } from './format.js'
import { html, nothing } from './lit-html.js'
import { empty } from './parts.js'
import { View } from './view.js'

/** The time that a chart covers, seconds. */
const CHART_SECONDS = 120
const COLUMNS = {
  call: 'Call',
  calls: 'Per second',
  minute_calls: 'Last minute',
  minute_errors: 'Errors',
  minute_refused: 'Refused',
  p50_ms: 'p50',
  p95_ms: 'p95',
  p99_ms: 'p99',
}

/** Latencies and errors of tool calls, and the health of the tools. */
export class ToolsView extends View {
  #tools = {}
  /** Of each call: its last figures, and the p95 of the last seconds. */
  #series = new Map()
  /** Of the last minute, as many as are counted. */
  #seconds = 0
  #sortBy = 'call'
  #isDescending = false

  constructor(page) {
    super(page, 'Tools', 'tools', 500)
  }

  onHello({ status }, isOtherProcess) {
    if (isOtherProcess) this.#series.clear()
    this.#learn(status)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ calls, calls_seconds: seconds, status }) {
    if (status !== undefined) this.#learn(status)
    this.#seconds = seconds
    this.#series = new Map(
      calls.map((figures) => {
        const before = this.#series.get(figures.call)?.values ?? []
        return [figures.call, { figures, values: kept(before, figures.second_p95_ms, CHART_SECONDS) }]
      }),
    )
    this.paint()
  }

  #learn({ tools }) {
    this.#tools = tools
    this.badge = String(Object.values(tools).filter(isIll).length || '')
    this.paint()
  }

  #sort(key) {
    this.#isDescending = key === this.#sortBy ? !this.#isDescending : key !== 'call'
    this.#sortBy = key
    this.draw()
  }

  content() {
    const list = [...this.#series.values()].sort((a, b) => {
      const [x, y] = [a.figures[this.#sortBy], b.figures[this.#sortBy]]
      const order = x < y ? -1 : x > y ? 1 : a.figures.call < b.figures.call ? -1 : 1
      return this.#isDescending ? -order : order
    })
    const hint = 'Every call of every tool is measured: send the process a request, and its calls appear here.'
    return html`
      <div class="card"><ul class="health" aria-label="Health of the tools">${Object.entries(this.#tools).map(healthOf)}</ul></div>
      <div class="card scrolls">
        ${list.length === 0 ? empty('No tool was called in the last minute', hint) : this.#table(list)}
        <p class="note">${this.#seconds < 60 ? `Counted for ${this.#seconds} s so far. ` : ''}Percentiles are those of the last minute, over all threads. A few calls a second are this page’s own:
          registry.get…, event_bus.getTopology. Refused are calls that failed by their caller’s fault, such as a violated constraint:
          the tool has answered as it should.</p>
      </div>`
  }

  #table(list) {
    const direction = this.#isDescending ? 'descending' : 'ascending'
    const headings = Object.entries(COLUMNS).map(
      ([key, text]) => html`
      <th scope="col" class=${key === 'call' ? '' : 'number'} aria-sort=${key === this.#sortBy ? direction : nothing}>
        <button class="sort" type="button" @click=${() => this.#sort(key)}>${text}</button></th>`,
    )
    return html`
      <table class="calls stacked">
        <thead><tr>${headings}<th scope="col" class="chart">p95, two minutes</th></tr></thead>
        <tbody>${list.map(rowOf)}</tbody>
      </table>`
  }
}

/** What it refused by its caller's fault keeps the muted colour. */
const TONES = { OK: 'ok', FAIL: 'warn' }

const healthOf = ([name, { status, message, fault }]) => html`
  <li class="state" data-tone=${fault === 'caller' ? nothing : (TONES[status] ?? 'bad')}>
    <span class="dot" aria-hidden="true"></span><strong>${name}</strong> ${status}
    <span class="muted">${fault === 'caller' ? 'by its caller’s fault: ' : ''}${status === 'OK' ? '' : message}</span>
  </li>`

function rowOf({ figures, values }) {
  const peak = Math.max(0, ...values)
  const [, ...columns] = Object.entries(COLUMNS)
  const text = (key) => (key.endsWith('_ms') ? duration : count)(figures[key])
  return html`
    <tr data-errors=${figures.minute_errors > 0 ? 'true' : nothing}>
      <th scope="row"><code>${figures.call}</code></th>
      ${columns.map(([key, label]) => html`<td class="number" data-label=${label}>${text(key)}</td>`)}
      <td class="chart">${sparkline(values, { length: CHART_SECONDS })}<span class="peak">${peak === 0 ? '' : `peak ${duration(peak)}`}</span></td>
    </tr>`
}

/** Whether somebody has to look at a tool: what it refused by its caller's fault, such as an e-mail that is taken, is no alarm. */
export function isIll({ fault }) {
  return fault === 'tool'
}
