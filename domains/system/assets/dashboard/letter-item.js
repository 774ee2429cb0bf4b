import { el, facts } from './dom.js'
import { ago, clock, count } from './format.js'

/** A dead letter that waits, with what is known of it and what can be done with it. */
export function letterItem(page, letter) {
  const { id, event, event_id, subscriber, error, attempts, payload_keys, original_keys, parked } = letter
  const { timestamp, request_id, black_box: box } = letter
  const show = el('button', {
    class: 'quiet',
    type: 'button',
    text: 'Show event',
    on: { click: () => page.revealEvent(event_id) },
  })
  return el(
    'li',
    { class: 'letter', 'data-letter': id, tabindex: '-1' },
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
      ['Edited', original_keys === undefined ? null : `yes; the original had ${original_keys.join(', ') || 'no keys'}`],
      ['Waiting', parked ? 'what follows with its key waits for it' : null],
      ['Request id', request_id === null ? null : el('code', { text: request_id })],
      ['Died with it', box === undefined ? null : `${box.message}${box.guilty?.line ? `, ${box.guilty.line}` : ''}`],
    ]),
    page.letterButtons(letter, page.hasEvent(event_id) ? show : null),
  )
}
