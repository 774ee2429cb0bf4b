import { el, setAttribute, setText } from '/system/dashboard/dom.js'
import { Sparkline } from './charts.js'
import { countOf } from './dead-letters.js'
import { bytes, count, duration, plural, rate } from './format.js'

const CHART_SECONDS = 60
const REQUESTS = '/system/dashboard/requests'
const FAILED = `${REQUESTS}?q=${encodeURIComponent('status:failed')}`

/** Six figures of what the process does right now. Each leads to the section that tells more. */
export class Figures {
  element
  #requests = figure('Requests a second', REQUESTS, true)
  #failed = figure('Failed, last minute', FAILED, true)
  #slow = figure('p95, last minute', '/system/dashboard#plugins', true)
  #lanes = figure('Lanes ready', '/system/dashboard#lanes')
  #letters = figure('Dead letters', '/system/dashboard#letters')
  #memory = figure('Memory', '/system/dashboard#charts')
  #readyLanes = new ReadyLanes()

  constructor() {
    const all = [this.#requests, this.#failed, this.#slow, this.#lanes, this.#letters, this.#memory]
    this.element = el('ul', {}, ...all.map(({ element }) => element))
  }

  onHello({ lanes }) {
    this.#readyLanes.begin(lanes)
    this.#tellLanes(lanes)
  }

  onSecond({ work, lanes, process }) {
    const { minute_failed_requests: requests, minute_failed_deliveries: deliveries, minute_deaths: deaths } = work
    const failed = requests + deliveries + deaths
    tell(this.#requests, rate(work.requests), `${count(work.minute_requests)} in a minute`)
    tell(this.#failed, count(failed), whatFailed(requests, deliveries, deaths), failed > 0 ? 'bad' : null)
    tell(
      this.#slow,
      duration(work.minute_p95_ms),
      `p50 ${duration(work.minute_p50_ms)} · p99 ${duration(work.minute_p99_ms)}`,
    )
    this.#readyLanes.look(lanes)
    this.#tellLanes(lanes)
    tell(this.#memory, bytes(process.rss_bytes), `${process.cpu_percent} % of a core`)
    // The scale of a chart ends at the second value or more.
    for (const [{ chart }, value, least] of [
      [this.#requests, work.requests, 10],
      [this.#failed, work.failed, 4],
      [this.#slow, work.p95_ms, 10],
    ]) {
      chart.push(value)
      chart.paint(least)
    }
  }

  #tellLanes(lanes) {
    const { ready, all } = this.#readyLanes
    const inFlight = lanes.reduce((sum, lane) => sum + lane.requests_in_flight + lane.deliveries_in_flight, 0)
    tell(this.#lanes, `${ready} of ${all}`, `${count(inFlight)} in flight`, ready < all ? 'bad' : null)
  }

  onLetters(letters) {
    const subscribers = new Set(letters.map(({ subscriber }) => subscriber)).size
    const whose = letters.length === 0 ? 'nothing is waiting' : `of ${plural(subscribers, 'subscriber')}`
    tell(this.#letters, countOf(letters), whose, letters.length > 0 ? 'warn' : null)
  }
}

function whatFailed(requests, deliveries, deaths) {
  const parts = [
    [requests, 'request'],
    [deliveries, 'delivery', 'deliveries'],
    [deaths, 'lane died', 'lanes died'],
  ]
  const shown = parts.filter(([number]) => number > 0).map(([number, ...words]) => plural(number, ...words))
  return shown.length === 0 ? 'nothing' : shown.join(' · ')
}

function figure(label, href, hasChart = false) {
  const value = el('strong', {}, '–')
  const more = el('small')
  const chart = hasChart ? new Sparkline(CHART_SECONDS) : null
  const element = el('li.figure', {}, el('a', { href }, el('span', {}, label), value, more, chart?.element))
  return { element, value, more, chart }
}

function tell({ element, value, more }, text, moreText, state = null) {
  setText(value, text)
  setText(more, moreText)
  setAttribute(more, 'title', moreText)
  setAttribute(element, 'data-state', state)
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
