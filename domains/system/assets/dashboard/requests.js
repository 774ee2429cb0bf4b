import { letterReplays } from './dead-letter-actions.js'
import { html } from './lit-html.js'
import { addressOfRequest, REQUESTS } from './page.js'
import { empty, isTyping } from './parts.js'
import { fetchJson } from './process.js'
import { backLink, lettersOf, RequestDetail } from './request-detail.js'
import { PINNED_MAX, ROW_PX, requestList } from './request-list.js'
import { FILTERS, parseSearch, withStatus } from './request-search.js'
import { byKind, inLines, LookedAt, RequestSource } from './request-source.js'
import { View } from './view.js'

/** A request that is so young, or was replayed, may still cause something. Milliseconds. */
const YOUNG_MS = 10_000
/** The list stands still for so long after the pointer has moved over it. Milliseconds. */
const HOLD_MS = 3000
/** What was sent so short a time ago may not be stored yet. Milliseconds. */
const STORED_MS = 1500
const STATUSES = [
  ['', 'All'],
  ['failed', 'Failed'],
  ['5xx', '5xx'],
  ['4xx', '4xx'],
  ['open', 'Open'],
]
const EXAMPLE = 'status:5xx plugin:users.* since:10m >200ms "text"'

/** The requests and jobs that the history keeps; on the right the one that is chosen. Filter, choice and span are in the address. */
export class RequestsView extends View {
  #source = new RequestSource(fetchJson)
  #lookedAt = new LookedAt(localStorage)
  #rows = null
  /** The query whose answer they are. */
  #rowsQuery = null
  #newer = 0
  #pinned = []
  #detail = null
  #isPaused = false
  #isNoiseOpen = false
  #isAsking = false
  #isAgain = false
  #heldUntilMs = 0
  /** Why no requests are kept; null where they are, undefined while that is not known. */
  #off
  #letters = []
  /** When something of it was replayed. */
  #changedMs = 0
  #one = new RequestDetail({
    draw: () => this.draw(),
    go: (id) => this.#go(id, this.#query),
    choose: (key) => this.#go(this.#id, this.#query, { span: key, isNew: false }),
    replayed: () => this.#replayed(),
  })

  constructor(page) {
    super(page, 'Requests', 'requests')
    addEventListener('popstate', () => this.element.isConnected && this.#moved())
    addEventListener('keydown', (event) => this.#onKey(event))
    letterReplays.listen(() => this.draw())
  }

  onHello({ history_off: off = null }) {
    this.#off = off
    this.draw()
    void this.#look()
  }

  onSecond() {
    if (this.isShown && !this.#isPaused) void this.#look()
  }

  onLetters(letters) {
    this.#letters = letters ?? []
    this.draw()
  }

  show() {
    this.#moved()
  }

  // ── the address ──────────────────────────────────────────────────────────

  get #id() {
    const { pathname } = location
    return pathname.startsWith(`${REQUESTS}/`) ? decodeURIComponent(pathname.slice(REQUESTS.length + 1)) : null
  }

  get #query() {
    return new URLSearchParams(location.search).get('q') ?? ''
  }

  /** The query of an address that keeps the filter. */
  get #search() {
    return this.#query === '' ? '' : `?q=${encodeURIComponent(this.#query)}`
  }

  get #span() {
    return new URLSearchParams(location.search).get('span')
  }

  /** `isNew`: the back button leads to where the reader is now. */
  #go(id, query, { span = null, isNew = true } = {}) {
    const parameters = new URLSearchParams()
    if (query !== '') parameters.set('q', query)
    if (span !== null) parameters.set('span', span)
    const address = id === null ? REQUESTS : addressOfRequest(id)
    history[isNew ? 'pushState' : 'replaceState'](
      null,
      '',
      parameters.size === 0 ? address : `${address}?${parameters}`,
    )
    this.#moved()
  }

  /** The address has changed. */
  #moved() {
    this.#one.forget()
    this.#heldUntilMs = 0
    this.#source.reset()
    this.draw()
    void this.#look()
  }

  // ── what is asked for ────────────────────────────────────────────────────

  async #look() {
    if (!this.element.isConnected || typeof this.#off === 'string') return
    this.#isAgain = this.#isAsking
    if (this.#isAsking) return
    this.#isAsking = true
    const [query, id] = [this.#query, this.#id]
    try {
      const [found] = await Promise.all([this.#source.look(parseSearch(query)), this.#lookAtOne(id)])
      if (query === this.#query) this.#take(found)
      this.draw()
      if (await this.#source.outline(this.#rowsInView())) this.draw()
    } finally {
      this.#isAsking = false
      if (this.#isAgain) void this.#look()
    }
  }

  /** The list stands still while it is read: new ones are counted then. */
  #take({ rows, failures }) {
    if (rows === null) return
    const isHeld = this.#isHeld && this.#rows !== null && this.#rowsQuery === this.#query
    this.#source.rows = rows
    if (isHeld) {
      const byId = new Map(rows.map((row) => [row.id, row]))
      const top = rows.findIndex(({ id }) => id === this.#rows[0]?.id)
      this.#newer = top === -1 ? rows.length : top
      this.#rows = this.#rows.map((row) => byId.get(row.id) ?? row)
      return
    }
    this.#rowsQuery = this.#query
    this.#rows = rows
    this.#newer = 0
    this.#pinned = byKind((failures ?? []).filter((row) => row.id === this.#detail?.id || !this.#lookedAt.has(row)))
  }

  get #isHeld() {
    const scrolled = this.element.querySelector('.request-rows')?.scrollTop ?? 0
    return scrolled > ROW_PX || performance.now() < this.#heldUntilMs
  }

  async #lookAtOne(id) {
    if (id === null) {
      this.#detail = null
      return
    }
    const known = this.#detail
    const isSame = known !== null && (known.id === id || known.askedFor === id)
    const isDone = isSame && known.state !== 'open' && Date.now() - Math.max(known.at_ms, this.#changedMs) > YOUNG_MS
    if (isDone) return
    const detail = await this.#source.one(id)
    if (id !== this.#id) return
    if (detail !== null) {
      this.#detail = { ...detail, askedFor: id }
      if (detail.failed) this.#lookedAt.add([detail])
    } else if (!isSame) {
      // What was sent a moment ago is stored a moment later.
      this.#detail = { id, isMissing: true, at_ms: Date.now() }
    }
  }

  #rowsInView() {
    const list = this.element.querySelector('.request-rows')
    const from = Math.max(0, Math.floor((list?.scrollTop ?? 0) / ROW_PX) - 5)
    const shown = (this.#rows ?? []).slice(from, from + Math.ceil((list?.clientHeight ?? 600) / ROW_PX) + 10)
    return [...this.#pinned.slice(0, PINNED_MAX).map(({ row }) => row), ...shown]
  }

  // ── what is shown ────────────────────────────────────────────────────────

  content() {
    const query = this.#query
    const { hints, parameters } = parseSearch(query)
    this.element.classList.toggle('has-chosen', this.#id !== null)
    const status = ([value, text]) => html`
      <button type="button" aria-pressed=${String((parameters.status ?? '') === value)}
        @click=${() => this.#go(this.#id, withStatus(query, value))}>${text}</button>`
    const search = (event) => this.#onSearch(event)
    return html`
      <div class="card list">
        <div class="toolbar">
          <form class="search" role="search" @submit=${search}>
            <input type="search" aria-label="Search requests" title=${`${FILTERS}; an id of a request, event or trace; or any text`} placeholder=${EXAMPLE}
              .value=${query} @change=${search} @keydown=${({ key, target }) => key === 'Escape' && target.blur()}>
            <kbd aria-hidden="true">/</kbd>
          </form>
          <div class="statuses" role="group" aria-label="Status">
            ${STATUSES.map(status)}
            <button class="pause" type="button" aria-pressed=${String(this.#isPaused)} @click=${() => this.#pause()}>Pause</button>
          </div>
        </div>
        ${this.#list(query, hints)}
      </div>
      <div class="card detail request">${this.#chosen()}</div>`
  }

  #list(query, hints) {
    const pinned = query === '' ? this.#pinned : []
    // Who searches sees each of them.
    const one = (row) => ({ row, times: 1 })
    const rows =
      this.#rows === null ? null : query === '' ? inLines(this.#rows, pinned.slice(0, PINNED_MAX)) : this.#rows.map(one)
    const { noise, isNoiseFull, isFull, outlines } = this.#source
    const shown = {
      rows,
      pinned,
      noise,
      isNoiseFull,
      isNoiseOpen: this.#isNoiseOpen,
      newer: this.#newer,
      isFull,
      query,
      hints,
      off: this.#off,
      outlines,
      chosenId: this.#detail?.id ?? this.#id,
      search: this.#search,
    }
    return requestList(shown, {
      lookedAtAll: () => this.#lookAtAll(),
      noise: () => {
        this.#isNoiseOpen = !this.#isNoiseOpen
        this.draw()
      },
      newer: () => this.#toTop(),
      older: () => {
        this.#source.more()
        this.#rows = null
        void this.#look()
      },
      scroll: () => this.#isHeld || this.#newer === 0 || void this.#look(),
      hold: () => {
        this.#heldUntilMs = performance.now() + HOLD_MS
      },
    })
  }

  #chosen() {
    const request = this.#detail
    const back = backLink(REQUESTS + this.#search)
    if (request === null) return empty('Choose a request', 'What it did, what it caused, and why it failed stand here.')
    if (request.isMissing && Date.now() - request.at_ms < STORED_MS)
      return html`${back}<p class="empty">Looking for it …</p>`
    if (request.isMissing) {
      const why =
        'The history keeps what HISTORY_HOURS and HISTORY_MAX_MB leave; in production a sample of what went well.'
      return html`${back}${empty(`Nothing is kept of ${request.id}`, why)}`
    }
    return this.#one.content(request, { chosen: this.#span, letters: lettersOf(request, this.#letters), back })
  }

  // ── what is done ─────────────────────────────────────────────────────────

  /** An id leads to what it is the id of. */
  #onSearch(event) {
    event.preventDefault()
    const typed = this.#input.value.trim()
    const { id } = parseSearch(typed)
    if (event.type === 'submit') this.#input.blur()
    if (id !== null) this.#go(id, '')
    else if (typed !== this.#query) this.#go(this.#id, typed)
  }

  #toTop() {
    this.element.querySelector('.request-rows').scrollTop = 0
    this.#heldUntilMs = 0
    void this.#look()
  }

  #lookAtAll() {
    this.#lookedAt.add(this.#pinned.map(({ row }) => row))
    this.#pinned = []
    this.draw()
  }

  #pause() {
    this.#isPaused = !this.#isPaused
    this.draw()
  }

  #onKey(event) {
    const isSearch =
      (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping(event.target))
    if (!isSearch) return
    event.preventDefault()
    this.page.open('requests')
    // In a narrow window the one that is chosen hides the list.
    if (this.#input.offsetParent === null) this.#go(null, this.#query)
    this.#input.select()
  }

  /** @returns {HTMLInputElement} */
  get #input() {
    return this.element.querySelector('input[type="search"]')
  }

  async #replayed() {
    this.#changedMs = Date.now()
    await this.page.loadLetters()
    await this.#look()
  }
}
