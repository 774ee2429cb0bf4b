import { html, nothing } from '/system/dashboard/lit-html.js'
import { bytes } from './format.js'

/** Fields of a part or a call that hold what went in or came out, with their titles. There are some in development only. */
const FIELDS = {
  params: 'Path parameters',
  query: 'Query',
  body: 'Body',
  payload: 'Payload',
  values: 'Values',
  answer: 'Answer',
}
/** Characters of a payload that is shown open. */
const OPEN_MAX = 400

/** @param {object | undefined} holder a part or a call @param {string} [of] what it belongs to */
export function payloadsOf(holder, of = '') {
  const found = Object.entries(FIELDS).filter(([name]) => holder?.[name] !== undefined)
  if (found.length === 0) return nothing
  return found.map(([name, title]) => payload(of === '' ? title : `${title} of ${of}`, holder[name]))
}

function payload(title, { text, type, bytes: wholeBytes }) {
  const shown = readable(text)
  if (shown === '{}') return nothing
  const note = [type, wholeBytes === undefined ? null : `${text === '' ? '' : 'the begin of '}${bytes(wholeBytes)}`]
  return html`
    <details class="payload" ?open=${shown.length <= OPEN_MAX}>
      <summary>${title} <span class="muted">${note.filter((each) => each).join(' · ')}</span></summary>
      ${shown === '' ? html`<p class="note">Not kept: it is no text, or too long.</p>` : html`<pre class="wrap">${shown}</pre>`}
    </details>`
}

/** JSON with line breaks where it is long. */
function readable(text) {
  try {
    const value = JSON.parse(text)
    return text.length <= LINE_MAX ? text : JSON.stringify(value, null, 2)
  } catch {
    return text
  }
}

/** Characters of JSON in one line. */
const LINE_MAX = 60
