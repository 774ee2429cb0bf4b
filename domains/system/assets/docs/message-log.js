import { el } from '/system/docs/dom.js'
import { codeBlock } from './code-view.js'

/** Most messages that are kept on the page. */
const SHOWN_MAX = 200
/** Most characters of a message that are shown. */
const TEXT_MAX_CHARS = 10_000
const ARROWS = { in: '↓', out: '↑' }
const NAMES = { in: 'received', out: 'sent' }
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** The messages of a connection, newest first. However many come at once, they are drawn once a frame. */
export class MessageLog {
  element = el('ol.messages', { tabindex: '0', 'aria-label': 'Received and sent, newest first' })
  counts = { in: 0, out: 0 }
  #waiting = []

  /** @param {'in' | 'out'} direction */
  add(direction, text, label = '') {
    this.counts[direction]++
    if (this.#waiting.length === 0) requestAnimationFrame(() => this.#draw())
    this.#waiting.push({ direction, text, label, at: new Date() })
    if (this.#waiting.length > SHOWN_MAX) this.#waiting.shift()
  }

  #draw() {
    this.element.prepend(...this.#waiting.reverse().map(row))
    this.#waiting = []
    while (this.element.childElementCount > SHOWN_MAX) this.element.lastElementChild.remove()
  }
}

function row({ direction, text, label, at }) {
  const shown = text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)} …` : text
  return el(
    'li.message',
    { 'data-direction': direction },
    el('span.message-arrow', { role: 'img', 'aria-label': NAMES[direction] }, ARROWS[direction]),
    el('time', { datetime: at.toISOString() }, `${CLOCK.format(at)}.${String(at.getMilliseconds()).padStart(3, '0')}`),
    label !== '' && el('span.message-label', {}, label),
    codeBlock(shown),
  )
}
