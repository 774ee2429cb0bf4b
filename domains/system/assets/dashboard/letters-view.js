import { el, empty, facts } from './dom.js'
import { ago, clock, count, plural } from './format.js'

/** Most letters that are shown. One more is read, to tell whether there are more. */
export const LETTERS_SHOWN_MAX = 100

/** Deliveries that failed for good, with buttons to replay and to delete them. */
export class LettersView {
  title = 'Dead letters'
  badge = ''
  #page
  #note = el('p', { class: 'note' })
  #list = el('ol', { class: 'letters', 'aria-label': 'Dead letters, newest first' })
  #refresh = el('button', { type: 'button', text: 'Refresh' })
  #drawn = null

  constructor(page) {
    this.#page = page
    this.#refresh.addEventListener('click', () => page.loadLetters())
    this.element = el(
      'section',
      { class: 'view', 'aria-label': 'Dead letters' },
      el('div', { class: 'card' }, el('div', { class: 'toolbar' }, this.#refresh, this.#note), this.#list),
    )
  }

  onHello() {}
  onSecond() {}

  show() {
    void this.#page.loadLetters()
  }

  /** @param letters oldest first; null when the plugin that lists them is not installed */
  onLetters(letters) {
    this.badge = letters === null || letters.length === 0 ? '' : countOf(letters)
    const shape = JSON.stringify(letters?.map(({ id, original_keys }) => [id, original_keys !== undefined]) ?? null)
    if (shape === this.#drawn) return
    this.#drawn = shape
    if (letters === null) {
      this.#list.replaceChildren(el('li', {}, empty('The plugin manage-dead-letters is not installed')))
      return
    }
    const newest = letters.slice(-LETTERS_SHOWN_MAX).reverse()
    this.#note.textContent =
      letters.length === newest.length
        ? plural(letters.length, 'letter')
        : `The newest ${LETTERS_SHOWN_MAX} letters; /system/dead-letters?before=${newest.at(-1).id} has older ones`
    const none = el(
      'li',
      {},
      empty(
        'No dead letters',
        el('p', {
          text: 'When a subscriber has failed at an event for the last time, the event is kept here: fix the subscriber, then replay it.',
        }),
      ),
    )
    this.#list.replaceChildren(...(newest.length === 0 ? [none] : newest.map((letter) => this.#item(letter))))
  }

  #item(letter) {
    const {
      id,
      event,
      event_id,
      subscriber,
      error,
      attempts,
      payload_keys,
      original_keys,
      parked,
      timestamp,
      request_id,
      black_box: box,
    } = letter
    const show = el('button', {
      class: 'quiet',
      type: 'button',
      text: 'Show event',
      on: { click: () => this.#page.revealEvent(event_id) },
    })
    return el(
      'li',
      { class: 'letter', 'data-letter': id },
      el(
        'div',
        { class: 'letter-head' },
        el('strong', { text: event }),
        el('span', { class: 'muted', text: `→ ${subscriber}` }),
        el('span', { class: 'muted when', text: `${clock(timestamp)} · ${ago(timestamp)}` }),
      ),
      facts([
        ['Error', el('code', { class: 'wrap', text: error })],
        ['Attempts', count(attempts)],
        ['Payload keys', payload_keys.join(', ') || 'none'],
        [
          'Edited',
          original_keys === undefined ? null : `yes; the original had ${original_keys.join(', ') || 'no keys'}`,
        ],
        ['Waiting', parked ? 'what follows with its key waits for it' : null],
        ['Request id', request_id === null ? null : el('code', { text: request_id })],
        ['Died with it', box === undefined ? null : `${box.message}${box.guilty?.line ? `, ${box.guilty.line}` : ''}`],
      ]),
      this.#page.letterButtons(letter, this.#page.hasEvent(event_id) ? show : null),
    )
  }
}

/** More than are read are not counted. */
export const countOf = ({ length }) => (length > LETTERS_SHOWN_MAX ? `${LETTERS_SHOWN_MAX}+` : count(length))
