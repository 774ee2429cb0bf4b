import { kept, peakOf, sparkline } from './charts.js'
import { countOf } from './dead-letters.js'
import { bytes, count, duration, plural, rate } from './format.js'
import { LaneStates } from './lane-states.js'
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
  #laneStates = new LaneStates()

  constructor(element) {
    this.#element = element
    this.#draw()
  }

  onHello({ lanes }) {
    this.#laneStates.begin(lanes)
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
    this.#laneStates.look(lanes)
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
    const regular = lanes.filter(({ role }) => role === 'regular')
    const ready = regular.filter((lane) => this.#laneStates.isReady(lane)).length
    const inFlight = lanes.reduce((sum, lane) => sum + lane.requests_in_flight + lane.deliveries_in_flight, 0)
    this.#told.lanes = [
      `${ready} of ${regular.length}`,
      `${count(inFlight)} in flight`,
      ready < regular.length ? 'bad' : nothing,
    ]
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
          <span>${label}${name in this.#spans ? `, last ${spanOf(this.#spans[name]).replace(/^a /, '')}` : ''}</span><strong>${text}</strong><small class="more" title=${more}>${more}</small>
          ${values === undefined ? nothing : sparkline(values, { length: CHART_SECONDS, least: Number(least) })}${values === undefined ? nothing : html`<i class="peak">${peakText(values, name === 'slow' ? duration : rate)}</i>`}
        </a></li>`
    })
    render(html`<ul>${figures}</ul>`, this.#element)
  }
}

/** What the top of a chart stands for. */
const peakText = (values, format) => (peakOf(values) === 0 ? '' : `peak ${format(peakOf(values))}`)

/** As much of the last minute as is known. */
const spanOf = (seconds) => (seconds >= 60 ? 'a minute' : `${seconds} s`)

function whatFailed({ requests, deliveries, jobs, deaths }) {
  const parts = [
    [requests, 'request'],
    [deliveries, 'delivery', 'deliveries'],
    [jobs, 'job run', 'job runs'],
    [deaths, 'lane died', 'lanes died'],
  ]
  const shown = parts.filter(([number]) => number > 0).map(([number, ...words]) => plural(number, ...words))
  return shown.length === 0 ? 'nothing' : shown.join(' · ')
}
