import { el, empty } from '/system/dashboard/dom.js'
import { Chart } from './chart.js'
import { Changes } from './code-changes.js'
import { clock, count, duration, rate } from './format.js'

/** Seconds that the charts show, and keep. */
const SECONDS = 900
const CHARTS = [
  {
    title: 'Requests a second',
    format: rate,
    series: [
      { label: 'all', colour: '--accent', of: ({ work }) => work.requests },
      { label: 'failed', colour: '--bad', of: ({ work }) => work.failed },
    ],
  },
  {
    title: 'Duration of requests',
    format: duration,
    series: [
      { label: 'p50', colour: '--accent', of: ({ work }) => work.p50_ms },
      { label: 'p95', colour: '--violet', of: ({ work }) => work.p95_ms },
    ],
  },
  {
    title: 'Memory',
    format: (mib) => `${count(Math.round(mib))} MiB`,
    series: [{ label: 'resident', colour: '--accent', of: ({ process }) => process.rss_bytes / 2 ** 20 }],
  },
  {
    title: 'Delay of the lanes’ loops',
    format: duration,
    series: [
      {
        label: 'longest',
        colour: '--accent',
        of: ({ lanes }) => lanes.reduce((most, { loop_delay_ms: ms }) => Math.max(most, ms), 0),
      },
    ],
  },
]

/** The last minutes as charts, with every reload, restart and death of a lane as a mark on each. */
export class ChartsView {
  title = 'Charts'
  badge = ''
  #times = []
  #changes = new Changes()
  #charts = CHARTS.map((chart) => new Chart(chart, this.#changes))
  #list = el('ol.plain.changes')
  #listed = ''
  #paint

  constructor(page) {
    this.#paint = page.painter.job(() => this.#draw(), 900)
    this.element = el(
      'section.view.charts',
      { 'aria-label': 'Charts' },
      ...this.#charts.map(({ element }) => element),
      el('div.card', {}, el('h2', {}, 'Reloads, restarts, deaths'), this.#list),
    )
    // The colours of the charts are those of the page.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const chart of this.#charts) chart.forget()
      this.#paint(true)
    })
    new ResizeObserver(() => this.#paint(true)).observe(this.element)
  }

  onHello(hello) {
    this.#changes.onHello(hello)
    this.#paint()
  }

  onSecond(frame) {
    this.#changes.onSecond(frame)
    this.#times.push(frame.at_ms / 1000)
    if (this.#times.length > SECONDS) this.#times.shift()
    for (const chart of this.#charts) chart.push(frame, SECONDS)
    this.#paint()
  }

  show() {
    this.#paint(true)
  }

  #draw() {
    if (!this.element.isConnected || document.hidden) return
    for (const chart of this.#charts) void chart.draw(this.#times)
    const { all } = this.#changes
    const listed = all.map(({ at, text }) => `${at} ${text}`).join()
    if (listed === this.#listed && this.#list.childElementCount > 0) return
    this.#listed = listed
    this.#list.replaceChildren(...(all.length === 0 ? [empty('Nothing has changed')] : all.map(changeItem)))
  }
}

function changeItem({ at, kind, text }) {
  return el(
    'li',
    { class: `change change-${kind}` },
    el('time', { datetime: at }, clock(at).slice(0, 8)),
    el('span', {}, text),
  )
}
