import { el, facts } from './dom.js'
import { count } from './format.js'
import { addressOfDeath, inPage, linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

/** A dead letter that waits, with what is known of it and what can be done with it. */
export function letterItem(page, letter) {
  const { id, event, event_id, subscriber, error, attempts, payload_keys, original_keys, parked, key, waiting } = letter
  const { timestamp, request_id, black_box: box } = letter
  const show = el('button', {
    class: 'quiet',
    type: 'button',
    text: 'Show event',
    on: { click: () => page.revealEvent(event_id) },
  })
  const place = box?.guilty?.line
  return el(
    'li',
    { class: 'letter', 'data-letter': id, tabindex: '-1' },
    el(
      'div',
      { class: 'letter-head' },
      el('strong', { text: event }),
      el('span', { class: 'muted', text: `→ ${subscriber}` }),
      whenAndAgo(timestamp, { class: 'muted when' }),
    ),
    facts([
      ['Error', el('code', { class: 'wrap', text: error })],
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
