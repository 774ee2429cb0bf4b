import { el, empty, facts, setAttribute, setText } from './dom.js'
import { clock, count } from './format.js'
import { VirtualList } from './virtual-list.js'

/** Most log records that the page keeps. The oldest are dropped. */
const KEPT_MAX = 3000
const ROW_HEIGHT = 26
const RANKS = { DEBUG: 0, INFO: 1, WARNING: 2, ERROR: 3 }

/** Log records as they come, newest at the end. */
export class LogsView {
  title = 'Logs'
  badge = ''
  #records = []
  #shown = []
  #level = el(
    'select',
    { 'aria-label': 'Least level' },
    el('option', { value: 'INFO', text: 'All levels' }),
    el('option', { value: 'WARNING', text: 'Warnings and errors' }),
    el('option', { value: 'ERROR', text: 'Errors' }),
  )
  #filter = el('input', { type: 'search', placeholder: 'Text or plugin', 'aria-label': 'Filter logs' })
  #pause = el('button', { type: 'button', 'aria-pressed': 'false', text: 'Pause' })
  #clear = el('button', { class: 'quiet', type: 'button', text: 'Clear' })
  #note = el('p', { class: 'note' })
  #detail = el('div', { class: 'log-detail', hidden: true })
  #none = empty(
    'No log records since the page was opened',
    el('p', { text: 'logger.info(), warning() and error() of every plugin and tool appear here.' }),
  )
  #list
  #isPaused = false
  #since = 0
  #leftOut = 0
  #active = -1
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
        this.#follows = this.#list.isAtEnd
        this.#paint(true)
      },
      role: 'listbox',
      'aria-label': 'Log records, newest last. Arrow keys move, Enter shows the whole text',
    })
    this.element = el(
      'section',
      { class: 'view logs', 'aria-label': 'Logs' },
      el(
        'div',
        { class: 'card list' },
        el('div', { class: 'toolbar' }, this.#level, this.#filter, this.#pause, this.#clear, this.#note),
        this.#none,
        this.#list.element,
        this.#detail,
      ),
    )
    this.#listen()
  }

  #listen() {
    const again = () => {
      this.#isDirty = true
      this.#follows = true
      this.#active = -1
      this.#detail.hidden = true
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
      const index = Number(target.closest('.row')?.dataset.index ?? -1)
      if (index >= 0) this.#choose(index)
    })
    element.addEventListener('keydown', (event) => this.#onKey(event))
  }

  onHello() {
    this.#paint()
  }

  onLive({ logs, logs_left_out }) {
    this.#leftOut += logs_left_out
    if (logs.length === 0) return
    this.#since += logs.length
    this.#records.push(...logs)
    if (this.#records.length > KEPT_MAX * 1.2) this.#records = this.#records.slice(-KEPT_MAX)
    if (!this.#isPaused) this.#isDirty = true
    this.#paint()
  }

  onSecond() {}

  show() {
    this.#paint(true)
  }

  #draw() {
    if (!this.element.isConnected) return
    if (this.#isDirty) {
      this.#isDirty = false
      const least = RANKS[this.#level.value]
      const wanted = this.#filter.value.trim().toLowerCase()
      this.#shown = this.#records.filter(
        ({ level, message, identity }) =>
          RANKS[level] >= least &&
          (wanted === '' || message.toLowerCase().includes(wanted) || identity.toLowerCase().includes(wanted)),
      )
      this.#list.setCount(this.#shown.length)
      if (this.#follows) this.#list.scrollToEnd()
    }
    const isEmpty = this.#records.length === 0
    this.#none.hidden = !isEmpty
    this.#list.element.hidden = isEmpty
    this.#list.paint()
    setText(this.#note, this.#noteText())
    setAttribute(this.#list.element, 'aria-activedescendant', this.#active < 0 ? null : `log-${this.#active}`)
  }

  #noteText() {
    const { length } = this.#shown
    if (this.#isPaused) return `Paused · ${count(this.#since)} more since`
    const left = this.#leftOut === 0 ? '' : ` · ${count(this.#leftOut)} were too many to send`
    const of = length === this.#records.length ? '' : ` of ${count(this.#records.length)}`
    return `${count(length)}${of === '' ? ` ${length === 1 ? 'record' : 'records'}` : `${of} records`}${left}`
  }

  #fill(row, index) {
    const { level, message, timestamp, identity } = this.#shown[index]
    const { parts } = row
    if (row.dataset.index !== String(index)) {
      row.dataset.index = index
      row.id = `log-${index}`
    }
    setAttribute(row, 'class', `row log is-${level.toLowerCase()}`)
    setAttribute(row, 'aria-selected', String(index === this.#active))
    setText(parts.time, clock(timestamp))
    setText(parts.level, level)
    setText(parts.identity, identity)
    setText(parts.message, message)
  }

  #onKey(event) {
    const last = this.#shown.length - 1
    const page = this.#list.rowsInView
    const at = this.#active < 0 ? this.#list.firstInView() - 1 : this.#active
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[
      event.key
    ]
    if (event.key === 'Enter' && this.#active >= 0) this.#choose(this.#active)
    else if (event.key === 'Escape') this.#detail.hidden = true
    else if (to !== undefined && last >= 0) {
      this.#active = Math.max(0, Math.min(last, to))
      this.#list.reveal(this.#active)
      this.#paint(true)
    } else return
    event.preventDefault()
  }

  #choose(index) {
    const record = this.#shown[index]
    if (record === undefined) return
    this.#active = index
    const { level, message, timestamp, identity } = record
    this.#detail.replaceChildren(
      facts([
        ['At', timestamp],
        ['From', `${identity}, ${level}`],
        ['Message', el('code', { class: 'wrap', text: message })],
      ]),
      el('button', { class: 'quiet', type: 'button', text: 'Close', on: { click: () => this.#close() } }),
    )
    this.#detail.hidden = false
    this.#paint(true)
  }

  #close() {
    this.#detail.hidden = true
    this.#list.element.focus()
  }

  /** Marks the place: records between two connections are missing on this page. */
  onGap() {
    this.#records.push({
      level: 'WARNING',
      message: 'The connection was lost: records of that time are not shown here',
      timestamp: new Date().toISOString(),
      identity: 'dashboard',
    })
    this.#isDirty = true
    this.#paint()
  }
}

function makeRow() {
  const parts = {
    time: el('span', { class: 'row-time' }),
    level: el('span', { class: 'log-level' }),
    identity: el('span', { class: 'row-from' }),
    message: el('span', { class: 'log-message' }),
  }
  const row = el('div', { class: 'row log', role: 'option' }, parts.time, parts.level, parts.identity, parts.message)
  row.parts = parts
  return row
}
