import { el, facts, setAttribute, setText } from './dom.js'
import { ago, bytes, clock, count, duration, plural } from './format.js'
import { Sparkline } from './sparkline.js'

const CHART_SECONDS = 60
/** Steps before a death that are shown at once. */
const STEPS_SHOWN = 40
const REASONS = {
  stalled: 'stood still',
  memory: 'ran out of memory',
  exited: 'called process.exit',
  crashed: 'crashed',
  boot: 'did not start',
  process: 'its process ended',
}

/** The threads of the process, what they are at, and what is known of those that died. */
export class LanesView {
  title = 'Lanes'
  badge = ''
  #page
  #cards = new Map()
  #grid = el('div', { class: 'lanes' })
  #deaths = el(
    'div',
    { class: 'card deaths' },
    el('h2', { text: 'Deaths' }),
    el('p', { class: 'note', text: 'No lane has died.' }),
  )
  #known = ''
  #lanes = []
  #process = null
  #paint

  constructor(page) {
    this.#page = page
    this.#paint = page.painter.job(() => this.#draw(), 500)
    this.element = el('section', { class: 'view', 'aria-label': 'Lanes' }, this.#grid, this.#deaths)
  }

  onHello({ lanes }) {
    this.#take(lanes)
  }

  onSecond({ lanes, process }) {
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

  #take(lanes) {
    this.#lanes = lanes
    const deaths = lanes.flatMap(({ deaths }) => deaths.map(({ at }) => at))
    this.badge = deaths.length === 0 ? '' : String(deaths.length)
    const known = deaths.join()
    if (known !== this.#known && this.element.isConnected) void this.#loadDeaths(known)
    this.#paint()
  }

  show() {
    this.#take(this.#lanes)
    this.#paint(true)
  }

  #card(key, title) {
    const known = this.#cards.get(key)
    if (known !== undefined) return known
    const labels =
      key === 'primary' ? ['Thread busy', 'CPU, all threads', 'Memory'] : ['In flight', 'Loop delay', 'Heap']
    const meters = labels.map((label) => {
      const value = el('span', { class: 'meter-value' })
      const chart = new Sparkline(CHART_SECONDS)
      return {
        value,
        chart,
        element: el('div', { class: 'meter' }, el('span', { class: 'meter-label', text: label }), value, chart.element),
      }
    })
    const state = el('span', { class: 'state' })
    const foot = el('p', { class: 'note' })
    const element = el(
      'article',
      { class: 'card lane', 'aria-label': title },
      el('header', {}, el('h2', { text: title }), state),
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
    if (!this.element.isConnected) return
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
    setText(card.foot, 'CPU is of one core: 200 % are two cores busy.')
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
    setText(card.state, !responsive && state === 'ready' ? 'stands still' : state)
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
    if (known === '') return
    const lanes = await this.#page.fetchJson('/system/lanes')
    if (lanes === null)
      return this.#fillDeaths([
        el('p', { class: 'note', text: 'The plugin that tells of deaths (show-lanes) is not installed.' }),
      ])
    const boxes = lanes.flatMap(({ deaths }) => deaths).sort((a, b) => (a.at < b.at ? 1 : -1))
    const open = new Set([...this.#deaths.querySelectorAll('details[open]')].map(({ dataset }) => dataset.at))
    this.#fillDeaths(boxes.map((box) => deathOf(box, open.has(box.at))))
  }

  #fillDeaths(children) {
    this.#deaths.replaceChildren(el('h2', { text: 'Deaths' }), ...children)
  }
}

function tell(elements, texts) {
  for (const [n, text] of texts.entries()) setText(elements[n], text)
}

function keyOf({ index, role }) {
  return `${role} ${index}`
}

function titleOf({ index, role }) {
  return role === 'regular' ? `Lane ${index}` : role === 'relief' ? `Relief of lane ${index}` : 'Quarantine'
}

/** One black box. Its parts are made when it is opened. */
function deathOf(box, isOpen) {
  const { guilty } = box
  const culprit =
    guilty === null ? 'nobody to be told' : [guilty.plugin, guilty.handler].filter(Boolean).join(' · ') || guilty.line
  const details = el(
    'details',
    { 'data-at': box.at },
    el(
      'summary',
      {},
      el('span', { class: 'state state-bad', text: `Lane ${box.lane} ${REASONS[box.reason] ?? box.reason}` }),
      el('span', { class: 'culprit', text: culprit }),
      el('span', { class: 'muted', text: ago(box.at) }),
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
  stack: 'its stack says so',
  alone: 'nothing else was in flight',
  last: 'it was begun last: a guess',
}

function boxParts(box) {
  const { guilty, stack, steps, in_flight: works, in_flight_count: worksCount } = box
  const parts = [
    facts([
      ['When', `${clock(box.at)} (${ago(box.at)}), after ${duration(box.lived_ms)}`],
      ['Message', el('code', { class: 'wrap', text: box.message })],
      [
        'Guilty',
        guilty === null
          ? 'cannot be told'
          : `${guilty.plugin ?? 'no plugin'}${guilty.handler ? `, ${guilty.handler}` : ''}: ${EVIDENCE[guilty.evidence]}`,
      ],
      ['Line', guilty?.line ? el('code', { class: 'wrap', text: guilty.line }) : null],
      ['Stood still', box.stood_still_ms === 0 ? null : duration(box.stood_still_ms)],
      ['Memory', `${bytes(box.heap_bytes)} of heap, ${bytes(box.external_bytes)} of buffers, as it last said`],
      ['CPU', box.cpu_ms === null ? null : duration(box.cpu_ms)],
    ]),
  ]
  if (stack.length > 0) parts.push(el('h3', { text: 'Stack' }), el('pre', { tabindex: '0', text: stack.join('\n') }))
  if (works.length > 0) {
    parts.push(
      el('h3', { text: `In flight: ${count(worksCount)}` }),
      el(
        'ul',
        { class: 'plain' },
        ...works.map(({ kind, name, plugin, for_ms }) =>
          el('li', { text: `${kind} ${name}, ${plugin}, for ${duration(for_ms)}` }),
        ),
      ),
    )
  }
  if (steps.length > 0) parts.push(el('h3', { text: 'Last steps, newest first' }), stepsOf(steps))
  return parts
}

function stepsOf(steps) {
  const rows = steps
    .toReversed()
    .map(({ at, kind, name, duration_ms, success }) =>
      el(
        'tr',
        { 'data-errors': success ? null : 'true' },
        el('td', { text: clock(at) }),
        el('td', { text: kind }),
        el('td', {}, el('code', { text: name })),
        el('td', { class: 'number', text: duration_ms === null ? 'not ended' : duration(duration_ms) }),
      ),
    )
  const body = el('tbody', {}, ...rows.slice(0, STEPS_SHOWN))
  const box = el('div', { class: 'scrolls' }, el('table', { class: 'steps' }, body))
  const rest = rows.slice(STEPS_SHOWN)
  if (rest.length > 0) {
    const more = el('button', { class: 'quiet', type: 'button', text: `Show ${rest.length} more` })
    more.addEventListener('click', () => {
      body.append(...rest)
      more.remove()
    })
    box.append(more)
  }
  return box
}
