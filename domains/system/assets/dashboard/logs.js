import { copyButton, el, empty, facts, setAttribute, setText } from '/system/dashboard/dom.js'
import { clock, count, shortId } from './format.js'
import { linkToRequest } from './page.js'
import { VirtualList } from './virtual-list.js'

/** Most log records that the page keeps. The oldest are dropped. */
const KEPT_MAX = 3000
const ROW_HEIGHT = 26
const RANKS = { DEBUG: 0, INFO: 1, WARNING: 2, ERROR: 3 }

/** Log records, newest at the end: those from before the page was opened, and each that comes. A line unfolds. */
export class LogsView {
  title = 'Logs'
  badge = ''
  #records = []
  #shown = []
  #level = el(
    'select',
    { 'aria-label': 'Least level' },
    el('option', { value: 'DEBUG' }, 'All levels'),
    el('option', { value: 'INFO' }, 'Info and above'),
    el('option', { value: 'WARNING' }, 'Warnings and errors'),
    el('option', { value: 'ERROR' }, 'Errors'),
  )
  #filter = el('input', {
    type: 'search',
    placeholder: 'Text, plugin, field or request',
    'aria-label': 'Filter logs',
  })
  #pause = el('button', { type: 'button', 'aria-pressed': 'false' }, 'Pause')
  #clear = el('button.quiet', { type: 'button' }, 'Clear')
  #note = el('p.note')
  #none = empty(
    'No log records yet',
    el(
      'p',
      {},
      'logger.info(), warning() and error() of every plugin and tool appear here; debug() with LOG_LEVEL=debug.',
    ),
  )
  #list
  #isPaused = false
  #since = 0
  #leftOut = 0
  /** The number of the last record; its process numbers them from 1. */
  #last = 0
  /** The record that the keyboard is at, and the one that is unfolded. */
  #active = null
  #open = null
  #follows = true
  #isDirty = true
  #paint

  constructor(page) {
    this.#paint = page.painter.job(() => this.#draw(), 100)
    this.#list = new VirtualList({
      rowHeight: ROW_HEIGHT,
      make: makeRow,
      fill: (row, index) => this.#fill(row, index),
      onScroll: () => {
        this.#follows = this.#list.isAtEnd && this.#open === null
        this.#paint(true)
      },
      role: 'tree',
      'aria-label': 'Log records, newest last. Arrow keys move, Enter unfolds a record',
    })
    this.element = el(
      'section.view.logs',
      { 'aria-label': 'Logs' },
      el(
        'div.card.list',
        {},
        el('div.toolbar', {}, this.#level, this.#filter, this.#pause, this.#clear, this.#note),
        this.#none,
        this.#list.element,
      ),
    )
    this.#listen()
  }

  #listen() {
    const again = () => {
      this.#isDirty = true
      this.#follows = true
      this.#active = null
      this.#unfold(null)
      this.#paint(true)
    }
    this.#level.addEventListener('change', again)
    this.#filter.addEventListener('input', again)
    this.#clear.addEventListener('click', () => {
      this.#records = []
      this.#leftOut = 0
      again()
    })
    this.#pause.addEventListener('click', () => {
      this.#isPaused = !this.#isPaused
      this.#since = 0
      setAttribute(this.#pause, 'aria-pressed', String(this.#isPaused))
      setText(this.#pause, this.#isPaused ? 'Resume' : 'Pause')
      this.#isDirty = true
      this.#paint(true)
    })
    const { element } = this.#list
    element.addEventListener('click', ({ target }) => {
      const record = this.#shown[Number(target.closest('.row')?.dataset.index ?? -1)]
      if (record !== undefined) this.#toggle(record)
    })
    element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  // ── frames of the stream ─────────────────────────────────────────────────

  /** Takes the last records of the process: what was missed while the connection was lost is among them, as far as they reach. */
  onHello({ logs }, isOtherProcess) {
    const isAgain = this.#last > 0
    if (isOtherProcess) this.#last = 0
    const missed = (logs[0]?.n ?? 1) - this.#last - 1
    if (isOtherProcess) this.#mark('The process has restarted')
    else if (isAgain && missed > 0) this.#mark(`${count(missed)} records of a lost connection are not shown here`)
    this.#take(logs)
  }

  onLive({ logs, logs_left_out }) {
    this.#leftOut += logs_left_out
    this.#take(logs)
  }

  #take(logs) {
    const fresh = logs.filter(({ n }) => n > this.#last)
    if (fresh.length === 0) return
    this.#last = fresh.at(-1).n
    this.#since += fresh.length
    this.#records.push(...fresh)
    if (this.#records.length > KEPT_MAX * 1.2) this.#records = this.#records.slice(-KEPT_MAX)
    if (!this.#isPaused) this.#isDirty = true
    this.#paint()
  }

  /** Marks a place between two records. */
  #mark(message) {
    const timestamp = new Date().toISOString()
    this.#records.push({ n: 0, level: 'WARNING', message, timestamp, identity: 'dashboard' })
    this.#isDirty = true
    this.#paint()
  }

  show() {
    this.#paint(true)
  }

  // ── the list ─────────────────────────────────────────────────────────────

  #draw() {
    if (!this.element.isConnected) return
    const isEmpty = this.#records.length === 0
    this.#none.hidden = !isEmpty
    this.#list.element.hidden = isEmpty
    if (this.#isDirty) this.#choose()
    this.#list.paint()
    setText(this.#note, this.#noteText())
    setAttribute(this.#list.element, 'aria-activedescendant', this.#active === null ? null : idOf(this.#active))
  }

  /** Chooses the records that are shown. Those in view keep their place unless the list follows its end. */
  #choose() {
    this.#isDirty = false
    const least = RANKS[this.#level.value]
    const wanted = this.#filter.value.trim().toLowerCase()
    const anchorAt = this.#list.firstInView()
    const anchor = this.#shown[anchorAt]
    this.#shown = this.#records.filter((record) => RANKS[record.level] >= least && isFound(record, wanted))
    const now = anchor === undefined ? -1 : this.#shown.indexOf(anchor)
    this.#list.setCount(this.#shown.length, this.#follows || now < 0 ? 0 : now - anchorAt)
    if (this.#open !== null) this.#place()
    if (this.#follows) this.#list.scrollToEnd()
  }

  #noteText() {
    const { length } = this.#shown
    if (this.#isPaused) return `Paused · ${count(this.#since)} more since`
    const left = this.#leftOut === 0 ? '' : ` · ${count(this.#leftOut)} were too many to send`
    const of = length === this.#records.length ? '' : ` of ${count(this.#records.length)}`
    return `${count(length)}${of} ${this.#records.length === 1 ? 'record' : 'records'}${left}`
  }

  #fill(row, index) {
    const record = this.#shown[index]
    const { level, message, timestamp, identity } = record
    const { parts } = row
    setAttribute(row, 'data-index', String(index))
    setAttribute(row, 'class', `row log is-${level.toLowerCase()}`)
    setAttribute(row, 'aria-setsize', String(this.#shown.length))
    setAttribute(row, 'aria-posinset', String(index + 1))
    setAttribute(row, 'aria-expanded', String(record === this.#open?.record))
    setAttribute(row, 'aria-selected', String(record === this.#active))
    if (row.record === record) return
    row.record = record
    row.id = idOf(record)
    setText(parts.time, clock(timestamp))
    setText(parts.level, level)
    setText(parts.identity, identity)
    setText(parts.message, message)
    setText(parts.fields, fieldsText(record))
    fillCause(parts.cause, record)
  }

  // ── unfolding ────────────────────────────────────────────────────────────

  #toggle(record) {
    this.#active = record
    this.#unfold(this.#open?.record === record ? null : record)
    this.#paint(true)
  }

  /** While a record is unfolded, the list stands still. */
  #unfold(record) {
    if (record === null) {
      this.#open = null
      this.#list.unfold(-1)
      return
    }
    this.#follows = false
    const close = () => {
      this.#toggle(record)
      this.#list.element.focus()
    }
    this.#open = { record, element: recordDetail(record, close) }
    this.#place()
    this.#list.reveal(this.#shown.indexOf(record))
  }

  /** Puts what is unfolded below its record, which may have moved or gone. */
  #place() {
    const index = this.#shown.indexOf(this.#open.record)
    if (index >= 0) return this.#list.unfold(index, this.#open.element)
    this.#open = null
    this.#list.unfold(-1)
  }

  #onKey(event) {
    if (event.target !== this.#list.element) {
      if (event.key === 'Escape') this.#list.element.focus()
      return
    }
    const last = this.#shown.length - 1
    const page = this.#list.rowsInView
    const known = this.#active === null ? -1 : this.#shown.indexOf(this.#active)
    const at = known < 0 ? this.#list.firstInView() - 1 : known
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[
      event.key
    ]
    if ((event.key === 'Enter' || event.key === ' ') && known >= 0) this.#toggle(this.#active)
    else if (event.key === 'ArrowRight' && known >= 0 && this.#open?.record !== this.#active) this.#toggle(this.#active)
    else if ((event.key === 'Escape' || event.key === 'ArrowLeft') && this.#open !== null) this.#unfold(null)
    else if (to !== undefined && last >= 0) {
      const index = Math.max(0, Math.min(last, to))
      this.#active = this.#shown[index]
      this.#list.reveal(index)
    } else return
    this.#paint(true)
    event.preventDefault()
  }
}

const ids = new WeakMap()
let made = 0

/** Of the row that shows a record. */
function idOf(record) {
  if (!ids.has(record)) ids.set(record, `log-${made++}`)
  return ids.get(record)
}

/** Characters of a message that find its row in a request. */
const SPAN_CHARS = 40
/** Fields that are shown apart from the others. */
const APART = new Set(['stack', 'request_id', 'event_id'])

/** Whether a record fits a text, which is in lower case: it is looked for in all that the record has. */
function isFound(record, wanted) {
  if (wanted === '') return true
  record.text ??= [record.message, record.identity, record.request_id, record.event_id, JSON.stringify(record.fields)]
    .filter(Boolean)
    .join('\n')
    .toLowerCase()
  return record.text.includes(wanted)
}

/** The request of a record; of one that no request has caused, what its event belongs to. */
const causeOf = ({ request_id, event_id }) => request_id ?? event_id ?? null

/** The row of a request in which a record was logged. */
const spanOf = ({ timestamp, message }) => `log@${Date.parse(timestamp)}@${message.slice(0, SPAN_CHARS)}`

/** What a line unfolds: the whole message, the fields, the stack, and what it belongs to. */
function recordDetail(record, onClose) {
  const { level, message, timestamp, identity, fields = {}, request_id, event_id } = record
  const stack = typeof fields.stack === 'string' ? fields.stack : null
  const shown = Object.entries(fields).filter(([name]) => !APART.has(name))
  const { text, n, ...whole } = record
  return el(
    'div.log-detail',
    { role: 'group', 'aria-label': 'The unfolded record' },
    facts([
      ['Message', el('code.wrap', {}, message)],
      ...shown.map(([name, value]) => [name, el('code.wrap', {}, shownValue(value))]),
      ['Request', request_id ? linkToRequest(request_id, request_id, spanOf(record)) : null],
      ['Event', event_id ? linkToRequest(event_id) : null],
      ['At', `${clock(timestamp)} · ${timestamp}`],
      ['From', `${identity}, ${level}`],
    ]),
    stack === null ? null : el('pre.wrap', { tabindex: '0', 'aria-label': 'Stack' }, stack),
    el(
      'div.actions',
      {},
      copyButton(() => JSON.stringify(whole, null, 2), 'the record as JSON'),
      el('button.quiet.small', { type: 'button', click: onClose }, 'Close'),
    ),
  )
}

const shownValue = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1))

/** An empty line. */
function makeRow() {
  const parts = {
    time: el('span.row-time'),
    level: el('span.log-level'),
    identity: el('span.row-from'),
    message: el('span.log-message'),
    fields: el('span.log-fields'),
    cause: el('span.log-cause'),
  }
  const row = el('div.row.log', { role: 'treeitem' }, ...Object.values(parts))
  row.parts = parts
  return row
}

/** The fields of a record in one line. */
function fieldsText({ fields = {} }) {
  return Object.entries(fields)
    .filter(([name]) => !APART.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('  ')
}

/** Lets a row show the link to what a record belongs to. It is reached with the keyboard in what the line unfolds. */
function fillCause(cell, record) {
  const id = causeOf(record)
  if (id === null) return cell.replaceChildren()
  const link = linkToRequest(id, shortId(id), spanOf(record))
  link.tabIndex = -1
  link.title = id
  cell.replaceChildren(link)
}
