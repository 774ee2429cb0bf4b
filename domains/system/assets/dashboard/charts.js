import { clock, clockSeconds, count, duration, rate } from './format.js'
import { laneTitle } from './lane-states.js'
import { html, nothing, svg } from './lit-html.js'
import { empty } from './parts.js'
import { View } from './view.js'

/** Seconds that the charts show, and keep. */
const SECONDS = 900

/** The last values of a chart, with one more. */
export const kept = (values, value, most) => [...values, value].slice(-most)

const CHARTS = [
  {
    title: 'Requests and failures a second',
    format: rate,
    series: [
      { label: 'requests', tone: 'accent', of: ({ work }) => work.requests },
      { label: 'failures', tone: 'bad', of: ({ work }) => work.failed },
    ],
  },
  {
    title: 'Duration of requests',
    format: duration,
    series: [
      { label: 'p50', tone: 'accent', of: ({ work }) => work.p50_ms },
      { label: 'p95', tone: 'violet', of: ({ work }) => work.p95_ms },
    ],
  },
  {
    title: 'Memory',
    format: (mib) => `${count(Math.round(mib))} MiB`,
    series: [{ label: 'resident', tone: 'accent', of: ({ process }) => process.rss_bytes / 2 ** 20 }],
  },
  {
    title: 'Delay of the lanes’ loops',
    format: duration,
    series: [
      {
        label: 'longest',
        tone: 'accent',
        of: ({ lanes }) =>
          lanes.reduce((most, { loop_delay_ms: ms }) => (ms === null ? most : Math.max(most ?? 0, ms)), null),
      },
    ],
  },
]

const HEIGHT = 170
/** What changes are, and the tones of their marks. */
const MARKS = { start: 'muted', reload: 'info', 'failed-reload': 'warn', death: 'bad' }
/** Seconds of the time axis at least. */
const LEAST_SECONDS = 60

/** The last minutes as charts, with every reload, restart and death of a lane as a mark on each. */
export class ChartsView extends View {
  #times = []
  #changes = new Changes()
  #charts = CHARTS.map((chart) => new Chart(chart, this.#changes))

  constructor(page) {
    super(page, 'Charts', 'charts', 900)
    // The colours of the charts are those of the page.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const chart of this.#charts) chart.forget()
      this.paint(true)
    })
    new ResizeObserver(() => this.paint(true)).observe(this.element)
  }

  onHello(hello) {
    this.#changes.onHello(hello)
    this.paint()
  }

  onSecond(frame) {
    this.#changes.onSecond(frame)
    this.#times = kept(this.#times, frame.at_ms / 1000, SECONDS)
    for (const chart of this.#charts) chart.add(frame)
    this.paint()
  }

  draw() {
    super.draw()
    if (this.isShown) for (const chart of this.#charts) void chart.draw(this.#times)
  }

  content() {
    const { all } = this.#changes
    return html`
      ${this.#charts.map((chart) => chart.content())}
      <div class="card">
        <h2>Reloads, restarts, deaths</h2>
        <ol class="changes">${all.length === 0 ? empty('Nothing has changed') : all.map(changeItem)}</ol>
      </div>`
  }
}

const changeItem = ({ at, kind, text }) => html`
  <li class="change" data-tone=${MARKS[kind]}><time datetime=${at}>${clockSeconds(at)}</time><span>${text}</span></li>`

const LIBRARY = '/system/dashboard/uplot.js'

let library = null
let failedImports = 0
/** Loaded when the first chart is shown. Browsers may keep an import that has failed: the next one has an address of its own. */
function loadLibrary() {
  const address = failedImports === 0 ? LIBRARY : `${LIBRARY}?failed=${failedImports}`
  library ??= import(address).then(
    (module) => module.default,
    () => {
      failedImports++
      library = null
      return null
    },
  )
  return library
}

/** One chart with axes: lines over time, and a mark for each change of the code. */
class Chart {
  #options
  #changes
  #values
  #place = document.createElement('div')
  #plot = null
  #isLoading = false

  /** @param changes its `all` are the marks */
  constructor(options, changes) {
    this.#options = options
    this.#changes = changes
    this.#values = options.series.map(() => [])
    this.#place.className = 'chart-place'
  }

  content() {
    const { title, series } = this.#options
    const keys = series.length < 2 ? [] : series
    return html`
      <figure class="card chart-card">
        <figcaption><h2>${title}</h2>${keys.map(({ label, tone }) => html`<span class="key" data-tone=${tone}>${label}</span>`)}</figcaption>
        ${this.#place}
      </figure>`
  }

  add(frame) {
    this.#values = this.#options.series.map(({ of }, n) => kept(this.#values[n], of(frame), SECONDS))
  }

  /** The next one is made anew. */
  forget() {
    this.#plot?.destroy()
    this.#plot = null
  }

  async draw(times) {
    if (this.#isLoading) return
    if (this.#plot === null) {
      this.#isLoading = true
      const Plot = await loadLibrary()
      this.#isLoading = false
      // The next frame tries again.
      if (Plot === null) return
      this.#plot = new Plot(this.#plotOptions(), [[], ...this.#values.map(() => [])], this.#place)
    }
    const width = this.#place.clientWidth
    if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT })
    // Without a moment there are no axes.
    const isEmpty = times.length === 0
    this.#plot.setData(isEmpty ? [[Date.now() / 1000], ...this.#values.map(() => [null])] : [times, ...this.#values])
  }

  #plotOptions() {
    const { series, format } = this.#options
    const style = getComputedStyle(document.documentElement)
    const colour = (name) => style.getPropertyValue(name).trim()
    const font = `11px ${colour('--font')}`
    const axis = {
      stroke: colour('--muted'),
      font,
      grid: { stroke: colour('--border'), width: 1 },
      ticks: { show: false },
    }
    return {
      width: this.#place.clientWidth || 300,
      height: HEIGHT,
      // The last time of the axis stands at its end.
      padding: [8, 30, 0, 0],
      cursor: { y: false, sync: { key: 'heddle' }, drag: { x: false, y: false } },
      legend: { show: true, live: true, markers: { show: false } },
      scales: {
        x: { range: (_plot, least, most) => [Math.min(least, most - LEAST_SECONDS), most] },
        y: { range: (_plot, _least, most) => [0, (most || 1) * 1.1] },
      },
      axes: [
        { ...axis, size: 28, space: 80, values: (_plot, splits) => splits.map(timeOf) },
        { ...axis, size: 62, values: (_plot, splits) => splits.map(format) },
      ],
      series: [
        { label: 'at', value: (_plot, at) => (at === null ? '–' : timeOf(at)) },
        ...series.map((each, n) => ({
          label: each.label,
          stroke: colour(`--${each.tone}`),
          fill: n === 0 ? `color-mix(in srgb, ${colour(`--${each.tone}`)} 10%, transparent)` : undefined,
          width: 1.5,
          spanGaps: true,
          points: { show: false },
          value: (_plot, value) => (value === null ? '–' : format(value)),
        })),
      ],
      hooks: { draw: [(plot) => this.#drawMarks(plot, colour)] },
    }
  }

  #drawMarks(plot, colour) {
    const { ctx, bbox } = plot
    ctx.save()
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio])
    for (const { at, kind } of this.#changes.all) {
      const x = Math.round(plot.valToPos(Date.parse(at) / 1000, 'x', true))
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue
      ctx.strokeStyle = colour(`--${MARKS[kind]}`)
      ctx.fillStyle = colour(`--${MARKS[kind]}`)
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
      ctx.beginPath()
      ctx.arc(x, bbox.top, 3.5 * devicePixelRatio, 0, 2 * Math.PI)
      ctx.fill()
    }
    ctx.restore()
  }
}

/** @param at seconds since the epoch */
const timeOf = (at) => clock(at * 1000).slice(0, 8)

/** Changes that are remembered. */
const CHANGES_MAX = 50

/** Reloads, starts and deaths of lanes, the newest first. */
class Changes {
  all = []

  onHello({ started_at: at, status, lanes }) {
    this.#add(at, 'start', 'The process started')
    this.#learn(status, lanes)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ status, lanes }) {
    this.#learn(status, lanes)
  }

  #learn(status, lanes) {
    const reload = status?.reload
    if (reload !== undefined) {
      if (reload.ok) this.#add(reload.at, 'reload', 'The lanes were reloaded')
      else this.#add(reload.at, 'failed-reload', 'A reload failed: the old code goes on')
    }
    for (const lane of lanes) for (const { at } of lane.deaths) this.#add(at, 'death', `${laneTitle(lane)} died`)
  }

  #add(at, kind, text) {
    if (this.all.some((known) => known.at === at && known.text === text)) return
    this.all.push({ at, kind, text })
    this.all.sort((a, b) => (a.at < b.at ? 1 : -1))
    this.all.length = Math.min(this.all.length, CHANGES_MAX)
  }
}

/** What lies within the lines of a chart without axes. */
export const peakOf = (values) => Math.max(...values.filter((value) => value !== null), 0)

const SPARK_WIDTH = 120
const SPARK_HEIGHT = 28

/**
 * A chart of the last values: a line with a shade below, and a gap where a value is null.
 * @param {(number | null)[]} values
 * @param {{ length: number, least?: number }} scale `length` values have room; `least`: what its height stands for at least
 */
export function sparkline(values, scale) {
  const { length, least = 0 } = scale
  const top = Math.max(least, ...values) || 1
  const step = SPARK_WIDTH / (length - 1)
  const from = SPARK_WIDTH - (values.length - 1) * step
  const runs = [[]]
  values.forEach((value, n) => {
    if (value === null) {
      runs.push([])
      return
    }
    const y = SPARK_HEIGHT - 1.5 - (value / top) * (SPARK_HEIGHT - 4)
    runs.at(-1).push([(from + n * step).toFixed(1), y.toFixed(1)])
  })
  const lineOf = (points) => `M${points.map((point) => point.join(' ')).join('L')}`
  const drawn = runs.filter((points) => points.length > 0)
  // A lone value is a dot.
  const line = drawn.map((points) => `${lineOf(points)}${points.length === 1 ? 'h0.1' : ''}`).join('')
  const area = drawn
    .map((points) => `${lineOf(points)}L${points.at(-1)[0]} ${SPARK_HEIGHT}L${points[0][0]} ${SPARK_HEIGHT}Z`)
    .join('')
  const lines = svg`<path class="spark-area" d=${area}></path><path class="spark-line" d=${line}></path>`
  return html`
    <svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">${values.length < 2 ? nothing : lines}</svg>`
}
