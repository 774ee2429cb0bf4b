import { el, facts, setAttribute, setText } from '/system/dashboard/dom.js'
import { Sparkline } from './charts.js'
import { bytes, clock, count, duration, plural, shortId, whenAndAgo } from './format.js'
import { linkToRequest, named } from './page.js'

const CHART_SECONDS = 60

/** The threads of the process, their work, and the black boxes of the lanes that died. */
export class LanesView {
  title = 'Lanes'
  badge = ''
  #page
  #cards = new Map()
  #grid = el('div.lanes')
  #deaths = el('div.card.deaths', {}, el('h2', {}, 'Deaths'), el('p.note', {}, 'No lane has died.'))
  /** What the deaths are that are shown; null: not known yet. */
  #known = null
  #boxes = null
  /** The death that the address names and that was shown. */
  #sought = null
  /** Null before the process has told. */
  #lanes = null
  #process = null
  #listener = null
  #paint

  constructor(page) {
    this.#page = page
    this.#paint = page.painter.job(() => this.#draw(), 500)
    this.element = el('section.view', { 'aria-label': 'Lanes' }, this.#grid, this.#deaths)
    addEventListener('popstate', () => {
      this.#sought = null
      if (this.element.isConnected) this.#seek()
    })
  }

  onHello({ lanes, status }) {
    this.#learn(status)
    this.#take(lanes)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ lanes, process, status }) {
    this.#learn(status)
    this.#process = process
    this.#take(lanes)
    for (const lane of lanes) {
      const card = this.#card(keyOf(lane), titleOf(lane))
      card.load.push(lane.requests_in_flight + lane.deliveries_in_flight)
      card.delay.push(lane.loop_delay_ms)
      card.heap.push(lane.heap_bytes)
    }
    const primary = this.#card('primary', 'Primary')
    primary.load.push(process.loop_utilization * 100)
    primary.delay.push(process.cpu_percent)
    primary.heap.push(process.rss_bytes)
  }

  #learn(status) {
    if (status?.listener !== undefined) this.#listener = status.listener
  }

  #take(lanes) {
    this.#lanes = lanes
    const deaths = lanes.flatMap(({ deaths }) => deaths.map(({ at }) => at))
    this.badge = deaths.length === 0 ? '' : String(deaths.length)
    const known = deaths.join()
    if (known !== this.#known && this.element.isConnected) void this.#loadDeaths(known)
    this.#paint()
  }

  show() {
    if (this.#lanes !== null) this.#take(this.#lanes)
    this.#paint(true)
    this.#seek()
  }

  /** Opens the black box that the address names. */
  #seek() {
    const at = named('death')
    if (at === null || this.#boxes === null || at === this.#sought) return
    this.#sought = at
    const box = [...this.#deaths.querySelectorAll('details')].find(({ dataset }) => dataset.at === at)
    const text = `Of the death at ${clock(at)} nothing is kept here any more: each lane keeps its last 5.`
    this.#page.notices.tell('death', 'warn', box === undefined ? text : null, true)
    if (box === undefined) return
    box.open = true
    box.scrollIntoView({ block: 'start' })
    box.querySelector('summary').focus()
  }

  #card(key, title) {
    const known = this.#cards.get(key)
    if (known !== undefined) return known
    const labels =
      key === 'primary' ? ['Thread busy', 'CPU, all threads', 'Memory'] : ['In flight', 'Loop delay', 'Heap']
    const meters = labels.map((label) => {
      const value = el('span.meter-value')
      const chart = new Sparkline(CHART_SECONDS)
      return {
        value,
        chart,
        element: el('div.meter', {}, el('span.meter-label', {}, label), value, chart.element),
      }
    })
    const state = el('span.state')
    const foot = el('p.note')
    const element = el(
      'article.card.lane',
      { 'aria-label': title },
      el('header', {}, el('h2', {}, title), state),
      ...meters.map((meter) => meter.element),
      foot,
    )
    this.#grid.append(element)
    const [load, delay, heap] = meters.map(({ chart }) => chart)
    const card = { element, state, foot, load, delay, heap, values: meters.map(({ value }) => value) }
    this.#cards.set(key, card)
    return card
  }

  #draw() {
    if (!this.element.isConnected || this.#lanes === null) return
    if (this.#process !== null) this.#drawPrimary(this.#card('primary', 'Primary'))
    const keys = new Set(['primary', ...this.#lanes.map(keyOf)])
    for (const [key, card] of this.#cards) {
      if (keys.has(key)) continue
      card.element.remove()
      this.#cards.delete(key)
    }
    for (const lane of this.#lanes) this.#drawLane(this.#card(keyOf(lane), titleOf(lane)), lane)
  }

  #drawPrimary(card) {
    const { loop_utilization, cpu_percent, rss_bytes } = this.#process
    tell(card.values, [`${Math.round(loop_utilization * 100)} %`, `${cpu_percent} %`, bytes(rss_bytes)])
    setText(card.state, 'listener, hub, supervisor')
    const { library, why } = this.#listener ?? {}
    const served = library === undefined ? '' : `HTTP is served by ${library}${why === null ? '' : ` (${why})`}. `
    setText(card.foot, `${served}CPU is in percent of one core: 200 % means that two cores are busy.`)
    card.load.paint(100)
    card.delay.paint(100)
    card.heap.paint(256 << 20)
  }

  #drawLane(card, lane) {
    const { state, responsive, requests_in_flight: requests, deliveries_in_flight: deliveries } = lane
    tell(card.values, [
      deliveries === 0 ? plural(requests, 'request') : `${plural(requests, 'request')}, ${plural(deliveries, 'event')}`,
      duration(lane.loop_delay_ms),
      bytes(lane.heap_bytes),
    ])
    const isWell = state === 'ready' && responsive
    setAttribute(card.state, 'class', `state state-${isWell ? 'ok' : state === 'dead' || !responsive ? 'bad' : 'warn'}`)
    setText(card.state, !responsive && state === 'ready' ? 'stalled' : state)
    const restarts = lane.restarts === 0 ? 'never restarted' : plural(lane.restarts, 'restart')
    setText(
      card.foot,
      `Up ${duration(Date.now() - Date.parse(lane.started_at))} · ${restarts} · buffers ${bytes(lane.external_bytes)}`,
    )
    card.load.paint(4)
    card.delay.paint(20)
    card.heap.paint(32 << 20)
  }

  // ── deaths ───────────────────────────────────────────────────────────────

  async #loadDeaths(known) {
    this.#known = known
    if (known === '') {
      this.#boxes = []
      return this.#seek()
    }
    const lanes = await this.#page.fetchJson('/system/lanes')
    if (lanes === null)
      return this.#fillDeaths([el('p.note', {}, 'The plugin that lists deaths (show-lanes) is not installed.')])
    const boxes = lanes.flatMap(({ deaths }) => deaths).sort((a, b) => (a.at < b.at ? 1 : -1))
    this.#boxes = boxes
    const open = new Set([...this.#deaths.querySelectorAll('details[open]')].map(({ dataset }) => dataset.at))
    this.#fillDeaths(boxes.map((box) => deathOf(box, open.has(box.at))))
    this.#seek()
  }

  #fillDeaths(children) {
    this.#deaths.replaceChildren(el('h2', {}, 'Deaths'), ...children)
  }
}

function tell(elements, texts) {
  for (const [n, text] of texts.entries()) setText(elements[n], text)
}

function keyOf({ index, role }) {
  return `${role} ${index}`
}

function titleOf({ index, role }) {
  if (role === 'regular') return `Lane ${index}`
  if (role === 'relief') return `Standby for lane ${index}`
  return role === 'probation' ? 'Probation' : 'Quarantine'
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

/** One black box. Its parts are rendered when it is opened. */
function deathOf(box, isOpen) {
  const { guilty } = box
  const culprit =
    guilty === null ? 'culprit unknown' : [guilty.plugin, guilty.handler].filter(Boolean).join(' · ') || guilty.line
  const details = el(
    'details',
    { 'data-at': box.at },
    el(
      'summary',
      {},
      el('span.state.state-bad', {}, `Lane ${box.lane} ${REASONS[box.reason] ?? box.reason}`),
      el('span.culprit', {}, culprit),
      whenAndAgo(box.at, { class: 'muted' }),
    ),
  )
  const fill = () => details.children.length > 1 || details.append(...boxParts(box))
  details.addEventListener('toggle', fill)
  if (isOpen) {
    details.open = true
    fill()
  }
  return details
}

const EVIDENCE = {
  stack: 'it was in the stack',
  origin: 'it had started what failed',
  alone: 'nothing else was in flight',
  pattern: 'it was there at each of these deaths, and seldom otherwise',
  last: 'it began last, which is a guess',
}

function boxParts(box) {
  const { guilty, stack, steps, in_flight: works, in_flight_count: worksCount } = box
  const parts = [
    facts([
      ['When', whenAndAgo(box.at), `, after ${duration(box.lived_ms)}`],
      ['Message', el('code.wrap', {}, box.message)],
      [
        'Culprit',
        guilty === null
          ? 'unknown'
          : `${guilty.plugin ?? 'no plugin'}${guilty.handler ? `, ${guilty.handler}` : ''}: ${EVIDENCE[guilty.evidence]}`,
      ],
      ['Line', guilty?.line ? el('code.wrap', {}, guilty.line) : null],
      ['Stalled for', box.stood_still_ms === 0 ? null : duration(box.stood_still_ms)],
      ['Memory', `${bytes(box.heap_bytes)} of heap, ${bytes(box.external_bytes)} of buffers, at its last report`],
      ['CPU', box.cpu_ms === null ? null : duration(box.cpu_ms)],
    ]),
  ]
  if (stack.length > 0) parts.push(el('h3', {}, 'Stack'), el('pre', { tabindex: '0' }, stack.join('\n')))
  if (works.length > 0) {
    parts.push(
      el('h3', {}, `In flight: ${count(worksCount)}`),
      el('ul.plain', {}, ...works.map((work) => workItem(work))),
    )
  }
  if (steps.length > 0) parts.push(el('h3', {}, 'Last steps, newest first'), stepsOf(steps))
  return parts
}

/** What the lane was at work on, with the link to the request that it belongs to. */
function workItem({ kind, name, plugin, id, for_ms }) {
  const link = id === null ? null : linkToRequest(id)
  return el('li', {}, `${kind} ${name}, ${plugin}, for ${duration(for_ms)} `, link)
}

function stepsOf(steps) {
  const rows = steps
    .toReversed()
    .map(({ at, kind, name, id, duration_ms, success }) =>
      el(
        'tr',
        { 'data-errors': success ? null : 'true' },
        el('td', {}, clock(at)),
        el('td', {}, kind),
        el('td', {}, el('code', {}, name)),
        el('td', {}, id === null ? null : linkToRequest(id, shortId(id))),
        el('td.number', {}, duration_ms === null ? 'not ended' : duration(duration_ms)),
      ),
    )
  const body = el('tbody', {}, ...rows.slice(0, STEPS_SHOWN))
  const box = el('div.scrolls', {}, el('table.steps', {}, body))
  const rest = rows.slice(STEPS_SHOWN)
  if (rest.length > 0) {
    const more = el('button.quiet', { type: 'button' }, `Show ${rest.length} more`)
    more.addEventListener('click', () => {
      body.append(...rest)
      more.remove()
    })
    box.append(more)
  }
  return box
}
