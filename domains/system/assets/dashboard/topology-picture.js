import { el, empty, setAttribute, setText, svg } from './dom.js'
import { count } from './format.js'
import { isIll as isIllTool } from './tool-health.js'
import { edgeOf, NODE_HEIGHT, place, split } from './topology-layout.js'

const HINT = 'Point at a node, or move to it with the arrow keys, to see what it is connected to.'

/** Plugins, events and tools as a graph. The node under the pointer or with the focus is highlighted, with its neighbours. */
export class TopologyPicture {
  element = el('div', { class: 'picture' })
  /** Describes the highlighted node. */
  note = el('p', { class: 'note', text: HINT })
  #topology = {}
  #plugins = {}
  #tools = {}
  #nodes = new Map()
  #edges = []

  constructor() {
    this.element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  /**
   * @param {Record<string, object>} topology by event
   * @param {Record<string, object>} plugins by name, as `/system/status` has them
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
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.id : undefined
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
      this.element.replaceChildren(
        empty(
          'No plugins yet',
          el('p', { text: 'Write one in domains/<domain>/plugins/: it appears here with its events and tools.' }),
        ),
      )
    else this.element.replaceChildren(root)
    const first = this.#nodes.get(focused) ?? this.#nodes.values().next().value
    first?.element.setAttribute('tabindex', '0')
    if (focused !== undefined) first?.element.focus()
  }

  #renderNode(layer, id, { x, y, width }) {
    const [kind, name] = split(id)
    const health = kind === 'plugin' ? this.#plugins[name] : kind === 'tool' ? this.#tools[name] : undefined
    const isIll = health !== undefined && (kind === 'tool' ? isIllTool(health) : health.status !== 'OK')
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

/** The arrowhead of an edge, in the edge's colour. */
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

export function legend() {
  const item = (kind, text) => el('span', { class: `legend legend-${kind}`, text })
  return el(
    'p',
    { class: 'legends' },
    item('plugin', 'plugin'),
    item('event', 'event, and how often it fired'),
    item('tool', 'tool'),
  )
}
