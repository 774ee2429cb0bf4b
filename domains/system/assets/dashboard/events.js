import { applicationOrigin } from './application.js'
import { letterButtons, letterReplays, outcomeOf } from './dead-letter-actions.js'
import { Forest } from './forest.js'
import { clock, count, offset, plural, rate, shortId } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfLetter, inPage, linkToRequest, whenAndAgo } from './page.js'
import { copyButton, empty, facts } from './parts.js'
import { KeyedList, setAttribute, View } from './view.js'
import { VirtualList } from './virtual-list.js'

const ROW_HEIGHT = 30
/** With more new trees a second than this, the list is not redrawn while the pointer is on it. */
const HOLD_TREES_PER_SEC = 3

/** Causal trees that grow as events happen, and the details of the chosen one. */
export class EventsView extends View {
  subject = 'event'
  #forest = new Forest()
  #list
  #failures = new KeyedList('')
  #rows = []
  #index = new Map()
  #activeKey = null
  #chosenKey = null
  #filter = ''
  #isFailedOnly = false
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
  /** The snapshot of the process has come. */
  #hasBegun = false

  constructor(page) {
    super(page, 'Events', 'events', 120)
    this.#list = new VirtualList({
      rowHeight: ROW_HEIGHT,
      row: (index) => this.#row(this.#rows[index]),
      onScroll: () => this.paint(true),
      role: 'tree',
      'aria-label': 'Causal trees, newest first. Arrow keys move, Enter shows the event',
      id: 'trees',
    })
    this.#listen()
  }

  #listen() {
    const { element } = this.#list
    letterReplays.listen(() => this.paint())
    const held = (by) => () => {
      this.#heldBy = by
      this.#hold()
      this.paint()
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
  }

  // ── frames of the stream ─────────────────────────────────────────────────

  onHello({ records, events_total, routes }, isOtherProcess) {
    this.#routes = routes
    if (isOtherProcess) this.#forest.clear()
    for (const record of records) this.#forest.add(record)
    this.#total = events_total
    this.#hasBegun = true
    this.paint()
    if (this.element.isConnected) this.seek()
  }

  onLive({ records, failures, events_total }) {
    for (const record of records) this.#forest.add(record)
    for (const failure of failures) this.#forest.fail(failure)
    this.#recordsPerSec += records.length
    this.#total = events_total
    this.paint()
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
    this.paint()
  }

  /** Takes the dead letters that the process keeps, among them failures from before the page was opened. */
  onLetters(letters) {
    for (const letter of letters) this.#forest.fail(letter)
    this.paint()
  }

  /** Shows one event, wherever it is in the list. @param key of an event or a tree */
  reveal(key) {
    if (!this.#hasBegun) return false
    // It may be what a filter leaves out, or newer than what a held list shows.
    if (!this.#index.has(key)) this.#look('', false)
    this.draw()
    this.#choose(key, true)
    const at = this.#index.get(key)
    if (at !== undefined) this.#list.center(at)
    this.page.notices.tell('event', 'warn', at === undefined ? goneText(key) : null, true)
    return true
  }

  show() {
    // A pointer that was on the list when it was taken away has not left it.
    this.#heldBy = null
    this.#hold()
    super.show()
  }

  // ── the list ─────────────────────────────────────────────────────────────

  /** Begins to hold the list where it would move away under the reader, and ends it when the reader has left: not earlier, or it would jump. */
  #hold() {
    this.#isHeld = this.#heldBy !== null && (this.#isHeld || this.#treesPerSec > HOLD_TREES_PER_SEC)
  }

  /** Looks for other events. */
  #look(filter, isFailedOnly) {
    this.#filter = filter
    this.#isFailedOnly = isFailedOnly
    this.#drawnVersion = -1
    this.#list.element.scrollTop = 0
    this.paint(true)
  }

  draw() {
    if (!this.element.isConnected) return
    const { version } = this.#forest
    const isMoving = !this.#isHeld && !this.#isPaused && this.#drawnVersion !== version
    if (isMoving || this.#drawnVersion < 0) {
      this.#drawnVersion = version
      this.#drawnTotal = this.#total
      const atTop = this.#list.isAtTop
      const anchor = atTop ? undefined : this.#rows[this.#list.firstInView()]?.key
      const anchorWas = anchor === undefined ? 0 : this.#index.get(anchor)
      this.#rows = this.#forest.rows(matcher(this.#filter, this.#isFailedOnly))
      this.#index = new Map(this.#rows.map(({ key }, n) => [key, n]))
      const moved = anchor === undefined ? 0 : (this.#index.get(anchor) ?? anchorWas) - anchorWas
      this.#list.setCount(this.#rows.length, moved)
    }
    const { element } = this.#list
    element.hidden = this.#rows.length === 0
    super.draw()
    this.#list.paint()
    setAttribute(element, 'aria-activedescendant', this.#index.has(this.#activeKey) ? rowId(this.#activeKey) : null)
  }

  content() {
    const { element } = this.#list
    const pause = () => {
      this.#isPaused = !this.#isPaused
      this.paint(true)
    }
    const leave = ({ key }) => key === 'Escape' && element.focus()
    return html`
      <div class="card list">
        <div class="toolbar">
          <input type="search" placeholder="Event, plugin, request or trace id" aria-label="Filter events" .value=${this.#filter}
            @input=${({ target }) => this.#look(target.value, this.#isFailedOnly)}>
          <label class="check"><input type="checkbox" .checked=${this.#isFailedOnly}
            @change=${({ target }) => this.#look(this.#filter, target.checked)}>Failed only</label>
          <button type="button" aria-pressed=${String(this.#isPaused)} @click=${pause}>${this.#isPaused ? 'Resume' : 'Pause'}</button>
          <p class="note">${this.#note()}</p>
        </div>
        ${this.#rows.length > 0 ? nothing : this.#none()}
        ${element}
      </div>
      <aside class="card detail" aria-label="The chosen event" tabindex="-1" @keydown=${leave}>${this.#detail()}</aside>`
  }

  #none() {
    if (this.#total > 0)
      return empty('No event matches the filter', 'The filter searches the last 2000 records, which the page keeps.')
    const hint = 'An event appears here as soon as a plugin publishes one, with the events that it causes below it.'
    // When the process has its route.
    const hasUsers = Object.values(this.#routes).includes('POST /users')
    return empty('No events yet', hint, hasUsers ? html`<p>Try:</p><pre tabindex="0">${tryCommand()}</pre>` : nothing)
  }

  #note() {
    if (this.#isHeld || this.#isPaused) {
      const fresh = this.#total - this.#drawnTotal
      return `${this.#isPaused ? 'Paused' : `The list is held while ${this.#heldBy}`} · ${count(fresh)} more since`
    }
    if (this.#sampled < 0.98)
      return `${rate(this.#eventsPerSec)} a second · about ${Math.max(1, Math.round(this.#sampled * 100))} % drawn, all counted`
    return `${plural(this.#total, 'event')} since the start`
  }

  /** A row of `Forest.rows`. */
  #row({ key, node, tree, depth, guides, position, setSize }) {
    const state = stateOf(node, tree)
    const parts =
      node === null
        ? [this.#titleOf(tree), shortId(tree.requestId), plural(tree.size + tree.more, 'event'), clock(tree.firstMs)]
        : partsOf(node, depth)
    const [name, from, to, time] = parts
    return html`
      <div class="row ${node === null ? 'row-request' : ''} is-${state}" id=${rowId(key)} data-key=${key} data-tone=${TONES[state]}
        role="treeitem" aria-level=${depth + 1} aria-setsize=${setSize} aria-posinset=${position}
        aria-selected=${String(key === this.#chosenKey)} data-active=${key === this.#activeKey ? 'true' : nothing}>
        <span class="guides" aria-hidden="true">${[...guides].map((guide) => html`<i class="guide guide-${GUIDES[guide]}"></i>`)}</span>
        <span class="dot" aria-hidden="true"></span><span class="unseen">${state === 'failed' ? 'failed: ' : ''}</span>
        <span class="row-name">${name}</span><span class="row-from">${from}</span><span class="row-to">${to}</span><span class="row-time">${time}</span>
      </div>`
  }

  // ── choosing ─────────────────────────────────────────────────────────────

  #onKey(event) {
    const at = this.#index.get(this.#activeKey) ?? -1
    const to = this.#list.moved(event.key, at)
    if (event.key === 'Enter' || event.key === ' ') {
      if (at >= 0) this.#choose(this.#activeKey, true)
    } else if (event.key === 'ArrowLeft' && this.#rows.length > 0) {
      const up = this.#rows[at]?.node?.parent
      this.#activate(up?.record.id ?? this.#rows[at]?.tree.key ?? this.#rows[0].key)
    } else if (to !== null) this.#activate(this.#rows[to].key)
    else return
    event.preventDefault()
  }

  #activate(key) {
    this.#activeKey = key
    const at = this.#index.get(key)
    if (at !== undefined) this.#list.reveal(at)
    this.paint(true)
  }

  #choose(key, withFocus = false) {
    this.#chosenKey = key
    this.#activate(key)
    this.draw()
    const detail = /** @type {HTMLElement} */ (this.element.querySelector('.detail'))
    if (withFocus) detail.focus()
    if (matchMedia('(max-width: 900px)').matches) detail.scrollIntoView({ block: 'start' })
  }

  #titleOf({ roots }) {
    return this.#routes[roots[0].record.emitter] ?? 'HTTP request'
  }

  // ── the chosen one ───────────────────────────────────────────────────────

  #detail() {
    const key = this.#chosenKey
    const node = this.#forest.node(key)
    if (node !== undefined) return this.#eventDetail(node)
    const tree = this.#forest.tree(key)
    if (tree !== undefined) return this.#requestDetail(tree)
    if (key === null) return html`<p class="note">Choose a row to see its record, its request and its outcome.</p>`
    return html`
      <h2>It is no longer in the list</h2>
      <p class="note">The page keeps the last 2000 events; newer ones have taken its place.</p>
      ${linkToRequest(key.replace(/^request:/, ''), 'What the history keeps of it')}`
  }

  #requestDetail(tree) {
    const { roots, requestId, size, more } = tree
    return html`
      <h2>${this.#titleOf(tree)}</h2>
      ${facts([
        ['Request', linkToRequest(requestId), copyButton(() => requestId, 'the request id')],
        traceRow(roots.find(({ record }) => record.trace_id)?.record.trace_id),
        ['Answered by', [...new Set(roots.map(({ record }) => record.emitter))].join(', ')],
        ['First event', whenAndAgo(roots[0].record.timestamp)],
        ['Events', `${count(size + more)}, over ${offset(tree.lastMs - tree.firstMs)}`],
        ['Not kept', more === 0 ? null : `${plural(more, 'event')} of this tree are counted, not drawn`],
      ])}`
  }

  #eventDetail(node) {
    const { record, children, failures } = node
    const { id, request_id: requestId, payload_keys: keys } = record
    // Of an event that no request has caused, the run of the job that has, if one has.
    const request =
      requestId === null
        ? ['none: not caused by a request', linkToRequest(id, 'What it belongs to')]
        : [linkToRequest(requestId), copyButton(() => requestId, 'the request id')]
    return html`
      <h2>${record.event}</h2>
      ${facts([
        ['Id', html`<code>${id}</code>`, copyButton(() => id, 'the event id')],
        ['Published', whenAndAgo(record.timestamp), `, by ${record.emitter}`],
        ['Caused by', this.#causeOf(node)],
        ['Request', ...request],
        traceRow(record.trace_id),
        ['Subscribers', record.subscribers.join(', ') || 'nobody'],
        [
          'Payload keys',
          keys.length === 0
            ? 'none'
            : html`<span class="chips">${keys.map((key) => html`<code class="chip">${key}</code>`)}</span>`,
        ],
        ['Has caused', children.length === 0 ? 'nothing so far' : plural(children.length, 'event')],
      ])}
      ${this.#failures.show(failures.map((failure) => this.#failure(failure)))}`
  }

  #causeOf({ record, tree }) {
    const { parent_id: id, request_id: requestId } = record
    const link = (key, text) =>
      html`<button class="linkish" type="button" @click=${() => this.reveal(key)}>${text}</button>`
    if (id === null)
      return requestId === null ? 'nothing: published outside of any subscriber' : link(tree.key, this.#titleOf(tree))
    const parent = this.#forest.node(id)
    return parent === undefined ? `${shortId(id)}, no longer kept` : link(id, parent.record.event)
  }

  #failure({ event_id, subscriber, error, attempts }) {
    const replayed = letterReplays.of({ event_id, subscriber })
    const letter = this.page.deadLetters.find((each) => each.event_id === event_id && each.subscriber === subscriber)
    const retries = attempts === 1 ? '1, no retry' : `${attempts}, of them ${plural(attempts - 1, 'retry', 'retries')}`
    return {
      key: `${event_id} ${subscriber} ${attempts}`,
      attributes: { class: 'failure' },
      content: html`
        <h3>${subscriber} failed</h3>
        ${facts([
          ['Attempts', retries],
          ['Error', html`<code class="wrap">${error}</code>`],
          ['Dead letter', letter && inPage(addressOfLetter(letter.id), letter.id)],
          ['Replay', replayed && outcomeOf(replayed.replay)],
        ])}
        ${letter === undefined ? nothing : letterButtons(this.page, letter)}`,
    }
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

const TONES = { failed: 'bad', touched: 'warn', report: 'warn', request: 'accent', event: 'accent' }

function stateOf(node, tree) {
  if (node === null) return tree.failed ? 'touched' : 'request'
  if (node.failures.length > 0) return 'failed'
  return node.record.event === 'event.delivery.failed' ? 'report' : 'event'
}

/** What the row of an event says: name, from, to and time. */
function partsOf({ record, atMs, tree }, depth) {
  const to = record.subscribers.length === 0 ? '' : `→ ${record.subscribers.join(', ')}`
  const time = depth === 0 ? clock(record.timestamp) : `+${offset(atMs - tree.firstMs)}`
  return [record.event, record.emitter, to, time]
}

/** The id of the element that shows an entry. */
function rowId(key) {
  return `row-${key}`
}

function traceRow(traceId) {
  return ['Trace id', ...(traceId ? [html`<code>${traceId}</code>`, copyButton(() => traceId, 'the trace id')] : [])]
}
