import { el } from '/system/dashboard/dom.js'
import { callOnLetters } from './letter-calls.js'
import { letterForm } from './letter-form.js'
import { letterReplays } from './letter-replays.js'
import { sureButton } from './sure-button.js'

/** Buttons that replay, edit and delete a dead letter, and show the outcome. @param more further buttons */
export function letterButtons(page, letter, ...more) {
  const { id, event, subscriber } = letter
  const about = `${event} to ${subscriber}`
  const path = `/system/dead-letters/${encodeURIComponent(id)}`
  const act = (button, done, call) => callOnLetters(page, button, { about, path, done, ...call })
  const replay = el('button.primary', { type: 'button', 'aria-label': `Replay ${about}` }, 'Replay')
  const begin = () => {
    letterReplays.begin(letter)
    return 'redelivered'
  }
  replay.addEventListener('click', () => act(replay, begin, { path: `${path}/replay`, method: 'POST' }))
  const deletion = { label: `Delete ${about}`, text: 'Delete', question: 'Delete for good?' }
  const remove = sureButton(deletion, (button) => act(button, () => 'deleted', { method: 'DELETE' }))
  const form = letterForm(letter, (button, payload) =>
    act(button, () => 'edited', { method: 'PUT', body: { payload } }),
  )
  const edit = el('button.quiet', { type: 'button', 'aria-label': `Edit ${about}` }, 'Edit')
  edit.addEventListener('click', () => {
    form.hidden = !form.hidden
    if (!form.hidden) form.querySelector('textarea').focus()
  })
  return el('div', {}, el('div.actions', {}, replay, edit, remove, ...more), form)
}
