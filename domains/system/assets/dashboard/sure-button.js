import { el } from '/system/dashboard/dom.js'

/** Milliseconds for which the question stays. */
const SURE_MS = 4000

/** A button that asks once before it acts. @param run gets the button */
export function sureButton({ label, text, question, kind = 'quiet' }, run) {
  const button = el('button', { class: kind, type: 'button', 'aria-label': label }, text)
  let timer
  const rest = () => {
    clearTimeout(timer)
    button.dataset.sure = 'false'
    button.textContent = text
  }
  button.addEventListener('click', () => {
    if (button.dataset.sure === 'true') {
      rest()
      return run(button)
    }
    button.dataset.sure = 'true'
    button.textContent = question
    timer = setTimeout(rest, SURE_MS)
  })
  return button
}
