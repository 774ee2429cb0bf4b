/** What several pages show or do. Nothing that comes from the process, a document or a response is parsed as markup. */
import { html } from './lit-html.js'

/** Whether a click follows a link on this page: with a key that is held it is to be opened elsewhere. */
export const isPlain = (event) => !event.metaKey && !event.ctrlKey && !event.shiftKey

/** Whether what has the keyboard takes a text. */
export const isTyping = ({ tagName }) => tagName === 'INPUT' || tagName === 'TEXTAREA' || tagName === 'SELECT'

/** A button that copies what `readText` returns, and then shows whether it did. */
export const copyButton = (readText, what = 'it') => html`
  <button class="quiet small" type="button" aria-label=${`Copy ${what}`}
    @click=${({ currentTarget }) => copy(currentTarget, readText())}>Copy</button>`

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    // Browsers forbid it on plain HTTP, except on localhost. The text can be selected by hand.
    button.textContent = 'Select it by hand'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 1500)
}

/** Says that there is nothing, and what to do about it. @param {...unknown} hints texts are paragraphs */
export const empty = (title, ...hints) => html`
  <div class="empty"><p class="empty-title">${title}</p>${hints.map((hint) => (typeof hint === 'string' ? html`<p>${hint}</p>` : hint))}</div>`

const isGiven = (value) => value !== null && value !== undefined

/** A list of terms with their values. A row without a value is left out. */
export function facts(rows) {
  const given = rows.filter(([, ...values]) => values.some(isGiven))
  return html`<dl class="facts">${given.map(([term, ...values]) => html`<dt>${term}</dt><dd>${values}</dd>`)}</dl>`
}

/** A text in which backticks mark code. */
export const prose = (text) =>
  text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))
