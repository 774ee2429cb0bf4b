import { copyButton, el, empty, facts, setAttribute, setText } from './dom.js'
import { Forest } from './forest.js'
import { ago, clock, count, duration, plural, rate, shortId } from './format.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 30
/** From so many new trees a second on, the list stands still while somebody points at it. */
const HOLD_TREES_PER_SEC = 3

/** Causal trees that grow as events happen, and what is known of the one that is chosen. */
export class EventsView {
  title = 'Events'
  element
  badge = ''
  #page
  #forest = new Forest()
  #list
  #rows = []
  #index = new Map()
  #activeKey = null
  #chosenKey = null
  #filter = el('input', {
    type: 'search',
    placeholder: 'Event, plugin, request or trace id',
    'aria-label': 'Filter events',
  })
  #failed = el('input', { type: 'checkbox' })
  #pause = el('button', { type: 'button', 'aria-pressed': 'false', text: 'Pause' })
  #note = el('p', { class: 'note' })
  #none
  #unfit = empty(
    'Nothing here fits the filter',
    el('p', { text: 'It looks at the last 2000 records that the page has.' }),
  )
  #detail = el('aside', { class: 'card detail', 'aria-label': 'The chosen event', tabindex: '-1' })
  #isPaused = false
  #isPointedAt = false
  #drawnVersion = -1
  #drawnTotal = 0
  #total = 0
  #treesPerSec = 0
  #recordsPerSec = 0
  #eventsPerSec = 0
  #treesBefore
  #totalBefore
  /** Which share of the events came as records. */
  #sampled = 1
  /** Plugin → the one route that it answers. */
  #routes = {}
  #paint

  constructor(page) {
    this.#page = page
    this.#paint = page.painter.job(() => this.#draw(), 120)
    this.#list = new VirtualList({
      rowHeight: ROW_HEIGHT,
      make: makeRow,
      fill: (row, index) => this.#fill(row, index),
      onScroll: () => this.#paint(true),
      role: 'tree',
      'aria-label': 'Causal trees, newest first. Arrow keys move, Enter shows the event',
      id: 'trees',
    })
    this.#none = empty(
      'No events yet',
      el('p', {
        text: 'An event appears here as soon as a plugin publishes one, and below it whatever it causes. Try:',
      }),
      el('pre', { class: 'command', tabindex: '0', text: tryCommand() }),
    )
    this.element = el(
      'section',
      { class: 'view events', 'aria-label': 'Events' },
      el(
        'div',
        { class: 'card list' },
        el(
          'div',
          { class: 'toolbar' },
          this.#filter,
          el('label', { class: 'check' }, this.#failed, 'Failed only'),
          this.#pause,
          this.#note,
        ),
        this.#none,
        this.#unfit,
        this.#list.element,
      ),
      this.#detail,
    )
    this.#listen()
    this.#showDetail()
  }

  #listen() {
    const { element } = this.#list
    const choose = () => {
      this.#drawnVersion = -1
      this.#list.element.scrollTop = 0
      this.#paint(true)
    }
    this.#filter.addEventListener('input', choose)
    this.#failed.addEventListener('change', choose)
    this.#pause.addEventListener('click', () => {
      this.#isPaused = !this.#isPaused
      setAttribute(this.#pause, 'aria-pressed', String(this.#isPaused))
      setText(this.#pause, this.#isPaused ? 'Resume' : 'Pause')
      this.#paint(true)
    })
    const point = (isPointedAt) => () => {
      this.#isPointedAt = isPointedAt
      this.#paint()
    }
    element.addEventListener('pointerenter', point(true))
    element.addEventListener('pointerleave', point(false))
    // Not after a click: the list would stand still long after the pointer has gone.
    element.addEventListener('focus', () => element.matches(':focus-visible') && point(true)())
    element.addEventListener('blur', point(false))
    element.addEventListener('click', ({ target }) => {
      const key = target.closest('.row')?.dataset.key
      if (key !== undefined) this.#choose(key)
    })
    element.addEventListener('keydown', (event) => this.#onKey(event))
    this.#detail.addEventListener('keydown', ({ key }) => {
      if (key === 'Escape') element.focus()
    })
  }

  // ── what the stream tells ────────────────────────────────────────────────

  onHello({ records, events_total, routes }, isOtherProcess) {
    this.#routes = routes
    if (isOtherProcess) this.#forest.clear()
    for (const record of records) this.#forest.add(record)
    this.#total = events_total
    this.#paint()
  }

  onLive({ records, failures, events_total }) {
    for (const record of records) this.#forest.add(record)
    for (const failure of failures) this.#forest.fail(failure)
    this.#recordsPerSec += records.length
    this.#total = events_total
    this.#paint()
    const chosen = this.#chosenNode()
    const concerns = ({ event_id, parent_id }) => (event_id ?? parent_id) === chosen?.record.id
    if (chosen && (records.some(concerns) || failures.some(concerns))) this.#showDetail()
  }

  onSecond({ routes }) {
    if (routes !== undefined) this.#routes = routes
    const { treesSeen } = this.#forest
    this.#treesPerSec = treesSeen - (this.#treesBefore ?? treesSeen)
    this.#treesBefore = treesSeen
    this.#eventsPerSec = this.#total - (this.#totalBefore ?? this.#total)
    this.#totalBefore = this.#total
    this.#sampled = this.#eventsPerSec > 0 ? Math.min(1, this.#recordsPerSec / this.#eventsPerSec) : 1
    this.#recordsPerSec = 0
    this.#paint()
  }

  /** The dead letters that the process keeps: failures from before the page was there. */
  onLetters(letters) {
    for (const letter of letters) this.#forest.fail({ ...letter, isLetter: true })
    this.#paint()
    if (this.#chosenNode()?.failures.length > 0) this.#showDetail()
  }

  has(eventId) {
    return this.#forest.node(eventId) !== undefined
  }

  /** Shows one event, wherever it is in the list. */
  reveal(eventId) {
    this.#filter.value = ''
    this.#failed.checked = false
    this.#drawnVersion = -1
    this.#isPaused = false
    this.#draw()
    this.#choose(eventId, true)
  }

  show() {
    this.#paint(true)
  }

  // ── the list ─────────────────────────────────────────────────────────────

  get #isHeld() {
    return this.#isPaused || (this.#isPointedAt && this.#treesPerSec > HOLD_TREES_PER_SEC)
  }

  #draw() {
    if (!this.element.isConnected) return
    const { version } = this.#forest
    const isAsked = this.#drawnVersion < 0
    if ((!this.#isHeld && this.#drawnVersion !== version) || isAsked) {
      this.#drawnVersion = version
      this.#drawnTotal = this.#total
      const atTop = this.#list.isAtTop
      const anchor = atTop ? undefined : this.#rows[this.#list.firstInView()]?.key
      const anchorWas = anchor === undefined ? 0 : this.#index.get(anchor)
      this.#rows = this.#forest.rows(matcher(this.#filter.value, this.#failed.checked))
      this.#index = new Map(this.#rows.map(({ key }, n) => [key, n]))
      const moved = anchor === undefined ? 0 : (this.#index.get(anchor) ?? anchorWas) - anchorWas
      this.#list.setCount(this.#rows.length, moved)
    }
    this.#none.hidden = this.#total > 0
    this.#unfit.hidden = this.#total === 0 || this.#rows.length > 0
    this.#list.element.hidden = this.#rows.length === 0
    this.#list.paint()
    this.#tellNote()
    const active = this.#index.has(this.#activeKey) ? rowId(this.#activeKey) : null
    setAttribute(this.#list.element, 'aria-activedescendant', active)
  }

  #tellNote() {
    let note = `${plural(this.#total, 'event')} since the start`
    if (this.#isHeld) {
      const fresh = this.#total - this.#drawnTotal
      note = `${this.#isPaused ? 'Paused' : 'Held while you look'} · ${count(fresh)} more since`
    } else if (this.#sampled < 0.98) {
      note = `${rate(this.#eventsPerSec)} a second · about ${Math.max(1, Math.round(this.#sampled * 100))} % drawn, all counted`
    }
    setText(this.#note, note)
  }

  #fill(row, index) {
    const entry = this.#rows[index]
    const { key, node, tree, depth, guides } = entry
    if (row.dataset.key !== key) {
      row.dataset.key = key
      row.id = rowId(key)
    }
    const { parts } = row
    if (row.dataset.guides !== guides) {
      row.dataset.guides = guides
      parts.guides.replaceChildren(...[...guides].map((guide) => el('i', { class: `guide guide-${GUIDES[guide]}` })))
    }
    const state = stateOf(node, tree)
    setAttribute(row, 'class', `row${node === null ? ' row-request' : ''} is-${state}`)
    setAttribute(row, 'aria-level', String(depth + 1))
    setAttribute(row, 'aria-selected', String(key === this.#chosenKey))
    setAttribute(row, 'data-active', key === this.#activeKey ? 'true' : null)
    if (node === null) {
      setText(parts.name, this.#titleOf(tree))
      setText(parts.from, shortId(tree.requestId))
      setText(parts.to, plural(tree.size + tree.more, 'event'))
      setText(parts.time, clock(tree.firstMs))
    } else {
      const { record } = node
      setText(parts.name, record.event)
      setText(parts.from, record.emitter)
      setText(parts.to, record.subscribers.length === 0 ? '' : `→ ${record.subscribers.join(', ')}`)
      setText(parts.time, depth === 0 ? clock(record.timestamp) : `+${offset(node.atMs - tree.firstMs)}`)
    }
    setText(parts.mark, state === 'failed' ? 'failed: ' : '')
  }

  // ── choosing ─────────────────────────────────────────────────────────────

  #onKey(event) {
    const last = this.#rows.length - 1
    if (last < 0) return
    const at = this.#index.get(this.#activeKey) ?? -1
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: Math.max(0, at - 1),
      PageDown: at + this.#list.rowsInView,
      PageUp: Math.max(0, at - this.#list.rowsInView),
      Home: 0,
      End: last,
    }
    if (event.key === 'Enter' || event.key === ' ') {
      if (at >= 0) this.#choose(this.#activeKey, true)
    } else if (event.key === 'ArrowLeft') {
      const up = this.#rows[at]?.node?.parent
      this.#activate(up?.record.id ?? this.#rows[at]?.tree.key ?? this.#rows[0].key)
    } else if (event.key in moves) this.#activate(this.#rows[Math.min(last, moves[event.key])].key)
    else return
    event.preventDefault()
  }

  #activate(key) {
    this.#activeKey = key
    const at = this.#index.get(key)
    if (at !== undefined) this.#list.reveal(at)
    this.#paint(true)
  }

  #choose(key, withFocus = false) {
    this.#chosenKey = key
    this.#activate(key)
    this.#showDetail()
    if (withFocus) this.#detail.focus()
    if (matchMedia('(max-width: 900px)').matches) this.#detail.scrollIntoView({ block: 'start' })
  }

  #chosenNode() {
    return this.#chosenKey === null ? undefined : this.#forest.node(this.#chosenKey)
  }

  /** Drawn anew while somebody is in it, the focus stays on the same button. */
  #showDetail() {
    const within = this.#detail.contains(document.activeElement) ? nameOf(document.activeElement) : null
    this.#detail.replaceChildren(...this.#detailParts())
    if (within === null) return
    const same = [...this.#detail.querySelectorAll('button')].find((button) => nameOf(button) === within)
    ;(same ?? this.#detail).focus()
  }

  #detailParts() {
    const node = this.#chosenNode()
    if (node !== undefined) return this.#eventDetail(node)
    const row = this.#rows[this.#index.get(this.#chosenKey)]
    if (row !== undefined && row.node === null) return this.#requestDetail(row.tree)
    const hint =
      this.#chosenKey === null
        ? 'Choose a row: its record, its request and what became of it are shown here.'
        : 'It is not kept any more: newer events have taken its place.'
    return [el('p', { class: 'note', text: hint })]
  }

  #titleOf({ roots }) {
    return this.#routes[roots[0].record.emitter] ?? 'HTTP request'
  }

  #requestDetail(tree) {
    const traceId = tree.roots.find(({ record }) => record.trace_id)?.record.trace_id
    return [
      el('h2', { text: this.#titleOf(tree) }),
      facts([
        ['Request id', el('code', { text: tree.requestId }), copyButton(tree.requestId, 'the request id')],
        traceRow(traceId),
        ['Answered by', [...new Set(tree.roots.map(({ record }) => record.emitter))].join(', ')],
        ['First event', `${clock(tree.firstMs)} (${ago(tree.roots[0].record.timestamp)})`],
        ['Events', `${count(tree.size + tree.more)}, over ${offset(tree.lastMs - tree.firstMs)}`],
        ['Not kept', tree.more === 0 ? null : `${plural(tree.more, 'event')} of this tree are counted, not drawn`],
      ]),
    ]
  }

  #eventDetail(node) {
    const { record, tree, children, failures } = node
    const link = (id, text) =>
      el('button', { class: 'linkish', type: 'button', text, on: { click: () => this.#choose(id, true) } })
    const cause =
      record.parent_id === null
        ? record.request_id === null
          ? 'nothing: published outside of any subscriber'
          : link(tree.key, this.#titleOf(tree))
        : this.has(record.parent_id)
          ? link(record.parent_id, this.#forest.node(record.parent_id).record.event)
          : `${shortId(record.parent_id)}, not in view any more`
    return [
      el('h2', { text: record.event }),
      facts([
        ['Id', el('code', { text: record.id }), copyButton(record.id, 'the event id')],
        ['Published', `${clock(record.timestamp)}, by ${record.emitter}`],
        ['Caused by', cause],
        ['Request id', ...idWithCopy(record.request_id, 'the request id')],
        traceRow(record.trace_id),
        ['Subscribers', record.subscribers.length === 0 ? 'nobody' : record.subscribers.join(', ')],
        ['Payload keys', record.payload_keys.length === 0 ? 'none' : chips(record.payload_keys)],
        ['Has caused', children.length === 0 ? 'nothing so far' : plural(children.length, 'event')],
      ]),
      ...failures.map((failure) => this.#failureCard(failure)),
    ]
  }

  #failureCard({ event_id, subscriber, error, attempts }) {
    const letter = this.#page.deadLetters.find((each) => each.event_id === event_id && each.subscriber === subscriber)
    return el(
      'div',
      { class: 'failure' },
      el('h3', { text: `${subscriber} failed` }),
      facts([
        [
          'Attempts',
          attempts === 1 ? '1, no retry' : `${attempts}, of them ${plural(attempts - 1, 'retry', 'retries')}`,
        ],
        ['Error', el('code', { class: 'wrap', text: error })],
        ['Dead letter', letter === undefined ? 'none any more' : el('code', { text: letter.id })],
      ]),
      letter === undefined ? null : this.#page.letterButtons(letter),
    )
  }
}

const GUIDES = { I: 'on', T: 'tee', L: 'end', ' ': 'none' }

function makeRow() {
  const parts = {
    guides: el('span', { class: 'guides', 'aria-hidden': 'true' }),
    mark: el('span', { class: 'unseen' }),
    name: el('span', { class: 'row-name' }),
    from: el('span', { class: 'row-from' }),
    to: el('span', { class: 'row-to' }),
    time: el('span', { class: 'row-time' }),
  }
  const dot = el('span', { class: 'dot', 'aria-hidden': 'true' })
  const row = el(
    'div',
    { class: 'row', role: 'treeitem' },
    parts.guides,
    dot,
    parts.mark,
    parts.name,
    parts.from,
    parts.to,
    parts.time,
  )
  row.parts = parts
  return row
}

function stateOf(node, tree) {
  if (node === null) return tree.failed ? 'touched' : 'request'
  if (node.failures.length > 0) return 'failed'
  return node.record.event === 'event.delivery.failed' ? 'report' : 'event'
}

/** Timestamps have whole milliseconds. */
function offset(ms) {
  return ms < 1000 ? `${ms} ms` : duration(ms)
}

function rowId(key) {
  return `row-${key}`
}

/** @returns null when all fit */
function matcher(text, isFailed) {
  const wanted = text.trim().toLowerCase()
  if (wanted === '' && !isFailed) return null
  return ({ record }, tree) =>
    (tree.failed || !isFailed) &&
    [record.event, record.emitter, record.id, record.request_id, record.trace_id, ...record.subscribers].some((each) =>
      each?.toLowerCase().includes(wanted),
    )
}

function nameOf(element) {
  return element.getAttribute('aria-label') ?? element.textContent
}

function idWithCopy(id, what) {
  return id === null || id === undefined
    ? ['none: not caused by a request']
    : [el('code', { text: id }), copyButton(id, what)]
}

function traceRow(traceId) {
  return ['Trace id', ...(traceId ? [el('code', { text: traceId }), copyButton(traceId, 'the trace id')] : [])]
}

function chips(texts) {
  return el('span', { class: 'chips' }, ...texts.map((text) => el('code', { class: 'chip', text })))
}

function tryCommand() {
  return `curl -X POST ${location.origin}/users -H 'content-type: application/json' \\
  -d '{"name":"Ada","email":"ada@example.com","password":"correct horse"}'`
}
