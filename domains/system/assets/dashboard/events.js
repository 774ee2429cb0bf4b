import { applicationOrigin } from '/system/dashboard/application.js'
import { copyButton, el, empty, facts, setAttribute, setText } from '/system/dashboard/dom.js'
import { letterReplays, outcomeOf } from './dead-letter-actions.js'
import { Forest } from './forest.js'
import { clock, count, offset, plural, rate, shortId, whenAndAgo } from './format.js'
import { addressOfLetter, inPage, linkToRequest, named } from './page.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 30
/** With more new trees a second than this, the list is not redrawn while the pointer is on it. */
const HOLD_TREES_PER_SEC = 3

/** Causal trees that grow as events happen, and the details of the chosen one. */
export class EventsView {
  title = 'Events'
  element
  badge = ''
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
  #pause = el('button', { type: 'button', 'aria-pressed': 'false' }, 'Pause')
  #note = el('p.note')
  #none
  /** A command to try, shown when the process has its route. */
  #example = el('div', { hidden: true }, el('p', {}, 'Try:'), el('pre', { tabindex: '0' }, tryCommand()))
  #unfit = empty(
    'No event matches the filter',
    el('p', {}, 'The filter searches the last 2000 records, which the page keeps.'),
  )
  #detail
  #isPaused = false
  /** What keeps the list as it is, as the note says it; null: nothing. */
  #heldBy = null
  #isHeld = false
  #drawnVersion = -1
  #drawnTotal = 0
  #total = 0
  #treesPerSec = 0
  #recordsPerSec = 0
  #eventsPerSec = 0
  #treesBefore
  #totalBefore
  /** The share of the events that came as records. */
  #sampled = 1
  /** Plugin → the one route that it answers. */
  #routes = {}
  #paint

  /** The snapshot of the process has come. */
  #hasBegun = false
  /** The event that the address names and that was shown. */
  #sought = null
  #page

  constructor(page) {
    this.#page = page
    this.#detail = new EventDetail(page, {
      forest: this.#forest,
      titleOf: (tree) => this.#titleOf(tree),
      choose: (key) => this.reveal(key),
    })
    this.#paint = page.painter.job(() => this.#draw(), 120)
    this.#list = new VirtualList({
      rowHeight: ROW_HEIGHT,
      make: makeRow,
      fill: (row, index) => this.#fill(row, this.#rows[index]),
      onScroll: () => this.#paint(true),
      role: 'tree',
      'aria-label': 'Causal trees, newest first. Arrow keys move, Enter shows the event',
      id: 'trees',
    })
    this.#none = empty(
      'No events yet',
      el('p', {}, 'An event appears here as soon as a plugin publishes one, with the events that it causes below it.'),
      this.#example,
    )
    this.element = el(
      'section.view.events',
      { 'aria-label': 'Events' },
      el(
        'div.card.list',
        {},
        el(
          'div.toolbar',
          {},
          this.#filter,
          el('label.check', {}, this.#failed, 'Failed only'),
          this.#pause,
          this.#note,
        ),
        this.#none,
        this.#unfit,
        this.#list.element,
      ),
      this.#detail.element,
    )
    this.#listen()
    this.#detail.show(this.#chosenKey)
  }

  #listen() {
    const { element } = this.#list
    addEventListener('popstate', () => {
      this.#sought = null
      if (this.element.isConnected) this.#seek()
    })
    letterReplays.listen(() => this.#chosenNode()?.failures.length > 0 && this.#detail.show(this.#chosenKey))
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
    const held = (by) => () => {
      this.#heldBy = by
      this.#hold()
      this.#paint()
    }
    // A finger has no pointer that stays on the list, or leaves it.
    element.addEventListener(
      'pointerenter',
      ({ pointerType }) => pointerType === 'touch' || held('the pointer is on it')(),
    )
    element.addEventListener('pointerleave', held(null))
    // The focus of a click does not count: the list would stay still long after the pointer has left.
    element.addEventListener('focus', () => element.matches(':focus-visible') && held('it has the focus')())
    element.addEventListener('blur', held(null))
    element.addEventListener('click', ({ target }) => {
      const key = target.closest('.row')?.dataset.key
      if (key !== undefined) this.#choose(key)
    })
    element.addEventListener('keydown', (event) => this.#onKey(event))
    this.#detail.element.addEventListener('keydown', ({ key }) => {
      if (key === 'Escape') element.focus()
    })
  }

  // ── frames of the stream ─────────────────────────────────────────────────

  onHello({ records, events_total, routes }, isOtherProcess) {
    this.#routes = routes
    this.#example.hidden = !Object.values(routes).includes('POST /users')
    if (isOtherProcess) this.#forest.clear()
    for (const record of records) this.#forest.add(record)
    this.#total = events_total
    this.#hasBegun = true
    this.#paint()
    if (this.element.isConnected) this.#seek()
  }

  onLive({ records, failures, events_total }) {
    for (const record of records) this.#forest.add(record)
    for (const failure of failures) this.#forest.fail(failure)
    this.#recordsPerSec += records.length
    this.#total = events_total
    this.#paint()
    const chosen = this.#chosenNode()
    const concerns = ({ event_id, parent_id }) => (event_id ?? parent_id) === chosen?.record.id
    if (chosen && (records.some(concerns) || failures.some(concerns))) this.#detail.show(this.#chosenKey)
  }

  /** @param {import('../../dashboard/frames.ts').SecondFrame} frame */
  onSecond({ routes }) {
    if (routes !== undefined) this.#routes = routes
    const { treesSeen } = this.#forest
    this.#treesPerSec = treesSeen - (this.#treesBefore ?? treesSeen)
    this.#treesBefore = treesSeen
    this.#eventsPerSec = this.#total - (this.#totalBefore ?? this.#total)
    this.#totalBefore = this.#total
    this.#sampled = this.#eventsPerSec > 0 ? Math.min(1, this.#recordsPerSec / this.#eventsPerSec) : 1
    this.#recordsPerSec = 0
    this.#hold()
    this.#paint()
  }

  /** Takes the dead letters that the process keeps, among them failures from before the page was opened. */
  onLetters(letters) {
    for (const letter of letters) this.#forest.fail(letter)
    this.#paint()
    if (this.#chosenNode()?.failures.length > 0) this.#detail.show(this.#chosenKey)
  }

  has(eventId) {
    return this.#forest.node(eventId) !== undefined
  }

  /** Shows one event, wherever it is in the list. @param key of an event or a tree */
  reveal(key) {
    // It may be what a filter leaves out, or newer than what a held list shows.
    if (!this.#index.has(key)) {
      this.#filter.value = ''
      this.#failed.checked = false
      this.#drawnVersion = -1
    }
    this.#draw()
    this.#choose(key, true)
    const at = this.#index.get(key)
    if (at !== undefined) this.#list.center(at)
    this.#page.notices.tell('event', 'warn', at === undefined ? goneText(key) : null, true)
  }

  show() {
    // A pointer that was on the list when it was taken away has not left it.
    this.#heldBy = null
    this.#hold()
    this.#paint(true)
    this.#seek()
  }

  /** Shows the event that the address names, once the page has its events. */
  #seek() {
    const id = named('event')
    if (id === null || !this.#hasBegun || id === this.#sought) return
    this.#sought = id
    this.reveal(id)
  }

  // ── the list ─────────────────────────────────────────────────────────────

  /** Begins to hold the list where it would move away under the reader, and ends it when the reader has left: not earlier, or it would jump. */
  #hold() {
    this.#isHeld = this.#heldBy !== null && (this.#isHeld || this.#treesPerSec > HOLD_TREES_PER_SEC)
  }

  #draw() {
    if (!this.element.isConnected) return
    const { version } = this.#forest
    const isAsked = this.#drawnVersion < 0
    if ((!this.#isHeld && !this.#isPaused && this.#drawnVersion !== version) || isAsked) {
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
    if (this.#isHeld || this.#isPaused) {
      const fresh = this.#total - this.#drawnTotal
      note = `${this.#isPaused ? 'Paused' : `The list is held while ${this.#heldBy}`} · ${count(fresh)} more since`
    } else if (this.#sampled < 0.98) {
      note = `${rate(this.#eventsPerSec)} a second · about ${Math.max(1, Math.round(this.#sampled * 100))} % drawn, all counted`
    }
    setText(this.#note, note)
  }

  #fill(row, entry) {
    fillRow(row, entry, {
      title: this.#titleOf(entry.tree),
      isChosen: entry.key === this.#chosenKey,
      isActive: entry.key === this.#activeKey,
    })
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
    this.#detail.show(this.#chosenKey)
    if (withFocus) this.#detail.element.focus()
    if (matchMedia('(max-width: 900px)').matches) this.#detail.element.scrollIntoView({ block: 'start' })
  }

  #chosenNode() {
    return this.#chosenKey === null ? undefined : this.#forest.node(this.#chosenKey)
  }

  #titleOf({ roots }) {
    return this.#routes[roots[0].record.emitter] ?? 'HTTP request'
  }
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

const goneText = (key) =>
  `${key.replace(/^request:/, '')} is not in the list any more: the page keeps the last 2000 events. Its request may still tell of it.`

function tryCommand() {
  return `curl -X POST ${applicationOrigin()}/users -H 'content-type: application/json' \\
  -d '{"name":"Ada","email":"ada@example.com","password":"correct horse"}'`
}

const GUIDES = { I: 'on', T: 'tee', L: 'end', ' ': 'none' }

/** An empty row of a tree. */
function makeRow() {
  const parts = {
    guides: el('span.guides', { 'aria-hidden': 'true' }),
    mark: el('span.unseen'),
    name: el('span.row-name'),
    from: el('span.row-from'),
    to: el('span.row-to'),
    time: el('span.row-time'),
  }
  const dot = el('span.dot', { 'aria-hidden': 'true' })
  const row = el(
    'div.row',
    { role: 'treeitem' },
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

/**
 * Lets a row show an entry of `Forest.rows`.
 * @param {{ title: string, isChosen: boolean, isActive: boolean }} how `title` is the title of its tree
 */
function fillRow(row, { key, node, tree, depth, guides, position, setSize }, how) {
  const { title, isChosen, isActive } = how
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
  setAttribute(row, 'aria-setsize', String(setSize))
  setAttribute(row, 'aria-posinset', String(position))
  setAttribute(row, 'aria-selected', String(isChosen))
  setAttribute(row, 'data-active', isActive ? 'true' : null)
  if (node === null) {
    setText(parts.name, title)
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

/** The id of the element that shows an entry. */
function rowId(key) {
  return `row-${key}`
}

/** The details of a request or an event: its record, its cause, and the deliveries that failed. */
class EventDetail {
  element = el('aside.card.detail', { 'aria-label': 'The chosen event', tabindex: '-1' })
  #page
  #forest
  #titleOf
  #choose

  /**
   * @param page the state that the views share
   * @param {{ forest: import('./forest.js').Forest, titleOf: (tree) => string, choose: (key: string) => void }} list
   */
  constructor(page, { forest, titleOf, choose }) {
    this.#page = page
    this.#forest = forest
    this.#titleOf = titleOf
    this.#choose = choose
  }

  /**
   * Renders the details again, and keeps the focus on the same button.
   * @param key of an event or a tree; null when nothing is chosen
   */
  show(key) {
    const within = this.element.contains(document.activeElement) ? nameOf(document.activeElement) : null
    this.element.replaceChildren(...this.#parts(key))
    if (within === null) return
    const same = [...this.element.querySelectorAll('button')].find((button) => nameOf(button) === within)
    ;(same ?? this.element).focus()
  }

  #parts(key) {
    const node = this.#forest.node(key)
    if (node !== undefined) return this.#eventDetail(node)
    const tree = this.#forest.tree(key)
    if (tree !== undefined) return this.#requestDetail(tree)
    if (key === null) return [el('p.note', {}, 'Choose a row to see its record, its request and its outcome.')]
    return [
      el('h2', {}, 'It is no longer in the list'),
      el('p.note', {}, 'The page keeps the last 2000 events; newer ones have taken its place.'),
      linkToRequest(key.replace(/^request:/, ''), 'What the history keeps of it'),
    ]
  }

  #requestDetail(tree) {
    const traceId = tree.roots.find(({ record }) => record.trace_id)?.record.trace_id
    return [
      el('h2', {}, this.#titleOf(tree)),
      facts([
        ['Request', linkToRequest(tree.requestId), copyButton(() => tree.requestId, 'the request id')],
        traceRow(traceId),
        ['Answered by', [...new Set(tree.roots.map(({ record }) => record.emitter))].join(', ')],
        ['First event', whenAndAgo(tree.roots[0].record.timestamp)],
        ['Events', `${count(tree.size + tree.more)}, over ${offset(tree.lastMs - tree.firstMs)}`],
        ['Not kept', tree.more === 0 ? null : `${plural(tree.more, 'event')} of this tree are counted, not drawn`],
      ]),
    ]
  }

  #eventDetail(node) {
    const { record, tree, children, failures } = node
    const link = (id, text) => el('button.linkish', { type: 'button', click: () => this.#choose(id) }, text)
    const cause =
      record.parent_id === null
        ? record.request_id === null
          ? 'nothing: published outside of any subscriber'
          : link(tree.key, this.#titleOf(tree))
        : this.#forest.node(record.parent_id) !== undefined
          ? link(record.parent_id, this.#forest.node(record.parent_id).record.event)
          : `${shortId(record.parent_id)}, no longer kept`
    return [
      el('h2', {}, record.event),
      facts([
        ['Id', el('code', {}, record.id), copyButton(() => record.id, 'the event id')],
        ['Published', whenAndAgo(record.timestamp), `, by ${record.emitter}`],
        ['Caused by', cause],
        ['Request', ...requestOf(record)],
        traceRow(record.trace_id),
        ['Subscribers', record.subscribers.length === 0 ? 'nobody' : record.subscribers.join(', ')],
        ['Payload keys', record.payload_keys.length === 0 ? 'none' : chips(record.payload_keys)],
        ['Has caused', children.length === 0 ? 'nothing so far' : plural(children.length, 'event')],
      ]),
      ...failures.map((failure) => this.#failureCard(failure)),
    ]
  }

  #failureCard({ event_id, subscriber, error, attempts }) {
    const replayed = letterReplays.of({ event_id, subscriber })
    const letter = this.#page.deadLetters.find((each) => each.event_id === event_id && each.subscriber === subscriber)
    return el(
      'div.failure',
      {},
      el('h3', {}, `${subscriber} failed`),
      facts([
        [
          'Attempts',
          attempts === 1 ? '1, no retry' : `${attempts}, of them ${plural(attempts - 1, 'retry', 'retries')}`,
        ],
        ['Error', el('code.wrap', {}, error)],
        ['Dead letter', letter === undefined ? null : inPage(addressOfLetter(letter.id), letter.id)],
        ['Replay', replayed === undefined ? null : outcomeOf(replayed.replay)],
      ]),
      letter === undefined ? null : this.#page.letterButtons(letter),
    )
  }
}

function nameOf(element) {
  return element.getAttribute('aria-label') ?? element.textContent
}

/** Of an event that no request has caused, the run of the job that has, if one has. */
function requestOf({ id, request_id: requestId }) {
  return requestId === null
    ? ['none: not caused by a request', linkToRequest(id, 'What it belongs to')]
    : [linkToRequest(requestId), copyButton(() => requestId, 'the request id')]
}

function traceRow(traceId) {
  return ['Trace id', ...(traceId ? [el('code', {}, traceId), copyButton(() => traceId, 'the trace id')] : [])]
}

function chips(texts) {
  return el('span.chips', {}, ...texts.map((text) => el('code.chip', {}, text)))
}
