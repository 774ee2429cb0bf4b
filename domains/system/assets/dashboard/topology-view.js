import { el, setText } from '/system/dashboard/dom.js'
import { count, rate } from './format.js'
import { legend, TopologyPicture } from './topology-picture.js'

/** Plugins, tools and events as a graph, and the events as a table. */
export class TopologyView {
  title = 'Topology'
  badge = ''
  #page
  #topology = {}
  #plugins = {}
  #tools = {}
  #rates = new Map()
  #firedBefore = new Map()
  #shape = ''
  #showsSystem = el('input', { type: 'checkbox' })
  #picture = new TopologyPicture(() => this.#paint?.())
  #table = el('tbody')
  #rows = new Map()
  #paint
  #scanned = false

  constructor(page) {
    this.#page = page
    this.#paint = page.painter.job(() => this.#draw(), 500)
    const headings = ['Event', 'Published by', 'Subscribers', 'Fired', 'Per second']
    this.element = el(
      'section.view.topology',
      { 'aria-label': 'Topology' },
      el(
        'div.card',
        {},
        el(
          'div.toolbar',
          {},
          el('label.check', {}, this.#showsSystem, 'System plugins'),
          this.#picture.controls,
          this.#picture.note,
        ),
        this.#picture.element,
        legend(),
      ),
      el(
        'div.card.scrolls',
        { tabindex: '0', role: 'region', 'aria-label': 'Events' },
        el(
          'table.topology-events',
          {},
          el('caption', {}, 'Events'),
          el(
            'thead',
            {},
            el('tr', {}, ...headings.map((text, n) => el('th', { scope: 'col', class: n > 2 ? 'number' : '' }, text))),
          ),
          this.#table,
        ),
      ),
    )
    this.#showsSystem.addEventListener('change', () => this.#paint(true))
  }

  onHello({ topology, status }, isOtherProcess) {
    if (isOtherProcess) {
      this.#topology = {}
      this.#firedBefore.clear()
      this.#scanned = false
    }
    this.#merge(topology)
    this.#learn(status)
  }

  onSecond({ topology, status }) {
    this.#rates.clear()
    for (const [event, { fire_count: fired }] of Object.entries(topology)) {
      const before = this.#firedBefore.get(event)
      if (before !== undefined && fired > before) this.#rates.set(event, fired - before)
    }
    this.#merge(topology)
    if (status !== undefined) this.#learn(status)
    this.#paint()
  }

  #merge(topology) {
    for (const [event, entry] of Object.entries(topology)) {
      this.#topology[event] = entry
      this.#firedBefore.set(event, entry.fire_count)
    }
  }

  #learn({ plugins, tools }) {
    this.#plugins = plugins
    this.#tools = tools
    this.#paint()
  }

  show() {
    this.#paint(true)
    if (!this.#scanned) void this.#scan()
  }

  /** Adds the events that the sources name and that have not fired yet. */
  async #scan() {
    this.#scanned = true
    const { topology } = (await this.#page.fetchJson('/system/events')) ?? { topology: {} }
    for (const [event, entry] of Object.entries(topology)) {
      if (entry.note !== undefined) this.#topology[event] = entry
    }
    this.#paint(true)
  }

  #draw() {
    if (!this.element.isConnected) return
    const shape = JSON.stringify([
      Object.entries(this.#topology).map(([event, { emitters, subscribers, note, fire_count }]) => [
        event,
        emitters,
        subscribers,
        note,
        fire_count === 0,
      ]),
      Object.entries(this.#plugins).map(([name, { status, tools }]) => [name, status, tools]),
      Object.entries(this.#tools).map(([name, { status }]) => [name, status]),
      this.#showsSystem.checked,
      this.#picture.roomWidth,
    ])
    if (shape !== this.#shape) {
      this.#shape = shape
      this.#picture.build(this.#topology, this.#plugins, this.#tools, this.#showsSystem.checked)
      this.#buildTable()
    }
    for (const [event, row] of this.#rows) {
      const { fire_count } = this.#topology[event]
      setText(row.fired, count(fire_count))
      setText(row.rate, this.#rates.has(event) ? rate(this.#rates.get(event)) : '')
      this.#picture.tell(event, fire_count, this.#rates.has(event))
    }
  }

  #buildTable() {
    this.#rows.clear()
    const rows = Object.entries(this.#topology).sort(([a], [b]) => (a < b ? -1 : 1))
    this.#table.replaceChildren(
      ...rows.map(([event, { emitters, subscribers, note }]) => {
        const fired = el('td.number', { 'data-label': 'Fired' })
        const perSecond = el('td.number', { 'data-label': 'Per second' })
        this.#rows.set(event, { fired, rate: perSecond })
        return el(
          'tr',
          {},
          el('th', { scope: 'row' }, event, note === undefined ? null : el('span.tag', {}, 'never fired')),
          el('td', { 'data-label': 'Published by' }, emitters.join(', ') || '–'),
          el('td', { 'data-label': 'Subscribers' }, subscribers.join(', ') || 'nobody'),
          fired,
          perSecond,
        )
      }),
    )
    if (rows.length === 0)
      this.#table.append(el('tr', {}, el('td', { colspan: '5' }, 'No plugin publishes or subscribes to an event.')))
  }
}
