import { el, facts } from './dom.js'
import { ago, clock } from './format.js'

const OUTCOMES = { running: 'Under way', done: 'Handled', failed: 'Failed again' }

/** A dead letter that was replayed, with what has become of it. @param showLetter shows the letter with an id */
export function replayItem({ id, event, subscriber, error, replay }, showLetter) {
  const { at, outcome, error: reason, letter } = replay
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
    { class: 'letter', 'data-letter': id, 'data-outcome': outcome },
    el(
      'div',
      { class: 'letter-head' },
      el('strong', { text: event }),
      el('span', { class: 'muted', text: `→ ${subscriber}` }),
      el('span', { class: 'muted when', text: `${clock(at)} · ${ago(at)}` }),
    ),
    facts([
      ['Outcome', OUTCOMES[outcome]],
      ['Reason', reason === undefined ? null : el('code', { class: 'wrap', text: reason })],
      ['Had failed with', el('code', { class: 'wrap', text: error })],
    ]),
    show === null ? null : el('div', { class: 'actions' }, show),
  )
}
