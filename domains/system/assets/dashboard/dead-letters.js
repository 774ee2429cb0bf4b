import { answerOf, callOnLetters, letterButtons, letterReplays, outcomeOf, sureButton } from './dead-letter-actions.js'
import { count, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfDeath, inPage, linkToRequest, whenAndAgo } from './page.js'
import { empty, facts } from './parts.js'
import { fetchJson } from './process.js'
import { KeyedList, View } from './view.js'

/** Most letters that are shown. One more is read, to tell whether there are more. */
export const LETTERS_SHOWN_MAX = 100
/** Milliseconds after which replays that are under way are read again, in the list of those. */
const UNDER_WAY_MS = 1000
/** Most letters that are replayed at once. */
const REPLAYED_MAX = 1000
/** Milliseconds without a key until what was typed counts. */
const TYPED_MS = 250
/** All that wait. */
const WAITING = { kind: 'waiting', event: '', subscriber: '', error: '', since: '' }

/** More than are read are not counted. */
export const countOf = ({ length }) => (length > LETTERS_SHOWN_MAX ? `${LETTERS_SHOWN_MAX}+` : count(length))

/** Deliveries that failed for good, with what can be done with one or with many, and those that were replayed with what became of them. */
export class LettersView extends View {
  subject = 'letter'
  #list = new KeyedList('letters', 'Dead letters, newest first')
  #filter = { ...WAITING }
  #letters = []
  /** Number of the last read: the answer to an earlier one may come later. */
  #reads = 0
  #timer
  #typed

  constructor(page) {
    super(page, 'Dead letters', '')
    letterReplays.listen(() => this.draw())
  }

  show() {
    letterReplays.forgetEnded()
    super.show()
    void this.page.loadLetters()
  }

  reveal(id) {
    void this.#showLetter(id)
    return true
  }

  /** @param letters all that wait, oldest first; null when the plugin that lists them is not installed */
  onLetters(letters) {
    this.badge = letters === null || letters.length === 0 ? '' : countOf(letters)
    if (letters !== null) letterReplays.forgetWaiting(letters)
    if (this.#isAll || letters === null) {
      this.#reads++
      this.#take(letters)
    } else if (this.element.isConnected) void this.#load()
  }

  // ── which are shown ──────────────────────────────────────────────────────

  get #isReplayed() {
    return this.#filter.kind === 'replayed'
  }

  get #isAll() {
    return Object.entries(WAITING).every(([name, value]) => this.#filter[name] === value)
  }

  /** What is wanted of the letters, by the names of the API. */
  get #wanted() {
    const { kind, since, ...texts } = this.#filter
    const all = { ...texts, since: since === '' ? '' : new Date(since).toISOString() }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  }

  #choose(name, value, afterMs = 0) {
    this.#filter[name] = value
    clearTimeout(this.#typed)
    this.#typed = setTimeout(() => {
      letterReplays.forgetEnded()
      void this.#load()
    }, afterMs)
  }

  /** Shows the letters that the filter wants. */
  async #load() {
    const read = ++this.#reads
    const letters = await this.#fetch()
    if (read === this.#reads && letters !== null) this.#take(letters)
  }

  #fetch() {
    const query = new URLSearchParams({ ...this.#wanted, limit: String(LETTERS_SHOWN_MAX + 1) })
    if (this.#isReplayed) query.set('replayed', 'true')
    return fetchJson(`/system/dead-letters?${query}`)
  }

  #take(letters) {
    this.#letters = letters
    this.draw()
    // Those that are under way are looked at again.
    clearTimeout(this.#timer)
    const isUnderWay = letters?.some(({ replay }) => replay?.outcome === 'running')
    if (isUnderWay && this.element.isConnected) this.#timer = setTimeout(() => void this.#load(), UNDER_WAY_MS)
  }

  /** Shows a letter that waits. */
  async #showLetter(id) {
    this.#filter = { ...WAITING }
    const letters = await this.#fetch()
    // An answer that began earlier and comes later does not count.
    this.#reads++
    if (letters !== null) this.#take(letters)
    const item = this.#list.item(id)
    if (item === undefined) {
      const text = `The letter ${id} does not wait among the newest ${LETTERS_SHOWN_MAX}: it was replayed or deleted, or is older.`
      return this.page.notices.tell('letter', 'warn', text, true)
    }
    item.scrollIntoView({ block: 'center' })
    item.focus()
  }

  // ── what is shown ────────────────────────────────────────────────────────

  content() {
    const letters = this.#letters === null || this.#isReplayed ? this.#letters : withReplays(this.#letters)
    const newest = letters?.slice(-LETTERS_SHOWN_MAX).reverse() ?? []
    const refresh = () => {
      letterReplays.forgetEnded()
      void this.page.loadLetters()
    }
    return html`
      <div class="card">
        <div class="toolbar letters-toolbar">
          ${this.#filterFields()}
          <button type="button" ?disabled=${this.#isReplayed || !this.#letters?.length} @click=${() => this.#preview()}>Preview</button>
          ${sureButton(REPLAY_ALL, (button) => this.#replayAll(button), this.#isReplayed || !this.#letters?.length)}
          <button type="button" @click=${refresh}>Refresh</button>
          <p class="note">${letters === null ? '' : noteOf(letters, newest)}</p>
        </div>
        ${newest.length === 0 ? this.#none() : this.#list.show(newest.map((letter) => this.#entry(letter)))}
      </div>`
  }

  #filterFields() {
    const { kind, since } = this.#filter
    const names = (what) => [...new Set(this.page.deadLetters.map((letter) => letter[what]))]
    const field = (name, label) => html`
      <input type="search" placeholder=${label} aria-label=${`${label} of the letters`} list=${`letter-${name}s`}
        .value=${this.#filter[name]} @input=${({ target }) => this.#choose(name, target.value.trim(), TYPED_MS)}>
      <datalist id=${`letter-${name}s`}>${name === 'error' ? nothing : names(name).map((value) => html`<option value=${value}></option>`)}</datalist>`
    return html`
      <select aria-label="Which letters" .value=${kind} @change=${({ target }) => this.#choose('kind', target.value)}>
        <option value="waiting">Waiting</option><option value="replayed">Replayed</option>
      </select>
      ${field('event', 'Event')}${field('subscriber', 'Subscriber')}${field('error', 'Part of the error')}
      <input type="datetime-local" aria-label="Letters since" .value=${since} @change=${({ target }) => this.#choose('since', target.value)}>`
  }

  #none() {
    if (this.#letters === null) return empty('The plugin manage-dead-letters is not installed')
    if (this.#isReplayed) return empty('No replays', 'What becomes of a letter that is replayed is told here.')
    if (!this.#isAll) return empty('No dead letters like that')
    const hint =
      'When a subscriber has failed at an event for the last time, the event is kept here: fix the subscriber, then replay it.'
    return empty('No dead letters', hint)
  }

  #entry(letter) {
    const { id, replay } = letter
    return {
      key: id,
      attributes: { class: 'letter', tabindex: '-1', 'data-outcome': replay?.outcome ?? null },
      content: replay === undefined ? waitingLetter(this.page, letter) : this.#replayedLetter(letter),
    }
  }

  /** What has become of a letter that was replayed. */
  #replayedLetter(letter) {
    const { event_id, request_id, error, replay } = letter
    const show = () => this.#showLetter(replay.letter)
    return html`
      ${letterHead(letter)}
      ${facts([
        ['Replay', outcomeOf(replay)],
        ['Reason', replay.error && html`<code class="wrap">${replay.error}</code>`],
        ['Had failed with', html`<code class="wrap">${error}</code>`],
        ['Belongs to', linkToRequest(request_id ?? event_id)],
      ])}
      ${replay.letter === undefined ? nothing : html`<div class="actions"><button class="quiet" type="button" @click=${show}>Show the new letter</button></div>`}`
  }

  /** Tells what *Replay all* would do. */
  async #preview() {
    const query = new URLSearchParams({ ...this.#wanted, limit: String(REPLAYED_MAX) })
    const { refusal, body } = await answerOf(`/system/dead-letters/preview?${query}`, 'GET', undefined)
    const text = refusal ?? (body.map(previewOf).join('; ') || 'nothing')
    this.page.notices.tell('letter', refusal === null ? 'info' : 'bad', `Replay all would deliver: ${text}`, true)
  }

  #replayAll(button) {
    return callOnLetters(this.page, button, {
      about: 'Dead letters',
      path: '/system/dead-letters/replay',
      method: 'POST',
      body: { ...this.#wanted, limit: REPLAYED_MAX },
      done: ({ replayed }) => {
        for (const letter of this.#letters ?? []) letterReplays.begin(letter)
        return `${count(replayed)} redelivered; the result is shown for each`
      },
    })
  }
}

const previewOf = ({ event, subscriber, letters, subscribed }) =>
  `${count(letters)} ${event} to ${subscriber}${subscribed ? '' : ', which does not subscribe any more: not these'}`

const REPLAY_ALL = { label: 'Replay all that are shown', text: 'Replay all', question: 'Replay them all?' }

function noteOf(letters, newest) {
  if (letters.length === newest.length) return plural(letters.length, 'letter')
  return `The newest ${LETTERS_SHOWN_MAX} letters; /system/dead-letters?before=${newest.at(-1).id} has older ones`
}

/** Letters that were replayed from here stay in their places, with the outcome. */
function withReplays(letters) {
  const replays = letterReplays.all()
  const ids = new Set(replays.map(({ id }) => id))
  const all = [...letters.filter(({ id }) => !ids.has(id)), ...replays]
  return all.sort((a, b) => (a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0))
}

const letterHead = ({ event, subscriber, timestamp }) => html`
  <div class="letter-head"><strong>${event}</strong><span class="muted">→ ${subscriber}</span>${whenAndAgo(timestamp, 'muted when')}</div>`

/** A dead letter that waits, with what is known of it and what can be done with it. */
function waitingLetter(page, letter) {
  const { event_id, error, attempts, payload_keys, original_keys, parked, key, waiting, request_id } = letter
  const box = letter.black_box
  const place = box?.guilty?.line
  const after = `what follows with its key${key === undefined ? '' : ` “${key}”`} waits for it${waiting ? `: ${count(waiting)}` : ''}`
  const show = html`<button class="quiet" type="button" @click=${() => page.revealEvent(event_id)}>Show event</button>`
  return html`
    ${letterHead(letter)}
    ${facts([
      ['Error', html`<code class="wrap">${error}</code>`],
      ['Attempts', count(attempts)],
      ['Payload keys', payload_keys.join(', ') || 'none'],
      ['Edited', original_keys && `yes; the original had ${original_keys.join(', ') || 'no keys'}`],
      ['Waiting', parked ? after : null],
      ['Belongs to', linkToRequest(request_id ?? event_id)],
      ['Died with it', box && inPage(addressOfDeath(box.at), `${box.message}${place ? `, ${place}` : ''}`)],
    ])}
    ${letterButtons(page, letter, show)}`
}
