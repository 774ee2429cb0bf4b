import { html, nothing, render } from '/system/dashboard/lit-html.js'
import { ago, duration } from './format.js'
import { requestDetail, statusBadge, titleOf } from './request-detail.js'

const LIMIT = 200
const PATH = '/system/dashboard/requests'
/** A request that is so young, or was replayed, may still cause something. Milliseconds. */
const YOUNG_MS = 10_000
const STATUSES = [
  ['', 'All'],
  ['failed', 'Failed'],
  ['5xx', '5xx'],
  ['4xx', '4xx'],
  ['open', 'Open'],
]
/** `status:5xx plugin:users route:/orders since:10m >200ms some text` */
const WORD = /(?:(status|plugin|route|method|since):(\S+)|>(\d+)ms|"([^"]*)"|(\S+))/g
const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The requests and jobs that the history keeps; on the right the one that is chosen. Filter and choice are in the address. */
export class RequestsView {
  title = 'Requests'
  badge = ''
  element = document.createElement('section')
  #page
  #rows = null
  #detail = null
  #span = null
  #copied = ''
  #isPaused = false
  #isAsking = false
  /** Why no requests are kept; null where they are, undefined while that is not known. */
  #off
  #letters = []
  #replayedMs = 0

  constructor(page) {
    this.#page = page
    this.element.className = 'view requests'
    this.element.setAttribute('aria-label', 'Requests')
    addEventListener('popstate', () => this.element.isConnected && this.#look())
    addEventListener('keydown', (event) => this.#onKey(event))
    this.#draw()
  }

  onHello({ history_off: off }) {
    this.#off = off
    this.#draw()
    void this.#look()
  }

  onSecond() {
    if (!this.element.isConnected || document.hidden || this.#isPaused) return
    void this.#look()
  }

  onLetters(letters) {
    this.#letters = letters ?? []
    this.#draw()
  }

  show() {
    void this.#look()
  }

  // ── the address ──────────────────────────────────────────────────────────

  get #id() {
    const { pathname } = location
    return pathname.startsWith(`${PATH}/`) ? decodeURIComponent(pathname.slice(PATH.length + 1)) : null
  }

  get #query() {
    return new URLSearchParams(location.search).get('q') ?? ''
  }

  #go(id, query, isNew = true) {
    const address = `${PATH}${id === null ? '' : `/${encodeURIComponent(id)}`}${query === '' ? '' : `?q=${encodeURIComponent(query)}`}`
    if (isNew) history.pushState(null, '', address)
    else history.replaceState(null, '', address)
    this.#span = null
    this.#draw()
    void this.#look()
  }

  // ── what is asked for ────────────────────────────────────────────────────

  async #look() {
    if (!this.element.isConnected || this.#isAsking || this.#off !== null) return
    this.#isAsking = true
    try {
      const query = this.#query
      const rows = await this.#page.fetchJson(`/system/requests?${parametersOf(query)}`)
      if (query !== this.#query) return void setTimeout(() => this.#look())
      this.#rows = rows ?? []
      await this.#lookAtOne()
    } finally {
      this.#isAsking = false
    }
    this.#draw()
  }

  async #lookAtOne() {
    const id = this.#id
    if (id === null) {
      this.#detail = null
      return
    }
    const known = this.#detail
    const isSame = known !== null && (known.id === id || known.askedFor === id)
    if (isSame && known.state !== 'open' && Date.now() - Math.max(known.at_ms, this.#replayedMs) > YOUNG_MS) return
    const detail = await this.#page.fetchJson(`/system/requests/${encodeURIComponent(id)}`)
    this.#detail = detail === null ? { id, isMissing: true, at_ms: 0 } : { ...detail, askedFor: id }
  }

  // ── what is shown ────────────────────────────────────────────────────────

  #draw() {
    const query = this.#query
    const status = /status:(\S+)/.exec(query)?.[1] ?? ''
    render(
      html`
        <div class="card list">
          <div class="toolbar">
            ${STATUSES.map(
              ([value, text]) =>
                html`<button type="button" aria-pressed=${String(status === value)} @click=${() => this.#filterStatus(value)}>${text}</button>`,
            )}
            <input type="search" aria-label="Search requests" placeholder="status:5xx plugin:users since:10m >200ms text" .value=${query}
              @change=${(event) => this.#go(this.#id, event.target.value.trim())}>
            <button type="button" aria-pressed=${String(this.#isPaused)} @click=${() => this.#pause()}>Pause</button>
          </div>
          ${this.#list()}
        </div>
        <div class="card detail request" aria-live="polite">${this.#one()}</div>`,
      this.element,
    )
  }

  #list() {
    if (typeof this.#off === 'string') return html`<div class="empty"><p class="empty-title">${this.#off}</p></div>`
    if (this.#rows === null) return html`<p class="empty">Looking …</p>`
    if (this.#rows.length === 0)
      return html`<div class="empty"><p class="empty-title">${this.#query === '' ? 'No request has come yet' : 'Nothing fits the filter'}</p>
        <p>${this.#query === '' ? 'Send one: what it does is here a moment later.' : 'Words: status:5xx route:/orders plugin:users since:10m >200ms, or a part of a path, an error, an SQL statement.'}</p></div>`
    const slowest = Math.max(...this.#rows.map(({ duration_ms: ms }) => ms ?? 0), 1)
    return html`<ol class="plain request-rows" aria-label="Requests, newest first">${calm(this.#rows).map((row) => this.#row(row, slowest))}</ol>`
  }

  #row(row, slowest) {
    const { id, duration_ms: ms, failed, error, at_ms: atMs, times = 1 } = row
    const isChosen = this.#detail?.id === id
    // Short ones are seen, too: the scale is that of the logarithm.
    const share = ms === null ? 0 : (Math.log1p(ms * 10) / Math.log1p(slowest * 10)) * 100
    return html`
      <li class="request-row ${failed ? 'is-failed' : ''}" aria-current=${isChosen ? 'true' : nothing}>
        <a href=${`${PATH}/${encodeURIComponent(id)}${location.search}`} @click=${(event) => this.#onLink(event, id)}>
          ${statusBadge(row)}
          <span class="request-title">${titleOf(row)}${times > 1 ? html` <i>× ${times}</i>` : nothing}${error === null ? nothing : html`<small>${error}</small>`}</span>
          <svg class="fall-bar" height="12" aria-hidden="true"><rect class=${`bar ${failed ? 'bar-failed' : 'bar-request'}`} x="0" y="3" height="6" rx="2" width=${`${Math.max(share, 1)}%`}></rect></svg>
          <span class="number">${duration(ms)}</span>
          <span class="number muted">${ago(new Date(atMs).toISOString())}</span>
        </a>
      </li>`
  }

  #one() {
    const request = this.#detail
    if (request === null)
      return html`<div class="empty"><p class="empty-title">Choose a request</p><p>What it did, what it caused, and why it failed stand here.</p></div>`
    if (request.isMissing)
      return html`<div class="empty"><p class="empty-title">Nothing is kept of ${request.id}</p><p>The history keeps what HISTORY_HOURS and HISTORY_MAX_MB leave; in production a sample of what went well.</p></div>`
    return requestDetail(request, {
      chosen: this.#span,
      copied: this.#copied,
      letters: this.#letters.filter(({ request_id: id }) => id === request.id),
      onChoose: (key) => {
        this.#span = key
        this.#draw()
      },
      onCopy: (what, text) => void this.#copy(what, text),
      onReplay: (letters) => void this.#replay(letters),
    })
  }

  // ── what is done ─────────────────────────────────────────────────────────

  #onLink(event, id) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    this.#go(id, this.#query)
  }

  #filterStatus(value) {
    const rest = this.#query.replace(/\s*status:\S+/, '').trim()
    this.#go(this.#id, value === '' ? rest : `status:${value} ${rest}`.trim())
  }

  #pause() {
    this.#isPaused = !this.#isPaused
    this.#draw()
  }

  #onKey(event) {
    const isSearch =
      (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping(event.target))
    if (!isSearch) return
    event.preventDefault()
    this.#page.open('requests')
    this.element.querySelector('input[type="search"]').select()
  }

  async #copy(what, text) {
    try {
      await navigator.clipboard.writeText(text)
      this.#copied = what
    } catch {
      // Browsers forbid it on plain HTTP, except on localhost.
      prompt('Copy it by hand', text)
    }
    this.#draw()
    setTimeout(() => {
      this.#copied = ''
      this.#draw()
    }, 1500)
  }

  async #replay(letters) {
    for (const { id } of letters) await this.#page.fetchJson(`/system/dead-letters/${id}/replay`, { method: 'POST' })
    this.#replayedMs = Date.now()
    await this.#page.loadLetters()
    await this.#look()
  }
}

/** Runs of a job that went well are one row, the newest, with how many they are. */
function calm(rows) {
  const jobs = new Map()
  return rows.flatMap((row) => {
    if (row.kind !== 'job' || row.failed || row.state !== 'ended') return [row]
    const key = `${row.plugin}/${row.route}`
    const first = jobs.get(key)
    if (first !== undefined) {
      first.times++
      return []
    }
    const shown = { ...row, times: 1 }
    jobs.set(key, shown)
    return [shown]
  })
}

/** The parameters of `/system/requests` for what was typed. */
export function parametersOf(query) {
  const parameters = new URLSearchParams({ limit: String(LIMIT) })
  const texts = []
  for (const [, name, value, minMs, quoted, word] of query.matchAll(WORD)) {
    if (name === 'since') {
      const [, amount, unit] = /^(\d+)([smhd])$/.exec(value) ?? []
      if (amount !== undefined) parameters.set('since', String(Date.now() - amount * UNITS[unit]))
    } else if (name !== undefined) parameters.set(name, value)
    else if (minMs !== undefined) parameters.set('min_ms', minMs)
    else texts.push(quoted ?? word)
  }
  if (texts.length > 0) parameters.set('text', texts.join(' '))
  return parameters
}

const isTyping = ({ tagName }) => tagName === 'INPUT' || tagName === 'TEXTAREA' || tagName === 'SELECT'
