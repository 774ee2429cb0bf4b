import { clock, count, shortId } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfRequest, inPage, linkToRequest } from './page.js'
import { copyButton, empty, facts } from './parts.js'
import { setAttribute, View } from './view.js'
import { VirtualList } from './virtual-list.js'

/** Most log records that the page keeps. The oldest are dropped. */
const KEPT_MAX = 3000
const ROW_HEIGHT = 26
/** From the least to the most urgent, each with what is chosen by it. */
const LEVELS = {
  DEBUG: 'All levels',
  INFO: 'Info and above',
  WARNING: 'Warnings and errors',
  ERROR: 'Errors',
}
const RANKS = Object.keys(LEVELS)
const TONES = { ERROR: 'bad', WARNING: 'warn' }

/** Log records, newest at the end: those from before the page was opened, and each that comes. A line unfolds. */
export class LogsView extends View {
  #records = []
  #shown = []
  #level = 'DEBUG'
  #filter = ''
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

  constructor(page) {
    super(page, 'Logs', 'logs')
    this.#list = new VirtualList({
      rowHeight: ROW_HEIGHT,
      row: (index) => this.#row(index),
      onScroll: () => {
        this.#follows = this.#list.isAtEnd && this.#open === null
        this.paint(true)
      },
      role: 'tree',
      'aria-label': 'Log records, newest last. Arrow keys move, Enter unfolds a record',
    })
    const { element } = this.#list
    element.addEventListener('click', ({ target }) => {
      const record = this.#shown[Number(target.closest('.row')?.dataset.index ?? -1)]
      if (record !== undefined && target.closest('a') === null) this.#toggle(record)
    })
    element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  /** Shows other records. */
  #again() {
    this.#isDirty = true
    this.#follows = true
    this.#active = null
    this.#unfold(null)
    this.paint(true)
  }

  #clear() {
    this.#records = []
    this.#leftOut = 0
    this.#again()
  }

  #pause() {
    this.#isPaused = !this.#isPaused
    this.#since = 0
    this.#isDirty = true
    this.paint(true)
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
    this.paint()
  }

  /** Marks a place between two records. */
  #mark(message) {
    const timestamp = new Date().toISOString()
    this.#records.push({ n: 0, level: 'WARNING', message, timestamp, identity: 'dashboard' })
    this.#isDirty = true
    this.paint()
  }

  // ── the list ─────────────────────────────────────────────────────────────

  draw() {
    if (!this.element.isConnected) return
    const { element } = this.#list
    element.hidden = this.#records.length === 0
    if (this.#isDirty) this.#choose()
    super.draw()
    if (this.#follows) this.#list.scrollToEnd()
    this.#list.paint()
    setAttribute(element, 'aria-activedescendant', this.#active === null ? null : idOf(this.#active))
  }

  content() {
    const setLevel = ({ target }) => {
      this.#level = target.value
      this.#again()
    }
    const setFilter = ({ target }) => {
      this.#filter = target.value
      this.#again()
    }
    const hint =
      'logger.info(), warning() and error() of every plugin and tool appear here; debug() with LOG_LEVEL=debug.'
    return html`
      <div class="card list">
        <div class="toolbar">
          <select aria-label="Least level" @change=${setLevel}>${RANKS.map((level) => html`<option value=${level}>${LEVELS[level]}</option>`)}</select>
          <input type="search" placeholder="Text, plugin, field or request" aria-label="Filter logs" @input=${setFilter}>
          <button type="button" aria-pressed=${String(this.#isPaused)} @click=${() => this.#pause()}>${this.#isPaused ? 'Resume' : 'Pause'}</button>
          <button class="quiet" type="button" @click=${() => this.#clear()}>Clear</button>
          <p class="note">${this.#note()}</p>
        </div>
        ${this.#records.length === 0 ? empty('No log records yet', hint) : nothing}
        ${this.#list.element}
      </div>`
  }

  /** Chooses the records that are shown. Those in view keep their place unless the list follows its end. */
  #choose() {
    this.#isDirty = false
    const least = RANKS.indexOf(this.#level)
    const wanted = this.#filter.trim().toLowerCase()
    const anchorAt = this.#list.firstInView()
    const anchor = this.#shown[anchorAt]
    this.#shown = this.#records.filter((record) => RANKS.indexOf(record.level) >= least && isFound(record, wanted))
    const now = anchor === undefined ? -1 : this.#shown.indexOf(anchor)
    this.#list.setCount(this.#shown.length, this.#follows || now < 0 ? 0 : now - anchorAt)
    if (this.#open !== null) this.#place()
  }

  #note() {
    const { length } = this.#shown
    if (this.#isPaused) return `Paused · ${count(this.#since)} more since`
    const left = this.#leftOut === 0 ? '' : ` · ${count(this.#leftOut)} were too many to send`
    const of = length === this.#records.length ? '' : ` of ${count(this.#records.length)}`
    return `${count(length)}${of} ${this.#records.length === 1 ? 'record' : 'records'}${left}`
  }

  #row(index) {
    const record = this.#shown[index]
    const { level, message, timestamp, identity } = record
    return html`
      <div class="row log" id=${idOf(record)} data-index=${index} data-tone=${TONES[level] ?? nothing} role="treeitem" aria-setsize=${this.#shown.length}
        aria-posinset=${index + 1} aria-expanded=${String(record === this.#open)} aria-selected=${String(record === this.#active)}>
        <span class="row-time">${clock(timestamp)}</span><span class="log-level">${level}</span><span class="row-from">${identity}</span>
        <span class="log-message">${message}</span><span class="log-fields">${fieldsText(record)}</span>
        <span class="log-cause">${causeLink(record)}</span>
      </div>`
  }

  // ── unfolding ────────────────────────────────────────────────────────────

  #toggle(record) {
    this.#active = record
    this.#unfold(this.#open === record ? null : record)
    this.paint(true)
  }

  /** While a record is unfolded, the list stands still. */
  #unfold(record) {
    this.#open = record
    if (record !== null) this.#follows = false
    this.#place()
    if (record !== null) this.#list.reveal(this.#shown.indexOf(record))
  }

  /** Puts what is unfolded below its record, which may have moved or gone. */
  #place() {
    const index = this.#shown.indexOf(this.#open)
    if (index < 0) this.#open = null
    this.#list.unfold(index, index < 0 ? nothing : this.#detail(this.#open))
  }

  /** What a line unfolds: the whole message, the fields, the stack, and what it belongs to. */
  #detail(record) {
    const { level, message, timestamp, identity, fields = {}, request_id, event_id } = record
    const stack = typeof fields.stack === 'string' ? fields.stack : null
    const shown = Object.entries(fields).filter(([name]) => !APART.has(name))
    const { text, n, ...whole } = record
    const close = () => {
      this.#toggle(record)
      this.#list.element.focus()
    }
    return html`
      <div class="log-detail" role="group" aria-label="The unfolded record">
        ${facts([
          ['Message', html`<code class="wrap">${message}</code>`],
          ...shown.map(([name, value]) => [name, html`<code class="wrap">${valueText(value, 1)}</code>`]),
          ['Request', request_id && inPage(addressOfRequest(request_id, spanOf(record)), request_id)],
          ['Event', event_id && linkToRequest(event_id)],
          ['At', `${clock(timestamp)} · ${timestamp}`],
          ['From', `${identity}, ${level}`],
        ])}
        ${stack === null ? nothing : html`<pre class="wrap" tabindex="0" aria-label="Stack">${stack}</pre>`}
        <div class="actions">
          ${copyButton(() => JSON.stringify(whole, null, 2), 'the record as JSON')}
          <button class="quiet small" type="button" @click=${close}>Close</button>
        </div>
      </div>`
  }

  #onKey(event) {
    const { key, target } = event
    if (target !== this.#list.element) {
      if (key === 'Escape') this.#list.element.focus()
      return
    }
    const known = this.#active === null ? -1 : this.#shown.indexOf(this.#active)
    const to = this.#list.moved(key, known < 0 ? this.#list.firstInView() - 1 : known)
    const isToggle = key === 'Enter' || key === ' ' || (key === 'ArrowRight' && this.#open !== this.#active)
    if (isToggle && known >= 0) this.#toggle(this.#active)
    else if ((key === 'Escape' || key === 'ArrowLeft') && this.#open !== null) this.#unfold(null)
    else if (to !== null) {
      this.#active = this.#shown[to]
      this.#list.reveal(to)
    } else return
    this.paint(true)
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

/** The row of a request in which a record was logged. */
const spanOf = ({ timestamp, message }) => `log@${Date.parse(timestamp)}@${message.slice(0, SPAN_CHARS)}`

const valueText = (value, indent = 0) => (typeof value === 'string' ? value : JSON.stringify(value, null, indent))

/** The fields of a record in one line. */
const fieldsText = ({ fields = {} }) =>
  Object.entries(fields)
    .filter(([name]) => !APART.has(name))
    .map(([name, value]) => `${name}=${valueText(value)}`)
    .join('  ')

/** To the request of a record; of one that no request has caused, to what its event belongs to. The keyboard reaches it in what the line unfolds. */
function causeLink(record) {
  const id = record.request_id ?? record.event_id
  if (!id) return nothing
  return html`<a class="in-page" href=${addressOfRequest(id, spanOf(record))} tabindex="-1" title=${id}>${shortId(id)}</a>`
}
