import { el, facts } from './dom.js'
import { linkToRequest } from './links.js'
import { whenAndAgo } from './times.js'

const OUTCOMES = { running: 'Under way', done: 'Handled', failed: 'Failed again' }
const STATES = { running: 'warn', done: 'ok', failed: 'bad' }

/** What has become of a replay, in one line. */
export function outcomeOf({ outcome, at }) {
  const state = el('span', { class: `state state-${STATES[outcome]}` }, el('span', { class: 'dot' }), OUTCOMES[outcome])
  return el('span', { class: 'outcome', role: 'status' }, state, ' ', whenAndAgo(at, { class: 'muted' }))
}

/** A dead letter that was replayed, with what has become of it. @param showLetter shows the letter with an id */
export function replayItem({ id, event, event_id, request_id, subscriber, error, replay, timestamp }, showLetter) {
  const { outcome, error: reason, letter } = replay
  const show =
    letter === undefined
      ? null
      : el('button', {
          class: 'quiet',
          type: 'button',
          text: 'Show the new letter',
          on: { click: () => showLetter(letter) },
        })
  return el(
    'li',
    { class: 'letter', 'data-letter': id, 'data-outcome': outcome, tabindex: '-1' },
    el(
      'div',
      { class: 'letter-head' },
      el('strong', { text: event }),
      el('span', { class: 'muted', text: `→ ${subscriber}` }),
      whenAndAgo(timestamp, { class: 'muted when' }),
    ),
    facts([
      ['Replay', outcomeOf(replay)],
      ['Reason', reason === undefined ? null : el('code', { class: 'wrap', text: reason })],
      ['Had failed with', el('code', { class: 'wrap', text: error })],
      ['Belongs to', linkToRequest(request_id ?? event_id)],
    ]),
    show === null ? null : el('div', { class: 'actions' }, show),
  )
}
