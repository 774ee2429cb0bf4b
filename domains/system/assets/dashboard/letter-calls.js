import { logIn } from './login.js'

/** Milliseconds for which a notice of success stays. */
const NOTICE_MS = 6000

/**
 * Does something with dead letters, tells the outcome, and reads the letters again.
 * @param call `about`: what it is done to; `path`, `method`, `body`; `done`: what to tell then, from the data of the answer
 * @returns whether it was done
 */
export async function callOnLetters(page, button, { about, path, method, body, done }) {
  const hadFocus = button.matches(':focus')
  button.disabled = true
  const { refusal, data } = await answerOf(path, method, body)
  button.disabled = false
  page.notices.tell('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done(data)}`, true)
  if (refusal === null) setTimeout(() => page.notices.tell('letter', 'info', null), NOTICE_MS)
  await page.loadLetters()
  // The button was removed with its letter.
  if (hadFocus && !button.isConnected) document.getElementById('main').focus()
  return refusal === null
}

/** @returns why it was refused, or null; and what was answered */
async function answerOf(path, method, body) {
  try {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(path, { method, ...(body === undefined ? {} : json) })
    if (response.status === 401) logIn()
    const { error, data } = await response.json()
    return { refusal: response.ok ? null : (error ?? `Refused: ${response.status}`), data }
  } catch {
    // The process did not answer, or not with JSON: nothing was done.
    return { refusal: 'The process did not answer', data: null }
  }
}
