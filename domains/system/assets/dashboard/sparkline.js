import { setAttribute, svg } from '/system/dashboard/dom.js'

const WIDTH = 120
const HEIGHT = 28

/** A chart of the last values: a line with a shade below. For null the line falls to zero. */
export class Sparkline {
  element
  #line = svg('path.spark-line')
  #area = svg('path.spark-area')
  #values = []
  #length

  /** @param {number} length how many values it shows */
  constructor(length = 60, label = '') {
    this.#length = length
    this.element = svg(
      'svg.spark',
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: 'none',
        ...(label === '' ? { 'aria-hidden': 'true' } : { role: 'img', 'aria-label': label }),
      },
      this.#area,
      this.#line,
    )
  }

  push(value) {
    this.#values.push(value ?? 0)
    if (this.#values.length > this.#length) this.#values.shift()
  }

  get peak() {
    return Math.max(0, ...this.#values)
  }

  /** @param least least value that the height of the chart stands for */
  paint(least = 0) {
    const values = this.#values
    if (values.length < 2) return
    const top = Math.max(least, ...values) || 1
    const step = WIDTH / (this.#length - 1)
    const from = WIDTH - (values.length - 1) * step
    const points = values.map((value, n) => {
      const y = HEIGHT - 1.5 - (value / top) * (HEIGHT - 4)
      return `${(from + n * step).toFixed(1)} ${y.toFixed(1)}`
    })
    const line = `M${points.join('L')}`
    setAttribute(this.#line, 'd', line)
    setAttribute(this.#area, 'd', `${line}L${WIDTH} ${HEIGHT}L${from.toFixed(1)} ${HEIGHT}Z`)
  }
}
