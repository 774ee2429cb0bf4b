import { el, empty, setAttribute, setText, svg } from '/system/dashboard/dom.js'
import { count, rate } from './format.js'
import { addressOfSearch, follow } from './page.js'
import { isIll as isIllTool } from './tools.js'
import { edgeOf, NODE_HEIGHT, place, split } from './topology-layout.js'
import { Viewport } from './topology-viewport.js'

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

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
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

/** Pixels: wider lines of nodes are hard to follow. */
const ROOM_MAX = 1200
const ROOM_STEP = 20
const HINT =
  'Point at a node, or move to it with the arrow keys: it shows what it is connected to, and leads to its requests.'

/** Plugins, events and tools as a graph. The node under the pointer or with the focus is highlighted, with its neighbours. */
class TopologyPicture {
  #viewport = new Viewport()
  element = el('div.picture', {}, this.#viewport.element)
  /** Buttons that zoom it. */
  controls = this.#viewport.controls
  /** Describes the highlighted node. */
  note = el('p.note', {}, HINT)
  #topology = {}
  #plugins = {}
  #tools = {}
  #nodes = new Map()
  #edges = []
  #none = empty(
    'No plugins yet',
    el('p', {}, 'Write one in domains/<domain>/plugins/: it appears here with its events and tools.'),
  )

  /** @param onResize told when the picture has another width */
  constructor(onResize) {
    new ResizeObserver(onResize).observe(this.element)
    this.element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  /** The width that there is, in steps: a picture of another width is laid out anew. */
  get roomWidth() {
    return Math.min(ROOM_MAX, Math.floor(this.#viewport.element.clientWidth / ROOM_STEP) * ROOM_STEP)
  }

  /**
   * @param {Record<string, import('#heddle').TopologyEntry>} topology by event
   * @param {import('#heddle').SystemDump['plugins']} plugins by name, as `/system/status` has them
   * @param {Record<string, object>} tools by name
   */
  build(topology, plugins, tools, showsSystem) {
    this.#topology = topology
    this.#plugins = plugins
    this.#tools = tools
    const isShown = (plugin) => showsSystem || !plugin.startsWith('system.')
    const shown = new Set(Object.keys(plugins).filter(isShown))
    const edges = []
    const ids = new Set()
    for (const [event, { emitters, subscribers }] of Object.entries(topology)) {
      const ends = [...emitters, ...subscribers]
      // The system domain's own events about failures appear once a failure has happened.
      if (!ends.some((plugin) => shown.has(plugin))) continue
      ids.add(`event ${event}`)
      for (const plugin of ends) ids.add(`plugin ${plugin}`)
      for (const plugin of emitters) edges.push([`plugin ${plugin}`, `event ${event}`])
      for (const plugin of subscribers) edges.push([`event ${event}`, `plugin ${plugin}`])
    }
    for (const plugin of shown) ids.add(`plugin ${plugin}`)
    const tied = new Set(edges.flat())
    const places = place(
      [...ids].filter((id) => tied.has(id)).sort(),
      edges,
      [...ids].filter((id) => !tied.has(id)).sort(),
      Object.keys(tools).sort(),
      this.roomWidth,
    )
    for (const plugin of shown) {
      for (const tool of plugins[plugin].tools ?? []) {
        if (places.nodes.has(`tool ${tool}`)) edges.push([`plugin ${plugin}`, `tool ${tool}`])
      }
    }
    this.#render(places, edges)
  }

  /** Shows how often an event has fired. */
  tell(event, fired, isBusy) {
    const node = this.#nodes.get(`event ${event}`)
    if (node === undefined) return
    setText(node.count, fired === 0 ? 'never' : count(fired))
    setAttribute(node.element, 'data-busy', isBusy ? 'true' : null)
  }

  #render(places, edges) {
    const { nodes, width, height } = places
    const focused = this.element.contains(document.activeElement) ? idInFocus() : undefined
    this.#nodes.clear()
    const edgeLayer = svg('g.edges')
    const nodeLayer = svg('g.nodes')
    const root = svg(
      'svg',
      {
        role: 'group',
        'aria-label':
          'Plugins, events and tools. Arrow keys move between them, Shift and arrow keys move the picture, + and − zoom, 0 shows all',
      },
      arrow(),
      edgeLayer,
      nodeLayer,
    )
    for (const [id, box] of nodes) this.#renderNode(nodeLayer, id, box)
    this.#edges = edges
      .filter(([from, to]) => nodes.has(from) && nodes.has(to))
      .map(([from, to]) => {
        const path = svg('path', edgeOf(from, to, nodes))
        edgeLayer.append(path)
        return { from, to, path }
      })
    root.addEventListener('pointerover', ({ target }) => this.#highlight(target.closest('[data-id]')?.dataset.id))
    root.addEventListener('pointerleave', () => this.#highlight(undefined))
    root.addEventListener('focusin', ({ target }) => {
      this.#highlight(target.dataset.id)
      const node = this.#nodes.get(target.dataset.id)
      if (node !== undefined && target.matches(':focus-visible'))
        this.#viewport.reveal({ ...node, height: NODE_HEIGHT })
    })
    root.addEventListener('focusout', () => this.#highlight(undefined))
    this.#none.remove()
    this.controls.hidden = nodes.size === 0
    this.#viewport.element.hidden = nodes.size === 0
    if (nodes.size === 0) this.element.append(this.#none)
    else this.#viewport.show(root, { width, height })
    const first = this.#nodes.get(focused) ?? this.#nodes.values().next().value
    first?.element.setAttribute('tabindex', '0')
    if (focused !== undefined) first?.element.focus()
  }

  #renderNode(layer, id, { x, y, width }) {
    const [kind, name] = split(id)
    const health = kind === 'plugin' ? this.#plugins[name] : kind === 'tool' ? this.#tools[name] : undefined
    const isIll = health !== undefined && (kind === 'tool' ? isIllTool(health) : health.status !== 'OK')
    const isDormant = kind === 'event' && this.#topology[name].fire_count === 0
    const counter = svg('text.node-count', { x: width - 12, y: 22, 'text-anchor': 'end' })
    const address = addressOf(kind, name)
    const element = svg(
      'a',
      {
        class: `node node-${kind}${isIll ? ' is-ill' : ''}${isDormant ? ' is-dormant' : ''}`,
        transform: `translate(${x} ${y})`,
        'data-id': id,
        tabindex: '-1',
        href: address,
        click: (event) => follow(event, address),
        'aria-label': `${kind} ${name}${isIll ? `, ${health.status}: ${health.error ?? health.message ?? ''}` : ''}`,
      },
      svg('rect', { width, height: NODE_HEIGHT, rx: kind === 'event' ? NODE_HEIGHT / 2 : 7 }),
      svg('text.node-name', { x: kind === 'event' ? 16 : 12, y: 22 }, name),
      kind === 'event' ? counter : null,
    )
    layer.append(element)
    this.#nodes.set(id, { element, count: counter, x, y, width })
  }

  #highlight(id) {
    const near = new Set(id === undefined ? [] : [id])
    for (const { from, to, path } of this.#edges) {
      const isNear = from === id || to === id
      if (isNear) near.add(from).add(to)
      setAttribute(path, 'data-near', isNear ? 'true' : null)
    }
    for (const [each, { element }] of this.#nodes) {
      setAttribute(element, 'data-near', id === undefined ? null : String(near.has(each)))
    }
    setAttribute(this.element, 'data-chosen', id === undefined ? null : 'true')
    setText(this.note, id === undefined ? HINT : this.#describe(id))
  }

  #describe(id) {
    const [kind, name] = split(id)
    if (kind === 'tool') {
      const { status, message, fault } = this.#tools[name]
      return `Tool ${name}: ${status}${fault === 'caller' ? ' by its caller’s fault' : ''}${message === null ? '' : `, ${message}`}`
    }
    if (kind === 'event') {
      const { emitters, subscribers, fire_count } = this.#topology[name]
      return `${name}: fired ${count(fire_count)} times, by ${emitters.join(', ') || 'nobody'}, to ${subscribers.join(', ') || 'nobody'}`
    }
    const { status, error, tools = [] } = this.#plugins[name] ?? { status: 'gone' }
    return `${name}: ${status}${error === undefined ? '' : `, ${error}`}${tools.length === 0 ? '' : `, takes ${tools.join(', ')}`}`
  }

  /** Moves the focus to the nearest node in the direction of the arrow key. */
  #onKey(event) {
    if (event.shiftKey) return
    const from = this.#nodes.get(idInFocus())
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key]
    if (from === undefined || direction === undefined) return
    event.preventDefault()
    let best
    let bestDistance = Number.POSITIVE_INFINITY
    for (const node of this.#nodes.values()) {
      const [dx, dy] = [node.x + node.width / 2 - from.x - from.width / 2, node.y - from.y]
      const along = dx * direction[0] + dy * direction[1]
      const across = Math.abs(dx * direction[1]) + Math.abs(dy * direction[0])
      if (node === from || along < 8) continue
      const distance = along + across * 2
      if (distance < bestDistance) {
        best = node
        bestDistance = distance
      }
    }
    if (best === undefined) return
    from.element.setAttribute('tabindex', '-1')
    best.element.setAttribute('tabindex', '0')
    best.element.focus()
  }
}

/** Where a node leads: to the requests of a plugin, to those that have to do with an event, to the calls of a tool. */
function addressOf(kind, name) {
  if (kind === 'tool') return '/system/dashboard#tools'
  return addressOfSearch(kind === 'plugin' ? `plugin:${name}` : `"${name}"`)
}

/** The arrowhead of an edge, in the edge's colour. */
function arrow() {
  const tip = svg('path.arrow', { d: 'M0 0L7 3.5L0 7Z' })
  const marker = {
    id: 'arrow',
    viewBox: '0 0 7 7',
    refX: 5,
    refY: 3.5,
    markerWidth: 6,
    markerHeight: 6,
    orient: 'auto',
  }
  return svg('defs', {}, svg('marker', marker, tip))
}

function legend() {
  const item = (kind, text) => el('span', { class: `legend legend-${kind}` }, text)
  return el(
    'p.legends',
    {},
    item('plugin', 'plugin'),
    item('event', 'event, and how often it fired'),
    item('tool', 'tool'),
  )
}

/** The id of the node that has the focus; undefined for another element. */
function idInFocus() {
  const inFocus = /** @type {SVGElement | null} */ (document.activeElement)
  return inFocus?.dataset?.id
}
