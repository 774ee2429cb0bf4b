import { kept, peakOf, sparkline } from './charts.js'
import { bytes, clock, count, duration, plural, shortId } from './format.js'
import { keyOf, LaneStates, laneTitle } from './lane-states.js'
import { html, nothing } from './lit-html.js'
import { linkToRequest, whenAndAgo } from './page.js'
import { facts } from './parts.js'
import { fetchJson } from './process.js'
import { KeyedList, View } from './view.js'

const CHART_SECONDS = 60
const percent = (value) => `${Math.round(value)} %`
/** What the charts of a thread show, each with what its height stands for at least, and the format of its peak. */
const OF_PRIMARY = [
  ['Thread busy', 100, percent],
  ['CPU, all threads', 100, percent],
  ['Memory', 256 << 20, bytes],
]
const OF_LANE = [
  ['In flight', 4, count],
  ['Loop delay', 20, duration],
  ['Heap', 32 << 20, bytes],
]

/** So many processes of a lane are named. */
const PROCESSES_NAMED = 3

/** The threads of the process, their work, and the black boxes of the lanes that died. */
export class LanesView extends View {
  subject = 'death'
  /** By thread: the values of its three charts. */
  #charts = new Map()
  #deaths = new KeyedList('deaths')
  /** What the deaths are that are shown; null: not known yet. */
  #known = null
  /** Null: not known yet; undefined: the plugin that lists them is not installed. */
  #boxes = null
  /** The deaths that are unfolded, and those of which all steps are shown, by when they were. */
  #open = new Set()
  #whole = new Set()
  /** Null before the process has told. */
  #lanes = null
  #process = null
  #states = new LaneStates()
  #listener = null

  constructor(page) {
    super(page, 'Lanes', '', 500)
  }

  onHello({ lanes, status }) {
    this.#learn(status)
    this.#states.begin(lanes)
    this.#take(lanes)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ lanes, process, status }) {
    this.#learn(status)
    this.#process = process
    this.#states.look(lanes)
    const before = this.#charts
    this.#charts = new Map()
    const keep = (key, values) => {
      const charts = before.get(key) ?? [[], [], []]
      this.#charts.set(
        key,
        charts.map((list, n) => kept(list, values[n], CHART_SECONDS)),
      )
    }
    keep('primary', [process.loop_utilization * 100, process.cpu_percent, process.rss_bytes])
    for (const lane of lanes)
      keep(keyOf(lane), [lane.requests_in_flight + lane.deliveries_in_flight, lane.loop_delay_ms, lane.heap_bytes])
    this.#take(lanes)
  }

  #learn(status) {
    if (status?.listener !== undefined) this.#listener = status.listener
  }

  #take(lanes) {
    this.#lanes = lanes
    const deaths = lanes.flatMap(({ deaths }) => deaths.map(({ at }) => at))
    this.badge = String(deaths.length || '')
    const known = deaths.join()
    if (known !== this.#known && this.element.isConnected) void this.#loadDeaths(known)
    this.paint()
  }

  show() {
    if (this.#lanes !== null) this.#take(this.#lanes)
    super.show()
  }

  async #loadDeaths(known) {
    this.#known = known
    const lanes = known === '' ? [] : await fetchJson('/system/lanes')
    this.#boxes = lanes
      ?.flatMap((lane) => lane.deaths.map((box) => ({ ...box, title: laneTitle(lane) })))
      .sort((a, b) => (a.at < b.at ? 1 : -1))
    this.draw()
    this.seek()
  }

  /** Opens a black box. */
  reveal(at) {
    if (!this.#boxes) return false
    const isKept = this.#boxes.some((box) => box.at === at)
    const text = `Of the death at ${clock(at)} nothing is kept here any more: each lane keeps its last 5.`
    this.page.notices.tell('death', 'warn', isKept ? null : text, true)
    if (!isKept) return true
    this.#open.add(at)
    this.draw()
    const item = this.#deaths.item(at)
    item.scrollIntoView({ block: 'start' })
    item.querySelector('summary').focus()
    return true
  }

  content() {
    return html`
      <div class="lanes">${this.#lanes?.map((lane) => this.#lane(lane))}${this.#process === null ? nothing : this.#primary()}</div>
      <div class="card"><h2>Deaths</h2>${this.#deathList()}</div>`
  }

  #deathList() {
    if (this.#boxes === undefined)
      return html`<p class="note">The plugin that lists deaths (show-lanes) is not installed.</p>`
    const boxes = this.#boxes ?? []
    if (boxes.length === 0) return html`<p class="note">No lane has died.</p>`
    return this.#deaths.show(boxes.map((box) => ({ key: box.at, content: this.#death(box) })))
  }

  #primary() {
    const { loop_utilization, cpu_percent, rss_bytes } = this.#process
    const { library, why } = this.#listener ?? {}
    const served = library === undefined ? '' : `HTTP is served by ${library}${why === null ? '' : ` (${why})`}. `
    return this.#card('primary', 'Primary', {
      state: html`<span class="state">listener, hub, supervisor</span>`,
      meters: OF_PRIMARY,
      values: [percent(loop_utilization * 100), percent(cpu_percent), bytes(rss_bytes)],
      foot: `${served}CPU is in percent of one core: 200 % means that two cores are busy.`,
    })
  }

  #lane(lane) {
    const { state, starved_core_share: share, requests_in_flight, deliveries_in_flight } = lane
    const isStalled = state === 'ready' && !this.#states.isReady(lane)
    const requests = plural(requests_in_flight, 'request')
    const work = deliveries_in_flight === 0 ? requests : `${requests}, ${plural(deliveries_in_flight, 'event')}`
    const isStarved = state === 'ready' && typeof share === 'number'
    const isBad = state === 'dead' || (isStalled && !isStarved)
    const tone = state === 'idle' ? nothing : isBad ? 'bad' : state === 'ready' && !isStarved ? 'ok' : 'warn'
    const shown = isStarved ? `starved: ${Math.round(share * 100)} % of a core` : isStalled ? 'stalled' : state
    const restarts = lane.restarts === 0 ? 'never restarted' : plural(lane.restarts, 'restart')
    const isRunning = state !== 'idle' && state !== 'dead'
    const up = isRunning ? `Up ${duration(Date.now() - Date.parse(lane.started_at))}` : 'Not running'
    return this.#card(keyOf(lane), laneTitle(lane), {
      state: html`<span class="state" data-tone=${tone}>${shown}</span>`,
      meters: OF_LANE,
      values: [work, duration(lane.loop_delay_ms), bytes(lane.heap_bytes)],
      foot: `${up} · ${restarts}${lane.external_bytes === null ? '' : ` · buffers ${bytes(lane.external_bytes)}`}${processesOf(lane)}`,
    })
  }

  #card(key, title, { state, meters, values, foot }) {
    const charts = this.#charts.get(key) ?? [[], [], []]
    return html`
      <article class="card lane" aria-label=${title}>
        <header><h2>${title}</h2>${state}</header>
        ${meters.map(([label, least, format], n) => html`<div class="meter"><span class="muted">${label}</span><span>${values[n]}</span>${sparkline(charts[n], { length: CHART_SECONDS, least })}<span class="peak">last minute, peak ${format(peakOf(charts[n]))}</span></div>`)}
        <p class="note">${foot}</p>
      </article>`
  }

  /** One black box. Its parts are drawn when it is opened. */
  #death(box) {
    const { at, guilty, title, reason } = box
    const isOpen = this.#open.has(at)
    const culprit =
      guilty === null ? 'culprit unknown' : [guilty.plugin, guilty.handler].filter(Boolean).join(' · ') || guilty.line
    const toggle = ({ currentTarget }) => {
      this.#open[currentTarget.open ? 'add' : 'delete'](at)
      this.draw()
    }
    return html`
      <details .open=${isOpen} @toggle=${toggle}>
        <summary>
          <span class="state" data-tone="bad">${title} ${REASONS[reason] ?? reason}</span>
          <span class="culprit">${culprit}</span>${whenAndAgo(at, 'muted')}
        </summary>
        ${isOpen ? this.#boxParts(box) : nothing}
      </details>`
  }

  #boxParts(box) {
    const { at, guilty, stack, steps, in_flight: works, in_flight_count: worksCount } = box
    const who = guilty && `${guilty.plugin ?? 'no plugin'}${guilty.handler ? `, ${guilty.handler}` : ''}`
    const showAll = () => {
      this.#whole.add(at)
      this.draw()
    }
    const shown = steps.toReversed().slice(0, this.#whole.has(at) ? steps.length : STEPS_SHOWN)
    const left = steps.length - shown.length
    return [
      facts([
        ['When', whenAndAgo(at), box.lived_ms === null ? '' : `, after ${duration(box.lived_ms)}`],
        ['Message', html`<code class="wrap">${box.message}</code>`],
        ['Culprit', guilty === null ? 'unknown' : `${who}: ${EVIDENCE[guilty.evidence]}`],
        ['Line', guilty?.line ? html`<code class="wrap">${guilty.line}</code>` : null],
        ['Stalled for', box.stood_still_ms === 0 ? null : duration(box.stood_still_ms)],
        [
          'Memory',
          box.heap_bytes === null
            ? 'not reported'
            : `${bytes(box.heap_bytes)} of heap, ${bytes(box.external_bytes)} of buffers, at its last report`,
        ],
        ['CPU', box.cpu_ms === null ? null : duration(box.cpu_ms)],
      ]),
      stack.length === 0 ? nothing : html`<h3>Stack</h3><pre tabindex="0">${stack.join('\n')}</pre>`,
      works.length === 0 ? nothing : html`<h3>In flight: ${count(worksCount)}</h3><ul>${works.map(workItem)}</ul>`,
      steps.length === 0
        ? nothing
        : html`
          <h3>Last steps, newest first</h3>
          <div class="scrolls">
            <table class="steps"><tbody>${shown.map(stepRow)}</tbody></table>
            ${left === 0 ? nothing : html`<button class="quiet" type="button" @click=${showAll}>Show ${left} more</button>`}
          </div>`,
    ]
  }
}

/** Steps before a death that are shown without a click. */
const STEPS_SHOWN = 40
const REASONS = {
  stalled: 'stalled',
  memory: 'ran out of memory',
  descriptors: 'held too many files open',
  exited: 'called process.exit',
  crashed: 'crashed',
  broken: 'had a broken builtin',
  boot: 'did not start',
  process: 'its process ended',
}

const EVIDENCE = {
  stack: 'it was in the stack',
  origin: 'it had started what failed',
  alone: 'nothing else was in flight',
}

/** What the lane was at work on, with the link to the request that it belongs to. */
const workItem = ({ kind, name, plugin, id, for_ms }) => html`
  <li>${kind} ${name}, ${plugin}, for ${duration(for_ms)} ${id === null ? nothing : linkToRequest(id)}</li>`

const stepRow = ({ at, kind, name, id, duration_ms, success }) => html`
  <tr data-errors=${success ? nothing : 'true'}>
    <td>${clock(at)}</td><td>${kind}</td><td><code>${name}</code></td>
    <td>${id === null ? nothing : linkToRequest(id, shortId(id))}</td>
    <td class="number">${duration_ms === null ? 'not ended' : duration(duration_ms)}</td>
  </tr>`

/** What its plugins have started. */
function processesOf({ child_processes }) {
  if (child_processes.length === 0) return ''
  const named = child_processes.slice(0, PROCESSES_NAMED).map(({ command, plugin, descendants }) => {
    const more = descendants ? ` and ${descendants} more` : ''
    return `${command ?? 'a process'}${more}${plugin === null ? '' : ` of ${plugin}`}`
  })
  const left = child_processes.length - named.length
  return ` · runs ${named.join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}
