import { el, empty, facts, setText } from '/system/dashboard/dom.js'
import { callOnLetters, letterReplays, replayItem, sureButton } from './dead-letter-actions.js'
import { count, plural, whenAndAgo } from './format.js'
import { addressOfDeath, inPage, linkToRequest, named } from './page.js'

/** Most letters that are shown. One more is read, to tell whether there are more. */
export const LETTERS_SHOWN_MAX = 100
/** Milliseconds after which replays that are under way are read again, in the list of those. */
const UNDER_WAY_MS = 1000
/** Most letters that are replayed at once. */
const REPLAYED_MAX = 1000

/** Deliveries that failed for good, with what can be done with one or with many, and those that were replayed with what became of them. */
export class LettersView {
  title = 'Dead letters'
  badge = ''
  #page
  #note = el('p.note')
  #list = el('ol.letters', { 'aria-label': 'Dead letters, newest first' })
  #refresh = el('button', { type: 'button' }, 'Refresh')
  #filter = new LetterFilter(() => {
    letterReplays.forgetEnded()
    void this.#load()
  })
  #replayMany
  #letters = []
  #drawn = null
  /** Number of the last read: the answer to an earlier one may come later. */
  #reads = 0
  #timer

  constructor(page) {
    this.#page = page
    this.#refresh.addEventListener('click', () => {
      letterReplays.forgetEnded()
      void page.loadLetters()
    })
    letterReplays.listen(() => this.#draw(this.#letters))
    addEventListener('popstate', () => this.element.isConnected && this.#seek())
    const wanted = { label: 'Replay all that are shown', text: 'Replay all', question: 'Replay them all?' }
    this.#replayMany = sureButton(wanted, (button) => this.#replayAll(button))
    this.#replayMany.disabled = true
    this.element = el(
      'section.view',
      { 'aria-label': 'Dead letters' },
      el(
        'div.card',
        {},
        el('div.toolbar.letters-toolbar', {}, ...this.#filter.elements, this.#replayMany, this.#refresh, this.#note),
        this.#list,
      ),
    )
  }

  show() {
    letterReplays.forgetEnded()
    this.#seek()
    void this.#page.loadLetters()
  }

  /** Shows the letter that the address names. */
  #seek() {
    const id = named('letter')
    if (id !== null) void this.#showLetter(id)
  }

  /** @param letters all that wait, oldest first; null when the plugin that lists them is not installed */
  onLetters(letters) {
    this.badge = letters === null || letters.length === 0 ? '' : countOf(letters)
    if (letters !== null) {
      this.#filter.suggest(letters)
      letterReplays.forgetWaiting(letters)
    }
    if (this.#filter.isEmpty || letters === null) {
      this.#reads++
      this.#draw(letters)
    } else if (this.element.isConnected) void this.#load()
  }

  /** Shows the letters that the filter wants. */
  async #load() {
    const read = ++this.#reads
    const letters = await this.#fetch()
    if (read === this.#reads && letters !== null) this.#draw(letters)
  }

  #fetch() {
    const query = new URLSearchParams({ ...this.#filter.values, limit: String(LETTERS_SHOWN_MAX + 1) })
    if (this.#filter.isReplayed) query.set('replayed', 'true')
    return this.#page.fetchJson(`/system/dead-letters?${query}`)
  }

  #replayAll(button) {
    return callOnLetters(this.#page, button, {
      about: 'Dead letters',
      path: '/system/dead-letters/replay',
      method: 'POST',
      body: { ...this.#filter.values, limit: REPLAYED_MAX },
      done: ({ replayed }) => {
        for (const letter of this.#letters ?? []) letterReplays.begin(letter)
        return `${count(replayed)} redelivered; the result is shown for each`
      },
    })
  }

  /** Shows a letter that waits. */
  async #showLetter(id) {
    this.#filter.reset()
    const letters = await this.#fetch()
    // An answer that began earlier and comes later does not count.
    this.#reads++
    if (letters !== null) this.#draw(letters)
    const item = this.#itemOf(id)
    if (item === null) {
      const text = `The letter ${id} does not wait among the newest ${LETTERS_SHOWN_MAX}: it was replayed or deleted, or is older.`
      return this.#page.notices.tell('letter', 'warn', text, true)
    }
    item.scrollIntoView({ block: 'center' })
    item.focus()
  }

  #itemOf(id) {
    return this.#list.querySelector(`[data-letter="${CSS.escape(id)}"]`)
  }

  /** Those that are under way are looked at again. */
  #watch(letters) {
    clearTimeout(this.#timer)
    const isUnderWay = letters.some(({ replay }) => replay?.outcome === 'running')
    if (isUnderWay && this.element.isConnected) this.#timer = setTimeout(() => void this.#load(), UNDER_WAY_MS)
  }

  #draw(read) {
    this.#letters = read
    this.#watch(read ?? [])
    const letters = read === null || this.#filter.isReplayed ? read : withReplays(read)
    const { isReplayed, isEmpty } = this.#filter
    this.#replayMany.disabled = read === null || read.length === 0 || isReplayed
    const parts = letters?.map(({ id, original_keys, replay }) => [id, original_keys !== undefined, replay?.outcome])
    const shape = JSON.stringify([isReplayed, isEmpty, parts ?? null])
    if (shape === this.#drawn) return
    this.#drawn = shape
    if (letters === null) {
      this.#list.replaceChildren(el('li', {}, empty('The plugin manage-dead-letters is not installed')))
      return
    }
    const newest = letters.slice(-LETTERS_SHOWN_MAX).reverse()
    setText(
      this.#note,
      letters.length === newest.length
        ? plural(letters.length, 'letter')
        : `The newest ${LETTERS_SHOWN_MAX} letters; /system/dead-letters?before=${newest.at(-1).id} has older ones`,
    )
    const items = newest.map((letter) =>
      letter.replay !== undefined ? replayItem(letter, (id) => this.#showLetter(id)) : letterItem(this.#page, letter),
    )
    const focused = this.#list.querySelector('.letter:focus-within')?.dataset.letter
    this.#list.replaceChildren(...(items.length === 0 ? [el('li', {}, nothing(isReplayed, isEmpty))] : items))
    if (focused !== undefined) this.#itemOf(focused)?.focus({ preventScroll: true })
  }
}

/** Letters that were replayed from here stay in their places, with the outcome. */
function withReplays(letters) {
  const replays = letterReplays.all()
  if (replays.length === 0) return letters
  const ids = new Set(replays.map(({ id }) => id))
  const all = [...letters.filter(({ id }) => !ids.has(id)), ...replays]
  return all.sort((a, b) => (a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0))
}

function nothing(isReplayed, isEmpty) {
  if (isReplayed) return empty('No replays', el('p', {}, 'What becomes of a letter that is replayed is told here.'))
  if (!isEmpty) return empty('No dead letters like that')
  const hint =
    'When a subscriber has failed at an event for the last time, the event is kept here: fix the subscriber, then replay it.'
  return empty('No dead letters', el('p', {}, hint))
}

/** More than are read are not counted. */
export const countOf = ({ length }) => (length > LETTERS_SHOWN_MAX ? `${LETTERS_SHOWN_MAX}+` : count(length))

/** Milliseconds without a key until what was typed counts. */
const TYPED_MS = 250

/** Which dead letters are shown: those that wait or those that were replayed, and of which event, subscriber, error and time. */
class LetterFilter {
  #kind = el(
    'select',
    { 'aria-label': 'Which letters' },
    el('option', { value: 'waiting' }, 'Waiting'),
    el('option', { value: 'replayed' }, 'Replayed'),
  )
  #event = field('Event', 'letter-events')
  #subscriber = field('Subscriber', 'letter-subscribers')
  #error = field('Part of the error')
  #since = el('input', { type: 'datetime-local', 'aria-label': 'Letters since' })
  #events = el('datalist', { id: 'letter-events' })
  #subscribers = el('datalist', { id: 'letter-subscribers' })
  #typed

  /** @param onChange told when other letters are wanted */
  constructor(onChange) {
    this.elements = [
      this.#kind,
      this.#event,
      this.#subscriber,
      this.#error,
      this.#since,
      this.#events,
      this.#subscribers,
    ]
    for (const element of [this.#kind, this.#since]) element.addEventListener('change', onChange)
    for (const element of [this.#event, this.#subscriber, this.#error])
      element.addEventListener('input', () => {
        clearTimeout(this.#typed)
        this.#typed = setTimeout(onChange, TYPED_MS)
      })
  }

  get isReplayed() {
    return this.#kind.value === 'replayed'
  }

  /** What is given, by the names of the API. */
  get values() {
    const since = this.#since.value === '' ? '' : new Date(this.#since.value).toISOString()
    const all = {
      event: this.#event.value.trim(),
      subscriber: this.#subscriber.value.trim(),
      error: this.#error.value.trim(),
      since,
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  }

  get isEmpty() {
    return !this.isReplayed && Object.keys(this.values).length === 0
  }

  /** Shows all that wait. */
  reset() {
    this.#kind.value = 'waiting'
    for (const element of [this.#event, this.#subscriber, this.#error, this.#since]) element.value = ''
  }

  /** Proposes the names in these letters. */
  suggest(letters) {
    const options = (name) =>
      [...new Set(letters.map((letter) => letter[name]))].map((value) => el('option', { value }))
    this.#events.replaceChildren(...options('event'))
    this.#subscribers.replaceChildren(...options('subscriber'))
  }
}

const field = (label, list) =>
  el('input', { type: 'search', placeholder: label, 'aria-label': `${label} of the letters`, list })

/** A dead letter that waits, with what is known of it and what can be done with it. */
function letterItem(page, letter) {
  const { id, event, event_id, subscriber, error, attempts, payload_keys, original_keys, parked, key, waiting } = letter
  const { timestamp, request_id, black_box: box } = letter
  const show = el('button.quiet', { type: 'button', click: () => page.revealEvent(event_id) }, 'Show event')
  const place = box?.guilty?.line
  return el(
    'li.letter',
    { 'data-letter': id, tabindex: '-1' },
    el(
      'div.letter-head',
      {},
      el('strong', {}, event),
      el('span.muted', {}, `→ ${subscriber}`),
      whenAndAgo(timestamp, { class: 'muted when' }),
    ),
    facts([
      ['Error', el('code.wrap', {}, error)],
      ['Attempts', count(attempts)],
      ['Payload keys', payload_keys.join(', ') || 'none'],
      ['Edited', original_keys === undefined ? null : `yes; the original had ${original_keys.join(', ') || 'no keys'}`],
      [
        'Waiting',
        parked
          ? `what follows with its key${key === undefined ? '' : ` “${key}”`} waits for it${waiting ? `: ${count(waiting)}` : ''}`
          : null,
      ],
      ['Belongs to', linkToRequest(request_id ?? event_id)],
      ['Died with it', box && inPage(addressOfDeath(box.at), `${box.message}${place ? `, ${place}` : ''}`)],
    ]),
    page.letterButtons(letter, show),
  )
}
