import { el } from './dom.js'
import { logIn } from './login.js'

/** Milliseconds for which the question before a deletion stays. */
const SURE_MS = 4000
/** Milliseconds for which a notice of success stays. */
const NOTICE_MS = 6000

/** Buttons that replay and delete a dead letter, and show the outcome. @param more further buttons */
export function letterButtons(page, { id, event, subscriber }, ...more) {
  const about = `${event} to ${subscriber}`
  const act = async (button, path, method, done) => {
    const hadFocus = button.matches(':focus')
    button.disabled = true
    const refusal = await refusalOf(path, method)
    button.disabled = false
    page.notices.tell('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done}`, true)
    if (refusal === null) setTimeout(() => page.notices.tell('letter', 'info', null), NOTICE_MS)
    await page.loadLetters()
    // The button was removed with its letter.
    if (hadFocus && !button.isConnected) document.getElementById('main').focus()
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
  return el('div', { class: 'actions' }, replay, remove, ...more)
}

/** @returns why it was refused, or null */
async function refusalOf(path, method) {
  try {
    const response = await fetch(path, { method })
    if (response.status === 401) logIn()
    return response.ok ? null : ((await response.json()).error ?? `Refused: ${response.status}`)
  } catch {
    // The process did not answer, or not with JSON: nothing was done.
    return 'The process did not answer'
  }
}
