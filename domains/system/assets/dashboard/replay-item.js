import { el, facts } from '/system/dashboard/dom.js'
import { linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

const OUTCOMES = { running: 'Under way', done: 'Handled', failed: 'Failed again' }
const STATES = { running: 'warn', done: 'ok', failed: 'bad' }

/** What has become of a replay, in one line. */
export function outcomeOf({ outcome, at }) {
  const state = el('span', { class: `state state-${STATES[outcome]}` }, el('span.dot'), OUTCOMES[outcome])
  return el('span.outcome', { role: 'status' }, state, ' ', whenAndAgo(at, { class: 'muted' }))
}

/** A dead letter that was replayed, with what has become of it. @param showLetter shows the letter with an id */
export function replayItem({ id, event, event_id, request_id, subscriber, error, replay, timestamp }, showLetter) {
  const { outcome, error: reason, letter } = replay
  const show =
    letter === undefined
      ? null
      : el('button.quiet', { type: 'button', click: () => showLetter(letter) }, 'Show the new letter')
  return el(
    'li.letter',
    { 'data-letter': id, 'data-outcome': outcome, tabindex: '-1' },
    el(
      'div.letter-head',
      {},
      el('strong', {}, event),
      el('span.muted', {}, `→ ${subscriber}`),
      whenAndAgo(timestamp, { class: 'muted when' }),
    ),
    facts([
      ['Replay', outcomeOf(replay)],
      ['Reason', reason === undefined ? null : el('code.wrap', {}, reason)],
      ['Had failed with', el('code.wrap', {}, error)],
      ['Belongs to', linkToRequest(request_id ?? event_id)],
    ]),
    show === null ? null : el('div.actions', {}, show),
  )
}
