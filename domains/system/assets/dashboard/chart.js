import { el } from '/system/dashboard/dom.js'

const HEIGHT = 170
const MARKS = { start: '--muted', reload: '--info', 'failed-reload': '--warn', death: '--bad' }
/** Seconds of the time axis at least. */
const LEAST_SECONDS = 60

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
export class Chart {
  element
  #options
  #changes
  #values
  #place = el('div.chart-place')
  #plot = null
  #isLoading = false

  /** @param changes its `all` are the marks */
  constructor(options, changes) {
    this.#options = options
    this.#changes = changes
    this.#values = options.series.map(() => [])
    const { title, series } = options
    this.element = el(
      'figure.card.chart-card',
      {},
      el(
        'figcaption',
        {},
        el('h2', {}, title),
        ...(series.length < 2
          ? []
          : series.map(({ label, colour }) => el('span', { class: `key key${colour}` }, label))),
      ),
      this.#place,
    )
  }

  push(frame, most) {
    for (const [n, { of }] of this.#options.series.entries()) {
      this.#values[n].push(of(frame))
      if (this.#values[n].length > most) this.#values[n].shift()
    }
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
    this.#plot.setData([times, ...this.#values])
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
      padding: [8, 8, 0, 0],
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
          stroke: colour(each.colour),
          fill: n === 0 ? `color-mix(in srgb, ${colour(each.colour)} 10%, transparent)` : undefined,
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
      ctx.strokeStyle = colour(MARKS[kind])
      ctx.fillStyle = colour(MARKS[kind])
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

/** The time of day, in the reader's zone. @param at seconds since the epoch */
function timeOf(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8)
}
