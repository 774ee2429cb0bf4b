import { el } from '/system/dashboard/dom.js'

/** Milliseconds without a key until what was typed counts. */
const TYPED_MS = 250

/** Which dead letters are shown: those that wait or those that were replayed, and of which event, subscriber, error and time. */
export class LetterFilter {
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
