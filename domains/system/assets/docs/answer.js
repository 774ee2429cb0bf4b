import { count } from './format.js'
import { html, nothing, render } from './lit-html.js'
import { copyButton } from './parts.js'

/** Most characters of a body that are shown. */
const SHOWN_MAX_CHARS = 200_000

/** A response: status, time, size, headers and body. */
export function answerView(response, bytes, durationMs, page) {
  const type = response.headers.get('content-type') ?? ''
  const text = isText(type) ? new TextDecoder().decode(bytes) : null
  const json = text !== null && /[/+]json/.test(type) ? parse(text) : undefined
  const shown = json === undefined ? text : JSON.stringify(json.value, null, 2)
  const token = json?.value?.data?.token ?? json?.value?.token
  const useToken = html`<button type="button" @click=${() => page.useToken(token)}>Use this token</button>`
  return html`
    <div class="answer">
      ${statusLine(response, page, `${durationMs.toFixed(0)} ms · ${count(bytes.byteLength)} bytes`)}
      ${typeof token === 'string' ? useToken : nothing}${headerList(response)}${bodyView(response, type, bytes, shown)}
    </div>`
}

/** What a request is answered with. @param {Promise<Response>} sent */
export async function answerTo(sent, page) {
  const startedMs = performance.now()
  const response = await sent
  const bytes = new Uint8Array(await response.arrayBuffer())
  return answerView(response, bytes, performance.now() - startedMs, page)
}

function bodyView(response, type, bytes, shown) {
  if (bytes.byteLength === 0) return html`<p class="meta">No body</p>`
  if (shown === null) {
    const url = URL.createObjectURL(new Blob([bytes], { type }))
    const name = new URL(response.url).pathname.split('/').at(-1) || 'body'
    return html`<p class="meta">${type || 'Bytes'}: <a href=${url} download=${name}>save</a></p>`
  }
  const isCut = shown.length > SHOWN_MAX_CHARS
  return html`
    ${codeBlock(isCut ? shown.slice(0, SHOWN_MAX_CHARS) : shown)}
    <div class="actions">
      ${copyButton(() => shown, 'the answer')}${isCut ? html`<span class="meta">Only the beginning is shown</span>` : nothing}
    </div>`
}

function statusLine(response, page, facts) {
  const { status, statusText, redirected, url } = response
  const where = html`<span class="meta">redirected to ${new URL(url).pathname}</span>`
  return html`<p class="answer-line"><span class="status" data-tone=${toneOf(String(status))}>${status}</span><span>${statusText}</span><span class="meta">${facts}</span>${redirected ? where : nothing}${page.caused.ofResponse(response)}</p>`
}

const TONES = { 2: 'ok', 3: 'info', 4: 'warn', 5: 'bad' }

/** The tone of a status. @param {string} status */
export const toneOf = (status) => TONES[status[0]] ?? nothing

export const headerList = ({ headers }) => html`
  <details class="headers"><summary>Headers</summary><dl>${[...headers].map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></details>`

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

/** A text as it is, coloured. @param {'json' | 'js' | 'ts' | 'sh'} language @returns an element: it stays as it is */
export function codeBlock(text, language = 'json') {
  const pre = document.createElement('pre')
  pre.className = 'code'
  pre.tabIndex = 0
  render(text.length > COLOURED_MAX_CHARS ? text : coloured(text, language), pre)
  return pre
}

function coloured(text, language) {
  const parts = []
  let at = 0
  for (const match of text.matchAll(PATTERNS[language])) {
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined)
    parts.push(text.slice(at, match.index), html`<span class=${`code-${kind}`}>${match[0]}</span>`)
    at = match.index + match[0].length
  }
  return [...parts, text.slice(at)]
}
