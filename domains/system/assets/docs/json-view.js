import { el } from './dom.js'

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g
/** A text of more characters is shown without colours. */
const COLOURED_MAX_CHARS = 100_000

/** JSON, indented and coloured. */
export function jsonBlock(value) {
  return codeBlock(JSON.stringify(value, null, 2) ?? '')
}

/** JSON text as it is, coloured. */
export function codeBlock(text) {
  const pre = el('pre.code', { tabindex: '0' })
  if (text.length > COLOURED_MAX_CHARS) {
    pre.textContent = text
    return pre
  }
  let at = 0
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, colon, word, number] = match
    pre.append(text.slice(at, match.index))
    if (string !== undefined) pre.append(el(colon ? 'span.json-key' : 'span.json-string', {}, string), colon ?? '')
    else pre.append(el(word === undefined ? 'span.json-number' : 'span.json-word', {}, word ?? number))
    at = match.index + whole.length
  }
  pre.append(text.slice(at))
  return pre
}
