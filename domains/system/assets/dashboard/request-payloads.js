import { html, nothing } from '/system/dashboard/lit-html.js'
import { bytes } from './format.js'

/** Fields of a request, a part or a call that hold what went in or came out, as far as the history keeps it, with their titles. */
const FIELDS = {
  params: 'Path parameters',
  query: 'Query',
  headers: 'Headers',
  body: 'Body',
  payload: 'Payload',
  args: 'Arguments',
  values: 'Values',
  result: 'Result',
  answer: 'Answer',
}
/** Characters of a payload that is shown open. */
const OPEN_MAX = 400

/** @param {object} holder a request, a part or a call @param {string} [of] what it belongs to */
export function payloadsOf(holder, of = '') {
  const found = Object.entries(FIELDS).filter(([name]) => holder?.[name] !== undefined && holder[name] !== null)
  if (found.length === 0) return nothing
  return found.map(([name, title]) => payload(of === '' ? title : `${title} of ${of}`, holder[name]))
}

function payload(title, value) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  if (text === undefined || text === '{}' || text === '') return nothing
  return html`
    <details class="payload" ?open=${text.length <= OPEN_MAX}>
      <summary>${title} <span class="muted">${bytes(text.length)}</span></summary>
      <pre class="wrap">${text}</pre>
    </details>`
}
