import { el, facts } from '/system/dashboard/dom.js'
import { count } from './format.js'
import { addressOfDeath, inPage, linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

/** A dead letter that waits, with what is known of it and what can be done with it. */
export function letterItem(page, letter) {
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
