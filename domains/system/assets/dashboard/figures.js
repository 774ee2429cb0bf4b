import { kept, sparkline } from './charts.js'
import { countOf } from './dead-letters.js'
import { bytes, count, duration, plural, rate } from './format.js'
import { html, nothing, render } from './lit-html.js'
import { addressOfSearch, REQUESTS } from './page.js'

const CHART_SECONDS = 60
/** Each leads to the section that tells more. The scale of a chart ends at the second value of it, or more. */
const FIGURES = {
  requests: ['Requests a second', REQUESTS, 10],
  failed: ['Failed', addressOfSearch('status:failed'), 4],
  slow: ['p95', '/system/dashboard#plugins', 10],
  lanes: ['Lanes ready', '/system/dashboard#lanes'],
  letters: ['Dead letters', '/system/dashboard#letters'],
  memory: ['Memory', '/system/dashboard#charts'],
}

/** Six figures of what the process does right now. */
export class Figures {
  #element
  /** By name: text, further text, and state. */
  #told = {}
  #charts = { requests: [], failed: [], slow: [] }
  /** Of how many seconds a figure is, by its name. */
  #spans = {}
  #readyLanes = new ReadyLanes()

  constructor(element) {
    this.#element = element
    this.#draw()
  }

  onHello({ lanes }) {
    this.#readyLanes.begin(lanes)
    this.#tellLanes(lanes)
    this.#draw()
  }

  onSecond({ work, lanes, process }) {
    const failures = {
      requests: work.minute_failed_requests,
      deliveries: work.minute_failed_deliveries,
      jobs: work.minute_failed_jobs,
      deaths: work.minute_deaths,
    }
    const failed = Object.values(failures).reduce((sum, value) => sum + value, 0)
    this.#readyLanes.look(lanes)
    this.#tellLanes(lanes)
    const percentiles = `p50 ${duration(work.minute_p50_ms)} · p99 ${duration(work.minute_p99_ms)}`
    const requestsIn = work.minute_seconds
    Object.assign(this.#told, {
      requests: [rate(work.requests), `${count(work.minute_requests)} in ${spanOf(requestsIn)}`],
      failed: [count(failed), whatFailed(failures), failed > 0 ? 'bad' : nothing],
      slow: [duration(work.minute_p95_ms), percentiles],
      memory: [bytes(process.rss_bytes), `${process.cpu_percent} % of a core`],
    })
    this.#spans = { failed: work.failed_seconds, slow: requestsIn }
    const values = { requests: work.requests, failed: work.failed, slow: work.p95_ms }
    for (const [name, chart] of Object.entries(this.#charts))
      this.#charts[name] = kept(chart, values[name], CHART_SECONDS)
    this.#draw()
  }

  #tellLanes(lanes) {
    const { ready, all } = this.#readyLanes
    const inFlight = lanes.reduce((sum, lane) => sum + lane.requests_in_flight + lane.deliveries_in_flight, 0)
    this.#told.lanes = [`${ready} of ${all}`, `${count(inFlight)} in flight`, ready < all ? 'bad' : nothing]
  }

  onLetters(letters) {
    const subscribers = new Set(letters.map(({ subscriber }) => subscriber)).size
    const whose = letters.length === 0 ? 'nothing is waiting' : `of ${plural(subscribers, 'subscriber')}`
    this.#told.letters = [countOf(letters), whose, letters.length > 0 ? 'warn' : nothing]
    this.#draw()
  }

  #draw() {
    const figures = Object.entries(FIGURES).map(([name, [label, href, least]]) => {
      const [text, more, state] = this.#told[name] ?? ['–', '', nothing]
      const values = this.#charts[name]
      return html`
        <li class="figure" data-state=${state} data-tone=${state}><a href=${href}>
          <span>${label}${name in this.#spans ? `, last ${spanOf(this.#spans[name]).replace(/^a /, '')}` : ''}</span><strong>${text}</strong><small title=${more}>${more}</small>
          ${values === undefined ? nothing : sparkline(values, { length: CHART_SECONDS, least: Number(least) })}
        </a></li>`
    })
    render(html`<ul>${figures}</ul>`, this.#element)
  }
}

/** As much of the last minute as is known. */
const spanOf = (seconds) => (seconds >= 60 ? 'a minute' : `${seconds} s`)

function whatFailed({ requests, deliveries, jobs, deaths }) {
  const parts = [
    [requests, 'request'],
    [deliveries, 'delivery', 'deliveries'],
    [jobs, 'job', 'jobs'],
    [deaths, 'lane died', 'lanes died'],
  ]
  const shown = parts.filter(([number]) => number > 0).map(([number, ...words]) => plural(number, ...words))
  return shown.length === 0 ? 'nothing' : shown.join(' · ')
}

/** Seconds for which a lane may be busy before it counts as not ready: a long turn of its loop is no fault. */
const GRACE_SECONDS = 2

/** How many of the regular lanes are ready. A lane that was ready and does not answer for a moment still is. */
class ReadyLanes {
  ready = 0
  all = 0
  /** Seconds since each lane was seen well. A lane that was never seen well is not in it. */
  #unwell = new Map()

  /** The first look: whoever is up counts as well. */
  begin(lanes) {
    this.#unwell.clear()
    this.#look(lanes, ({ state }) => state === 'ready')
  }

  /** Once a second. */
  look(lanes) {
    for (const [index, seconds] of this.#unwell) this.#unwell.set(index, seconds + 1)
    this.#look(lanes, ({ state, responsive }) => state === 'ready' && responsive)
  }

  #look(lanes, isWell) {
    const regular = lanes.filter(({ role }) => role === 'regular')
    for (const lane of regular) if (isWell(lane)) this.#unwell.set(lane.index, 0)
    this.all = regular.length
    this.ready = regular.filter(({ index }) => this.#unwell.get(index) <= GRACE_SECONDS).length
  }
}
