import { el, empty, setAttribute, setText, svg } from './dom.js'
import { count, rate } from './format.js'
import { layersOf } from './layered-layout.js'

const NODE_HEIGHT = 34
const ROW_STEP = 46
const LAYER_GAP = 72
const TOOL_GAP = 14
const CHAR_WIDTH = 7.3
const PADDING = 24

/** Plugins, tools and events as a picture, and the same as a table. */
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
  #nodes = new Map()
  #edges = []
  #showsSystem = el('input', { type: 'checkbox' })
  #note = el('p', {
    class: 'note',
    text: 'Point at something, or move to it with the arrow keys, to see what it is tied to.',
  })
  #picture = el('div', { class: 'picture' })
  #table = el('tbody')
  #paint
  #scanned = false

  constructor(page) {
    this.#page = page
    this.#paint = page.painter.job(() => this.#draw(), 500)
    const headings = ['Event', 'Published by', 'Subscribers', 'Fired', 'Per second']
    this.element = el(
      'section',
      { class: 'view topology', 'aria-label': 'Topology' },
      el(
        'div',
        { class: 'card' },
        el(
          'div',
          { class: 'toolbar' },
          el('label', { class: 'check' }, this.#showsSystem, 'System plugins'),
          this.#note,
        ),
        this.#picture,
        legend(),
      ),
      el(
        'div',
        { class: 'card scrolls' },
        el(
          'table',
          {},
          el('caption', { text: 'Events' }),
          el(
            'thead',
            {},
            el('tr', {}, ...headings.map((text, n) => el('th', { scope: 'col', class: n > 2 ? 'number' : '', text }))),
          ),
          this.#table,
        ),
      ),
    )
    this.#showsSystem.addEventListener('change', () => this.#paint(true))
    this.#picture.addEventListener('keydown', (event) => this.#onKey(event))
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

  /** What the sources say besides: events that have not fired yet. */
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
      Object.entries(this.#topology).map(([event, { emitters, subscribers, note }]) => [
        event,
        emitters,
        subscribers,
        note,
      ]),
      Object.entries(this.#plugins).map(([name, { status, tools }]) => [name, status, tools]),
      Object.entries(this.#tools).map(([name, { status }]) => [name, status]),
      this.#showsSystem.checked,
    ])
    if (shape !== this.#shape) {
      this.#shape = shape
      this.#build()
      this.#buildTable()
    }
    for (const [event, row] of this.#rows) {
      const { fire_count } = this.#topology[event]
      setText(row.fired, count(fire_count))
      setText(row.rate, this.#rates.has(event) ? rate(this.#rates.get(event)) : '')
      const node = this.#nodes.get(`event ${event}`)
      if (node === undefined) continue
      setText(node.count, fire_count === 0 ? 'never' : count(fire_count))
      setAttribute(node.element, 'data-busy', this.#rates.has(event) ? 'true' : null)
    }
  }
  #rows = new Map()

  #buildTable() {
    this.#rows.clear()
    const rows = Object.entries(this.#topology).sort(([a], [b]) => (a < b ? -1 : 1))
    this.#table.replaceChildren(
      ...rows.map(([event, { emitters, subscribers, note }]) => {
        const fired = el('td', { class: 'number' })
        const perSecond = el('td', { class: 'number' })
        this.#rows.set(event, { fired, rate: perSecond })
        return el(
          'tr',
          {},
          el(
            'th',
            { scope: 'row' },
            event,
            note === undefined ? null : el('span', { class: 'tag', text: 'never fired' }),
          ),
          el('td', { text: emitters.join(', ') || '–' }),
          el('td', { text: subscribers.join(', ') || 'nobody' }),
          fired,
          perSecond,
        )
      }),
    )
    if (rows.length === 0)
      this.#table.append(
        el('tr', {}, el('td', { colspan: '5', text: 'No plugin publishes or subscribes to an event.' })),
      )
  }

  // ── the picture ──────────────────────────────────────────────────────────

  #build() {
    const isShown = (plugin) => this.#showsSystem.checked || !plugin.startsWith('system.')
    const plugins = new Set(Object.keys(this.#plugins).filter(isShown))
    const edges = []
    const ids = new Set()
    for (const [event, { emitters, subscribers }] of Object.entries(this.#topology)) {
      const ends = [...emitters, ...subscribers]
      // What the system domain tells about failures is in the picture as soon as one has happened.
      if (!ends.some((plugin) => plugins.has(plugin))) continue
      ids.add(`event ${event}`)
      for (const plugin of ends) ids.add(`plugin ${plugin}`)
      for (const plugin of emitters) edges.push([`plugin ${plugin}`, `event ${event}`])
      for (const plugin of subscribers) edges.push([`event ${event}`, `plugin ${plugin}`])
    }
    for (const plugin of plugins) ids.add(`plugin ${plugin}`)
    const tied = new Set(edges.flat())
    const places = place(
      [...ids].filter((id) => tied.has(id)).sort(),
      edges,
      [...ids].filter((id) => !tied.has(id)).sort(),
      Object.keys(this.#tools).sort(),
    )
    for (const plugin of plugins) {
      for (const tool of this.#plugins[plugin].tools ?? []) {
        if (places.nodes.has(`tool ${tool}`)) edges.push([`plugin ${plugin}`, `tool ${tool}`])
      }
    }
    this.#render(places, edges)
  }

  #render(places, edges) {
    const { nodes, width, height } = places
    const focused = this.#picture.contains(document.activeElement) ? document.activeElement.dataset.id : undefined
    this.#nodes.clear()
    const edgeLayer = svg('g', { class: 'edges' })
    const nodeLayer = svg('g', { class: 'nodes' })
    const root = svg(
      'svg',
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: 'group',
        'aria-label': 'Plugins, events and tools. Arrow keys move between them',
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
    root.addEventListener('focusin', ({ target }) => this.#highlight(target.dataset.id))
    root.addEventListener('focusout', () => this.#highlight(undefined))
    if (nodes.size === 0)
      this.#picture.replaceChildren(
        empty(
          'No plugins yet',
          el('p', { text: 'Write one in domains/<domain>/plugins/: it appears here with its events and tools.' }),
        ),
      )
    else this.#picture.replaceChildren(root)
    const first = this.#nodes.get(focused) ?? this.#nodes.values().next().value
    first?.element.setAttribute('tabindex', '0')
    if (focused !== undefined) first?.element.focus()
  }

  #renderNode(layer, id, { x, y, width }) {
    const [kind, name] = split(id)
    const health = kind === 'plugin' ? this.#plugins[name] : kind === 'tool' ? this.#tools[name] : undefined
    const isIll = health !== undefined && health.status !== 'OK'
    const isDormant = kind === 'event' && this.#topology[name].fire_count === 0
    const counter = svg('text', { class: 'node-count', x: width - 12, y: 22, 'text-anchor': 'end' })
    const element = svg(
      'g',
      {
        class: `node node-${kind}${isIll ? ' is-ill' : ''}${isDormant ? ' is-dormant' : ''}`,
        transform: `translate(${x} ${y})`,
        'data-id': id,
        tabindex: '-1',
        role: 'img',
        'aria-label': `${kind} ${name}${isIll ? `, ${health.status}: ${health.error ?? health.message ?? ''}` : ''}`,
      },
      svg('rect', { width, height: NODE_HEIGHT, rx: kind === 'event' ? NODE_HEIGHT / 2 : 7 }),
      svg('text', { class: 'node-name', x: kind === 'event' ? 16 : 12, y: 22, text: name }),
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
    setAttribute(this.#picture, 'data-chosen', id === undefined ? null : 'true')
    setText(
      this.#note,
      id === undefined
        ? 'Point at something, or move to it with the arrow keys, to see what it is tied to.'
        : this.#describe(id),
    )
  }

  #describe(id) {
    const [kind, name] = split(id)
    if (kind === 'tool') {
      const { status, message } = this.#tools[name]
      return `Tool ${name}: ${status}${message === null ? '' : `, ${message}`}`
    }
    if (kind === 'event') {
      const { emitters, subscribers, fire_count } = this.#topology[name]
      return `${name}: fired ${count(fire_count)} times, by ${emitters.join(', ') || 'nobody'}, to ${subscribers.join(', ') || 'nobody'}`
    }
    const { status, error, tools = [] } = this.#plugins[name] ?? { status: 'gone' }
    return `${name}: ${status}${error === undefined ? '' : `, ${error}`}${tools.length === 0 ? '' : `, takes ${tools.join(', ')}`}`
  }

  /** To the nearest node in that direction. */
  #onKey(event) {
    const from = this.#nodes.get(document.activeElement?.dataset?.id)
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

/** Where everything stands: layers of what is tied by events, below them plugins without events, below them the tools. */
function place(tied, edges, loose, tools) {
  const nodes = new Map()
  const widthOf = (id) => Math.round(split(id)[1].length * CHAR_WIDTH) + (id.startsWith('event ') ? 84 : 26)
  let x = PADDING
  let bottom = PADDING
  const layers = layersOf(tied, edges)
  const tallest = Math.max(0, ...layers.map((layer) => layer.length))
  for (const layer of layers) {
    const width = Math.max(...layer.map(widthOf))
    const top = PADDING + ((tallest - layer.length) * ROW_STEP) / 2
    layer.forEach((id, n) => {
      nodes.set(id, { x, y: top + n * ROW_STEP, width })
      bottom = Math.max(bottom, top + (n + 1) * ROW_STEP)
    })
    x += width + LAYER_GAP
  }
  const room = Math.max(640, x - LAYER_GAP + PADDING)
  bottom = flow(nodes, loose, widthOf, room, bottom + (tied.length > 0 && loose.length > 0 ? 20 : 0))
  bottom = flow(
    nodes,
    tools.map((name) => `tool ${name}`),
    widthOf,
    room,
    bottom + 36,
  )
  return { nodes, width: room, height: bottom + PADDING }
}

/** Lines of nodes, as words in a text. @returns where they end */
function flow(nodes, ids, widthOf, room, top) {
  let x = PADDING
  let y = top
  for (const id of ids) {
    const width = widthOf(id)
    if (x > PADDING && x + width > room - PADDING) {
      x = PADDING
      y += ROW_STEP
    }
    nodes.set(id, { x, y, width })
    x += width + TOOL_GAP
  }
  return ids.length === 0 ? top : y + NODE_HEIGHT
}

/** To the right; where the way leads back, to the left below it, or round below what is between. */
function curve(from, to) {
  const [y1, y2] = [from.y + NODE_HEIGHT / 2, to.y + NODE_HEIGHT / 2]
  if (to.x > from.x + from.width) return bow(from.x + from.width, y1 - 4, to.x - 3, y2 - 4)
  if (from.x - to.x - to.width < 2 * LAYER_GAP && from.x > to.x) return bow(from.x, y1 + 6, to.x + to.width + 3, y2 + 6)
  const [x1, x2] = [from.x + from.width / 2, to.x + to.width / 2]
  const [below, end] = [from.y + NODE_HEIGHT, to.y + NODE_HEIGHT]
  const deep = Math.max(below, end) + 34
  return `M${x1} ${below}C${x1} ${deep} ${x2} ${deep} ${x2} ${end + 3}`
}

function bow(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`
}

/** From a plugin down to a tool that it takes. */
function drop(from, to) {
  const [x1, y1, x2] = [from.x + from.width / 2, from.y + NODE_HEIGHT, to.x + to.width / 2]
  const middle = (y1 + to.y) / 2
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${to.y}`
}

function edgeOf(from, to, nodes) {
  const ends = [nodes.get(from), nodes.get(to)]
  if (to.startsWith('tool ')) return { class: 'edge edge-tool', d: drop(...ends) }
  const isBack = ends[1].x <= ends[0].x
  return { class: isBack ? 'edge edge-back' : 'edge', d: curve(...ends), 'marker-end': 'url(#arrow)' }
}

/** The tip of an edge, in its colour. */
function arrow() {
  const tip = svg('path', { class: 'arrow', d: 'M0 0L7 3.5L0 7Z' })
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

function split(id) {
  const at = id.indexOf(' ')
  return [id.slice(0, at), id.slice(at + 1)]
}

function legend() {
  const item = (kind, text) => el('span', { class: `legend legend-${kind}`, text })
  return el(
    'p',
    { class: 'legends' },
    item('plugin', 'plugin'),
    item('event', 'event, and how often it fired'),
    item('tool', 'tool'),
  )
}
