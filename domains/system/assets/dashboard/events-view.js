import { applicationOrigin } from '/system/dashboard/application.js'
import { el, empty, setAttribute, setText } from '/system/dashboard/dom.js'
import { EventDetail } from './event-detail.js'
import { fillRow, makeRow, rowId } from './event-row.js'
import { Forest } from './forest.js'
import { count, plural, rate } from './format.js'
import { letterReplays } from './letter-replays.js'
import { named } from './links.js'
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
