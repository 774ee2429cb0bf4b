import { copyButton, el } from './dom.js'

/** Most characters of a body that are shown. */
const SHOWN_MAX_CHARS = 200_000

/** Renders a response: status, time, size, headers and body. */
export function answerView(response, bytes, durationMs, page) {
  const type = response.headers.get('content-type') ?? ''
  const text = isText(type) ? new TextDecoder().decode(bytes) : null
  const json = text !== null && /[/+]json/.test(type) ? parse(text) : undefined
  const shown = json === undefined ? text : JSON.stringify(json.value, null, 2)
  const token = json?.value?.data?.token ?? json?.value?.token
  return el(
    'div.answer',
    {},
    statusLine(
      response,
      page.caused.ofResponse(response),
      `${durationMs.toFixed(0)} ms · ${bytes.byteLength.toLocaleString('en')} bytes`,
    ),
    typeof token === 'string' && el('button', { type: 'button', click: () => page.useToken(token) }, 'Use this token'),
    headerList(response),
    bodyView(response, type, bytes, shown),
  )
}

function bodyView(response, type, bytes, shown) {
  if (bytes.byteLength === 0) return el('p.meta', {}, 'No body')
  if (shown === null) {
    const url = URL.createObjectURL(new Blob([bytes], { type }))
    const name = new URL(response.url).pathname.split('/').at(-1) || 'body'
    return el('p.meta', {}, `${type || 'Bytes'}: `, el('a', { href: url, download: name }, 'save'))
  }
  const cut = shown.length > SHOWN_MAX_CHARS
  return el(
    'div.answer-body',
    {},
    codeBlock(cut ? shown.slice(0, SHOWN_MAX_CHARS) : shown),
    el(
      'div.actions',
      {},
      copyButton(() => shown, 'the answer'),
      cut && el('span.meta', {}, 'Only the beginning is shown'),
    ),
  )
}

function statusLine(response, caused, ...facts) {
  return el(
    'p.answer-line',
    {},
    el('span.status', { 'data-tone': toneOf(String(response.status)) }, String(response.status)),
    el('span', {}, response.statusText),
    el('span.meta', {}, ...facts),
    response.redirected && el('span.meta', {}, `redirected to ${new URL(response.url).pathname}`),
    caused,
  )
}

const TONES = { 2: 'ok', 3: 'info', 4: 'warn', 5: 'bad' }

/** The tone of a status. @param {string} status */
export const toneOf = (status) => TONES[status[0]]

export function headerList(response) {
  const rows = [...response.headers].flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])
  return el('details.headers', {}, el('summary', {}, 'Headers'), el('dl', {}, ...rows))
}

function isText(type) {
  return type === '' || /^text\/|[/+](json|xml)|javascript|x-www-form-urlencoded/.test(type)
}

function parse(text) {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const KEYWORDS = 'import from const await async for of new return'
/** What is coloured in each language, by the class that it gets. */
const PATTERNS = {
  json: /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*")|\b(?<word>true|false|null)\b|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g,
  js: new RegExp(
    `(?<comment>//[^\\n]*)|(?<string>'(?:[^'\\\\]|\\\\.)*')|\\b(?<word>true|false|null|${KEYWORDS.replaceAll(' ', '|')})\\b|(?<key>[\\w$]+(?=: ))|\\b(?<number>\\d+(?:\\.\\d+)?)\\b`,
    'g',
  ),
  sh: /(?<string>'[^']*')|(?<word>\bcurl\b)|(?<key>(?<=\s)--?[A-Za-z-]+)/g,
}
PATTERNS.ts = PATTERNS.js
/** A text of more characters is shown without colours. */
const COLOURED_MAX_CHARS = 100_000

/** JSON, indented and coloured. */
export function jsonBlock(value) {
  return codeBlock(JSON.stringify(value, null, 2) ?? '')
}

/** A text as it is, coloured. @param {'json' | 'js' | 'ts' | 'sh'} language */
export function codeBlock(text, language = 'json') {
  const pre = el('pre.code', { tabindex: '0' })
  if (text.length > COLOURED_MAX_CHARS) {
    pre.textContent = text
    return pre
  }
  let at = 0
  for (const match of text.matchAll(PATTERNS[language])) {
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined)
    pre.append(text.slice(at, match.index), el(`span.code-${kind}`, {}, match[0]))
    at = match.index + match[0].length
  }
  pre.append(text.slice(at))
  return pre
}
