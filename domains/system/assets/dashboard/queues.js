import { answerOf, sureButton } from './dead-letter-actions.js'
import { ago, count, duration, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { inPage, linkToRequest, named, whenAndAgo } from './page.js'
import { empty, facts } from './parts.js'
import { fetchJson } from './process.js'
import { KeyedList, View } from './view.js'

/** Milliseconds between two looks while the section is shown. */
const LOOK_MS = 2000
/** Deliveries of a page. */
const PAGE = 50
/** Milliseconds without a key until what was typed counts, and for which a notice of success stays. */
const TYPED_MS = 250
const NOTICE_MS = 6000
const STATES = { waiting: 'Waiting', running: 'Running', later: 'Later', retrying: 'Retrying', blocked: 'Blocked' }
const COLUMNS = {
  waiting: 'Waiting',
  running: 'Running',
  later: 'Later',
  retrying: 'Retrying',
  blocked_keys: 'Blocked keys',
  dead: 'Dead',
  oldest: 'Oldest',
  in_per_minute: 'In a minute',
  out_per_minute: 'Out a minute',
  empty: 'Empty in',
}

/** Names of events have no blank. */
const idOf = ({ event, subscriber }) => `${event} ${subscriber}`
const addressOf = (queue) => `/system/dashboard?queue=${encodeURIComponent(idOf(queue))}#queues`
const pathOf = ({ subscriber }, rest = '') => `/system/queues/${encodeURIComponent(subscriber)}${rest}`

/** What waits for each subscriber, and the deliveries of one. */
export class QueuesView extends View {
  subject = 'queue'
  #list = new KeyedList('letters', 'Deliveries, in their order')
  /** Null where the plugin that shows them is not installed. */
  #queues
  /** The queue that is open, by its id; null: the table of all. */
  #open = null
  #filter = { state: 'waiting', key: '', search: '' }
  #withPayloads = false
  /** Ends of the pages before the one that is shown. */
  #before = []
  #page
  /** Why the deliveries are not shown; null: they are. */
  #refusal = null
  /** Number of the last read: the answer to an earlier one may come later. */
  #reads = 0
  #typed

  constructor(page) {
    super(page, 'Queues', '')
    setInterval(() => this.isShown && void this.#load(), LOOK_MS)
    addEventListener('popstate', () => this.element.isConnected && this.#openNamed())
  }

  show() {
    super.show()
    this.#openNamed()
  }

  /** Shows the queue that the address names, or all. */
  #openNamed() {
    const open = named('queue')
    if (open !== this.#open) {
      this.#open = open
      this.#filter = { state: 'waiting', key: '', search: '' }
      this.#before = []
      this.#page = undefined
    }
    void this.#load()
  }

  get #queue() {
    return this.#queues?.find((queue) => idOf(queue) === this.#open)
  }

  async #load() {
    const read = ++this.#reads
    const queues = await fetchJson('/system/queues')
    if (read !== this.#reads) return
    this.#queues = queues
    this.badge = String(queues?.filter(({ paused }) => paused !== null).length || '')
    this.page.refreshBadges()
    const queue = this.#queue
    if (queue !== undefined) {
      const { refusal, body } = await answerOf(this.#pagePath(queue), 'GET', undefined)
      if (read !== this.#reads) return
      this.#refusal = refusal
      if (refusal === null) this.#page = body
    }
    this.draw()
  }

  #pagePath(queue) {
    const after = this.#before.at(-1)
    const wanted = { event: queue.event, ...this.#filter, after, limit: PAGE, payloads: this.#withPayloads || '' }
    const given = Object.entries(wanted).filter(([, value]) => value !== '' && value !== undefined)
    return pathOf(queue, `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`)
  }

  // ── what is done ─────────────────────────────────────────────────────────

  #choose(name, value, afterMs = 0) {
    this.#filter[name] = value
    clearTimeout(this.#typed)
    this.#typed = setTimeout(() => {
      this.#before = []
      void this.#load()
    }, afterMs)
  }

  async #act(button, about, path, body, done) {
    const hadFocus = button.matches(':focus')
    button.disabled = true
    const { refusal, data } = await answerOf(path, 'POST', body)
    button.disabled = false
    this.page.notices.tell('queue', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done(data)}`, true)
    if (refusal === null) setTimeout(() => this.page.notices.tell('queue', 'info', null), NOTICE_MS)
    await this.#load()
    if (hadFocus && !button.isConnected) document.getElementById('main').focus()
  }

  #pauseButton(queue) {
    const { event, subscriber, paused } = queue
    const about = `${event} to ${subscriber}`
    const set = (button, what) => this.#act(button, about, pathOf(queue, `/${what}`), { event }, () => `${what}d`)
    if (paused === null)
      return sureButton({ label: `Pause ${about}`, text: 'Pause', question: 'Pause it?' }, (button) =>
        set(button, 'pause'),
      )
    return html`<button class="primary" type="button" aria-label=${`Resume ${about}`}
      @click=${({ currentTarget }) => set(currentTarget, 'resume')}>Resume</button>`
  }

  // ── what is shown ────────────────────────────────────────────────────────

  content() {
    if (this.#queues === undefined) return html`<div class="card"><p class="note">Reading the queues …</p></div>`
    if (this.#queues === null)
      return html`<div class="card">${empty('The plugin manage-queues is not installed, or the process does not answer')}</div>`
    return this.#open === null ? this.#table(this.#queues) : this.#detail(this.#queue)
  }

  #table(queues) {
    const hint = 'A subscriber of an event is a queue: it appears here when a plugin subscribes.'
    if (queues.length === 0) return html`<div class="card">${empty('Nobody subscribes to an event', hint)}</div>`
    // What needs a look first.
    const sorted = queues.toSorted((a, b) => weightOf(b) - weightOf(a))
    return html`
      <div class="card scrolls">
        ${this.#rows(sorted)}
        <p class="note">Over all processes that share the database. Each number is counted up to a bound, which a + says. Rates are those of the last minute.</p>
      </div>`
  }

  #rows(queues) {
    const headings = Object.values(COLUMNS).map((text) => html`<th scope="col" class="number">${text}</th>`)
    return html`
      <table class="queues stacked">
        <thead><tr><th scope="col">Subscriber</th>${headings}<th scope="col"><span class="unseen">Pause</span></th></tr></thead>
        <tbody>${queues.map((queue) => this.#row(queue))}</tbody>
      </table>`
  }

  #row(queue) {
    const cells = Object.entries(COLUMNS).map(
      ([key, label]) =>
        html`<td class=${isBad(queue, key) ? 'number is-bad' : 'number'} data-label=${label}>${cellOf(queue, key)}</td>`,
    )
    return html`
      <tr>
        <th scope="row">${inPage(addressOf(queue), queue.subscriber)} <span class="muted">${queue.event}</span>${marksOf(queue)}</th>
        ${cells}
        <td>${this.#pauseButton(queue)}</td>
      </tr>`
  }

  #detail(queue) {
    const back = inPage('/system/dashboard#queues', 'All queues')
    if (queue === undefined)
      return html`<div class="card"><p>${back}</p>${empty(`There is no queue ${this.#open}`)}</div>`
    const { deliveries = [], next = null } = this.#page ?? {}
    return html`
      <div class="card scrolls">
        <p>${back}${queue.paused === null ? nothing : html` · paused since ${whenAndAgo(queue.paused)}`}${queue.dead > 0 ? html` · ${inPage('/system/dashboard#letters', plural(queue.dead, 'dead letter'))}` : nothing}</p>
        ${this.#rows([queue])}
      </div>
      <div class="card">
        <div class="toolbar letters-toolbar">
          ${this.#filterFields()}
          <p class="note" role="status">${this.#refusal ?? (this.#page === undefined ? '' : plural(deliveries.length, 'delivery', 'deliveries'))}</p>
        </div>
        ${deliveries.length === 0 ? this.#none(next) : this.#list.show(deliveries.map((each) => this.#entry(queue, each)))}
        <div class="actions">
          <button type="button" ?disabled=${this.#before.length === 0} @click=${() => this.#turn(null)}>First page</button>
          <button type="button" ?disabled=${next === null} @click=${() => this.#turn(next)}>Next page</button>
        </div>
      </div>`
  }

  #none(next) {
    if (this.#page === undefined) return nothing
    return next === null
      ? empty('No deliveries like that')
      : empty('None among those that were looked at', 'Go on with the next page.')
  }

  /** @param after null: to the first page */
  #turn(after) {
    if (after === null) this.#before = []
    else this.#before.push(after)
    void this.#load()
  }

  #filterFields() {
    const { state, key, search } = this.#filter
    const payloads = ({ target }) => {
      this.#withPayloads = target.checked
      void this.#load()
    }
    return html`
      <select aria-label="Which deliveries" .value=${state} @change=${({ target }) => this.#choose('state', target.value)}>
        ${Object.entries(STATES).map(([value, text]) => html`<option value=${value}>${text}</option>`)}
      </select>
      <input type="search" placeholder="Key" aria-label="Key of the deliveries" .value=${key} @input=${({ target }) => this.#choose('key', target.value, TYPED_MS)}>
      <input type="search" placeholder="Part of the payload" aria-label="Part of the payload" .value=${search} @input=${({ target }) => this.#choose('search', target.value, TYPED_MS)}>
      <label><input type="checkbox" .checked=${this.#withPayloads} @change=${payloads}> Payloads</label>`
  }

  #entry(queue, delivery) {
    const { id, state, key, attempt, at, error, timestamp, running, payload, payload_keys, request_id } = delivery
    const about = `${queue.event} ${id}`
    const run = ({ currentTarget }) =>
      this.#act(currentTarget, about, pathOf(queue, `/${id}/run`), {}, () => 'begins now')
    const cancel = (button, isWithCaused = false) =>
      this.#act(
        button,
        about,
        `/system/events/${id}/cancel`,
        { caused_too: isWithCaused },
        ({ waiting, running: told }) => `taken back: ${count(waiting)} waited, ${count(told)} ran`,
      )
    const canRun = state === 'later' || state === 'retrying' || at !== undefined
    const progress =
      running?.of === undefined
        ? ''
        : `: ${count(running.done)} of ${count(running.of)}${running.note ? `, ${running.note}` : ''}`
    return {
      key: id,
      attributes: { class: 'letter', tabindex: '-1' },
      content: html`
        <div class="letter-head"><strong>${STATES[state]}</strong><code class="muted">${id}</code>${whenAndAgo(timestamp, 'muted when')}</div>
        ${facts([
          [
            'Runs',
            running &&
              html`since ${whenAndAgo(running.since)} in ${running.replica}, ${running.lane === null ? 'the primary' : `lane ${running.lane}`}${progress}`,
          ],
          ['Begins', at && whenOf(at)],
          ['Attempt', attempt > 1 ? count(attempt) : null],
          ['Last error', error && html`<code class="wrap">${error}</code>`],
          ['Key', key && html`<code>${key}</code>`],
          [
            'Payload',
            payload === undefined
              ? html`<span class="muted">${payload_keys.join(', ') || 'empty'}</span>`
              : html`<code class="wrap">${JSON.stringify(payload)}</code>`,
          ],
          ['Belongs to', linkToRequest(request_id ?? id)],
        ])}
        <div class="actions">
          ${canRun ? html`<button class="primary" type="button" aria-label=${`Run ${id} now`} @click=${run}>Run now</button>` : nothing}
          ${sureButton({ label: `Cancel ${id} for all subscribers`, text: 'Cancel', question: 'For all subscribers?' }, (button) => cancel(button))}
          ${sureButton({ label: `Cancel ${id} and what it has caused`, text: 'Cancel all it caused', question: 'With everything below it?' }, (button) => cancel(button, true))}
        </div>`,
    }
  }
}

const weightOf = ({ waiting, running, retrying, dead, paused }) =>
  (paused === null ? 0 : 1e9) + dead * 1e3 + waiting + running + retrying

const isBad = (queue, key) => (key === 'dead' || key === 'blocked_keys') && queue[key] > 0

function cellOf(queue, key) {
  const { more, oldest_at, empty_in_ms, waiting_estimate } = queue
  if (key === 'oldest') return oldest_at === null ? '–' : ago(oldest_at).replace(' ago', '')
  if (key === 'empty') return empty_in_ms === null ? '–' : empty_in_ms === 0 ? 'now' : duration(empty_in_ms)
  if (key === 'waiting' && waiting_estimate !== null) return `about ${count(waiting_estimate)}`
  return `${count(queue[key])}${more.includes(key) ? '+' : ''}`
}

const marksOf = ({ paused, subscribed }) => html`
  ${paused === null ? nothing : html` <span class="state" data-tone="warn"><span class="dot"></span>paused</span>`}
  ${subscribed ? nothing : html` <span class="state" data-tone="bad"><span class="dot"></span>not subscribed</span>`}`

/** A time to come. */
function whenOf(at) {
  const ms = Date.parse(at) - Date.now()
  return html`<time datetime=${at} title=${at}>${ms <= 0 ? 'as soon as there is room' : `in ${duration(ms)}`}</time>`
}
