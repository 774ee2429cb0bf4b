import { count, rate } from './format.js'
import { html, nothing, render, svg } from './lit-html.js'
import { addressOfSearch } from './page.js'
import { empty } from './parts.js'
import { fetchJson } from './process.js'
import { isIll as isIllTool } from './tools.js'
import { edgeOf, NODE_HEIGHT, place, split } from './topology-layout.js'
import { Viewport } from './topology-viewport.js'
import { View } from './view.js'

/** Pixels: wider lines of nodes are hard to follow. */
const ROOM_MAX = 1200
const ROOM_STEP = 20
const HINT =
  'Point at a node, or move to it with the arrow keys: it shows what it is connected to, and leads to its requests.'

/** Plugins, events and tools as a graph, and the events as a table. The node under the pointer or with the focus is highlighted, with its neighbours. */
export class TopologyView extends View {
  #topology = {}
  #plugins = {}
  #tools = {}
  #rates = new Map()
  #showsSystem = false
  #scanned = false
  #viewport = new Viewport(() => this.paint(true))
  /** The nodes with their places, and the edges: `[from, to]`. */
  #nodes = new Map()
  #edges = []
  /** What they were laid out from. */
  #shape = ''
  /** The node that is highlighted, and the one that Tab leads to. */
  #near = null
  #entry = null

  constructor(page) {
    super(page, 'Topology', 'topology', 500)
    const { svg: picture } = this.#viewport
    picture.setAttribute('role', 'group')
    picture.setAttribute(
      'aria-label',
      'Plugins, events and tools. Arrow keys move between them, Shift and arrow keys move the picture, + and − zoom, 0 shows all',
    )
    picture.addEventListener('pointerover', ({ target }) => this.#highlight(target))
    picture.addEventListener('pointerleave', () => this.#highlight(null))
    picture.addEventListener('focusin', ({ target }) => {
      this.#highlight(target)
      const node = this.#nodes.get(this.#near)
      if (/** @type {Element} */ (target).matches(':focus-visible'))
        this.#viewport.reveal({ ...node, height: NODE_HEIGHT })
    })
    picture.addEventListener('focusout', () => this.#highlight(null))
    picture.addEventListener('keydown', (event) => this.#onKey(event))
    new ResizeObserver(() => this.paint()).observe(this.#viewport.element)
  }

  onHello({ topology, status }, isOtherProcess) {
    if (isOtherProcess) {
      this.#topology = {}
      this.#scanned = false
    }
    Object.assign(this.#topology, topology)
    this.#learn(status)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ topology, status }) {
    this.#rates.clear()
    for (const [event, { fire_count: fired }] of Object.entries(topology)) {
      const before = this.#topology[event]?.fire_count
      if (before !== undefined && fired > before) this.#rates.set(event, fired - before)
    }
    Object.assign(this.#topology, topology)
    if (status !== undefined) this.#learn(status)
    this.paint()
  }

  #learn({ plugins, tools }) {
    this.#plugins = plugins
    this.#tools = tools
    this.paint()
  }

  show() {
    super.show()
    if (!this.#scanned) void this.#scan()
  }

  /** Adds the events that the sources name and that have not fired yet. */
  async #scan() {
    this.#scanned = true
    const { topology } = (await fetchJson('/system/events')) ?? { topology: {} }
    for (const [event, entry] of Object.entries(topology)) {
      if (entry.note !== undefined) this.#topology[event] = entry
    }
    this.paint(true)
  }

  draw() {
    if (!this.element.isConnected) return
    super.draw()
    const inFocus = idOf(document.activeElement)
    if (this.#layOut()) super.draw()
    render(this.#picture(), this.#viewport.svg)
    // Another picture may have another node in the place of the one with the focus.
    if (inFocus !== null && idOf(document.activeElement) !== inFocus) this.#element(this.#entry)?.focus()
  }

  content() {
    const isEmpty = this.#nodes.size === 0
    this.#viewport.element.hidden = isEmpty
    const hint = 'Write one in domains/<domain>/plugins/: it appears here with its events and tools.'
    const showSystem = ({ target }) => {
      this.#showsSystem = target.checked
      this.draw()
    }
    return html`
      <div class="card">
        <div class="toolbar">
          <label class="check"><input type="checkbox" @change=${showSystem}>System plugins</label>
          ${isEmpty ? nothing : this.#viewport.controls()}
        </div>
        <div class="picture" data-chosen=${this.#near === null ? nothing : 'true'}>
          ${this.#viewport.element}${isEmpty ? empty('No plugins yet', hint) : nothing}
        </div>
        <p class="note node-note">${this.#near === null ? HINT : this.#describe(this.#near)}</p>
        <p class="legends">
          <span class="legend">plugin</span><span class="legend" data-tone="accent">event, and how often it fired</span>
          <span class="legend" data-tone="violet">tool</span>
        </p>
      </div>
      <div class="card scrolls" tabindex="0" role="region" aria-label="Events">${this.#table()}</div>`
  }

  #table() {
    const events = Object.entries(this.#topology).sort(([a], [b]) => (a < b ? -1 : 1))
    const row = ([event, { emitters, subscribers, note, fire_count }]) => html`
      <tr>
        <th scope="row">${event}${note === undefined ? nothing : html`<span class="tag">never fired</span>`}</th>
        <td data-label="Published by">${emitters.join(', ') || '–'}</td>
        <td data-label="Subscribers">${subscribers.join(', ') || 'nobody'}</td>
        <td class="number" data-label="Fired">${count(fire_count)}</td>
        <td class="number" data-label="Per second">${this.#rates.has(event) ? rate(this.#rates.get(event)) : ''}</td>
      </tr>`
    return html`
      <table class="topology-events stacked">
        <caption>Events</caption>
        <thead><tr>
          <th scope="col">Event</th><th scope="col">Published by</th><th scope="col">Subscribers</th>
          <th scope="col" class="number">Fired</th><th scope="col" class="number">Per second</th>
        </tr></thead>
        <tbody>${events.length === 0 ? html`<tr><td colspan="5">No plugin publishes or subscribes to an event.</td></tr>` : events.map(row)}</tbody>
      </table>`
  }

  // ── the picture ──────────────────────────────────────────────────────────

  /** The width that there is, in steps: a picture of another width is laid out anew. */
  get #roomWidth() {
    return Math.min(ROOM_MAX, Math.floor(this.#viewport.element.clientWidth / ROOM_STEP) * ROOM_STEP)
  }

  /** Places the nodes anew where something else is to be seen. @returns whether it was */
  #layOut() {
    const isShown = (plugin) => this.#showsSystem || !plugin.startsWith('system.')
    const plugins = Object.keys(this.#plugins).filter(isShown)
    const edges = []
    const ids = new Set(plugins.map((plugin) => `plugin ${plugin}`))
    for (const [event, { emitters, subscribers }] of Object.entries(this.#topology)) {
      // The system domain's own events about failures appear once a failure has happened.
      if (![...emitters, ...subscribers].some((plugin) => ids.has(`plugin ${plugin}`))) continue
      for (const plugin of emitters) edges.push([`plugin ${plugin}`, `event ${event}`])
      for (const plugin of subscribers) edges.push([`event ${event}`, `plugin ${plugin}`])
    }
    for (const id of edges.flat()) ids.add(id)
    const uses = plugins.flatMap((plugin) =>
      (this.#plugins[plugin].tools ?? [])
        .filter((tool) => tool in this.#tools)
        .map((tool) => [`plugin ${plugin}`, `tool ${tool}`]),
    )
    const tools = Object.keys(this.#tools).sort()
    const shape = JSON.stringify([[...ids], edges, uses, tools, this.#roomWidth])
    if (shape === this.#shape) return false
    this.#shape = shape
    const tied = new Set(edges.flat())
    const sorted = [...ids].sort()
    const isTied = (id) => tied.has(id)
    const loose = sorted.filter((id) => !isTied(id))
    const { nodes, width, height } = place(sorted.filter(isTied), edges, loose, tools, this.#roomWidth)
    this.#nodes = nodes
    this.#edges = [...edges, ...uses]
    if (!nodes.has(this.#entry)) this.#entry = nodes.keys().next().value ?? null
    if (!nodes.has(this.#near)) this.#near = null
    this.#viewport.resize({ width, height })
    return true
  }

  #picture() {
    const neighbours = new Set(this.#edges.filter((edge) => edge.includes(this.#near)).flat())
    return svg`
      <defs><marker id="arrow" viewBox="0 0 7 7" refX="5" refY="3.5" markerWidth="6" markerHeight="6" orient="auto">
        <path class="arrow" d="M0 0L7 3.5L0 7Z"></path></marker></defs>
      <g>${this.#edges.map((edge) => this.#edge(edge))}</g>
      <g>${[...this.#nodes].map(([id, box]) => this.#node(id, box, neighbours))}</g>`
  }

  #edge(edge) {
    const [from, to] = edge
    const { kind, d, marker } = edgeOf(from, to, this.#nodes)
    const near = edge.includes(this.#near) ? 'true' : nothing
    return svg`<path class=${`edge ${kind}`} d=${d} marker-end=${marker ?? nothing} data-near=${near}></path>`
  }

  #node(id, { x, y, width }, neighbours) {
    const [kind, name] = split(id)
    const { fire_count: fired } = this.#topology[name] ?? {}
    const isEvent = kind === 'event'
    const health = kind === 'plugin' ? this.#plugins[name] : kind === 'tool' ? this.#tools[name] : undefined
    const isIll = health !== undefined && (kind === 'tool' ? isIllTool(health) : health.status !== 'OK')
    const label = `${kind} ${name}${isIll ? `, ${health.status}: ${health.error ?? health.message ?? ''}` : ''}`
    const near = this.#near === null ? nothing : String(id === this.#near || neighbours.has(id))
    const counter = svg`<text class="node-count" x=${width - 12} y="22" text-anchor="end">${fired === 0 ? 'never' : count(fired ?? 0)}</text>`
    return svg`
      <a class=${`node ${isEvent && fired === 0 ? 'is-dormant' : ''}`} data-id=${id} data-tone=${isIll ? 'bad' : (TONES[kind] ?? nothing)}
        data-near=${near} data-busy=${isEvent && this.#rates.has(name) ? 'true' : nothing} transform=${`translate(${x} ${y})`}
        href=${addressOf(kind, name)} tabindex=${id === this.#entry ? '0' : '-1'} aria-label=${label}>
        <rect width=${width} height=${NODE_HEIGHT} rx=${isEvent ? NODE_HEIGHT / 2 : 7}></rect>
        <text x=${isEvent ? 16 : 12} y="22">${name}</text>${isEvent ? counter : nothing}
      </a>`
  }

  #element(id) {
    return /** @type {SVGElement} */ (this.#viewport.svg.querySelector(`[data-id="${CSS.escape(id ?? '')}"]`))
  }

  /** Highlights the node that an element belongs to, if it does. */
  #highlight(element) {
    this.#near = idOf(element)
    this.paint(true)
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
    const from = this.#nodes.get(idOf(document.activeElement))
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key]
    if (from === undefined || direction === undefined) return
    event.preventDefault()
    let best = null
    let bestDistance = Number.POSITIVE_INFINITY
    for (const [id, node] of this.#nodes) {
      const [dx, dy] = [node.x + node.width / 2 - from.x - from.width / 2, node.y - from.y]
      const along = dx * direction[0] + dy * direction[1]
      const across = Math.abs(dx * direction[1]) + Math.abs(dy * direction[0])
      const distance = along + across * 2
      if (node === from || along < 8 || distance >= bestDistance) continue
      best = id
      bestDistance = distance
    }
    if (best === null) return
    this.#entry = best
    this.draw()
    this.#element(best).focus()
  }
}

/** Plugins have the colours of the page. */
const TONES = { event: 'accent', tool: 'violet' }

/** The id of the node that an element belongs to; null for another one. */
const idOf = (element) => element?.closest('[data-id]')?.getAttribute('data-id') ?? null

/** Where a node leads: to the requests of a plugin, to those that have to do with an event, to the calls of a tool. */
function addressOf(kind, name) {
  if (kind === 'tool') return '/system/dashboard#tools'
  return addressOfSearch(kind === 'plugin' ? `plugin:${name}` : `"${name}"`)
}
