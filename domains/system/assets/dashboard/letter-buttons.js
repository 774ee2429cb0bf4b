import { el } from './dom.js'
import { letterForm } from './letter-form.js'
import { logIn } from './login.js'

/** Milliseconds for which the question before a deletion stays. */
const SURE_MS = 4000
/** Milliseconds for which a notice of success stays. */
const NOTICE_MS = 6000

/** Buttons that replay, edit and delete a dead letter, and show the outcome. @param more further buttons */
export function letterButtons(page, letter, ...more) {
  const { id, event, subscriber } = letter
  const about = `${event} to ${subscriber}`
  const act = async (button, path, method, done, body) => {
    const hadFocus = button.matches(':focus')
    button.disabled = true
    const refusal = await refusalOf(path, method, body)
    button.disabled = false
    page.notices.tell('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done}`, true)
    if (refusal === null) setTimeout(() => page.notices.tell('letter', 'info', null), NOTICE_MS)
    await page.loadLetters()
    // The button was removed with its letter.
    if (hadFocus && !button.isConnected) document.getElementById('main').focus()
    return refusal === null
  }
  const path = `/system/dead-letters/${encodeURIComponent(id)}`
  const replay = el('button', { class: 'primary', type: 'button', 'aria-label': `Replay ${about}`, text: 'Replay' })
  replay.addEventListener('click', () => act(replay, `${path}/replay`, 'POST', 'delivered again'))
  const remove = el('button', { class: 'quiet', type: 'button', 'aria-label': `Delete ${about}`, text: 'Delete' })
  remove.addEventListener('click', () => {
    if (remove.dataset.sure === 'true') return act(remove, path, 'DELETE', 'deleted')
    remove.dataset.sure = 'true'
    remove.textContent = 'Delete for good?'
    setTimeout(() => {
      remove.dataset.sure = 'false'
      remove.textContent = 'Delete'
    }, SURE_MS)
  })
  const form = letterForm(letter, (button, payload) => act(button, path, 'PUT', 'edited', { payload }))
  const edit = el('button', { class: 'quiet', type: 'button', 'aria-label': `Edit ${about}`, text: 'Edit' })
  edit.addEventListener('click', () => {
    form.hidden = !form.hidden
    if (!form.hidden) form.querySelector('textarea').focus()
  })
  return el('div', {}, el('div', { class: 'actions' }, replay, edit, remove, ...more), form)
}

/** @returns why it was refused, or null */
async function refusalOf(path, method, body) {
  try {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(path, { method, ...(body === undefined ? {} : json) })
    if (response.status === 401) logIn()
    return response.ok ? null : ((await response.json()).error ?? `Refused: ${response.status}`)
  } catch {
    // The process did not answer, or not with JSON: nothing was done.
    return 'The process did not answer'
  }
}
