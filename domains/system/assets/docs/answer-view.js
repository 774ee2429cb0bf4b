import { copyButton, el } from './dom.js'
import { codeBlock } from './json-view.js'

/** Most frames of a stream that are kept on the page. */
const FRAMES_MAX = 100
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
    statusLine(response, `${durationMs.toFixed(0)} ms · ${bytes.byteLength.toLocaleString('en')} bytes`),
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
      copyButton(() => shown),
      cut && el('span.meta', {}, 'Only the beginning is shown'),
    ),
  )
}

/** Renders a stream of server-sent events, frame by frame, until it ends. */
export async function streamView(outcome, response, headMs) {
  const frames = el('ol.frames', { tabindex: '0', 'aria-label': 'Frames, newest first' })
  const count = el('span', {}, '0 frames')
  outcome.replaceChildren(
    el('div.answer', {}, statusLine(response, `${headMs.toFixed(0)} ms · `, count), headerList(response), frames),
  )
  let total = 0
  let rest = ''
  try {
    for await (const chunk of textChunks(response.body)) {
      const parts = (rest + chunk).split('\n\n')
      rest = parts.pop()
      for (const part of parts) {
        const data = part.split('\n').filter((line) => line.startsWith('data:'))
        if (data.length === 0) continue
        total++
        frames.prepend(el('li', {}, codeBlock(data.map((line) => line.slice(5).trim()).join('\n'))))
        if (frames.childElementCount > FRAMES_MAX) frames.lastElementChild.remove()
      }
      count.textContent = `${total} frame${total === 1 ? '' : 's'}`
    }
    count.textContent += ', ended by the server'
  } catch {
    // The stream was stopped or the connection broke: the frames so far stay on the page.
    count.textContent += ', closed'
  }
}

/** Reads a stream as text. Not every browser can iterate over a stream. */
async function* textChunks(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

function statusLine(response, ...facts) {
  return el(
    'p.answer-line',
    {},
    el('span.status', { 'data-kind': String(response.status)[0] }, String(response.status)),
    el('span', {}, response.statusText),
    el('span.meta', {}, ...facts),
    response.redirected && el('span.meta', {}, `redirected to ${new URL(response.url).pathname}`),
  )
}

function headerList(response) {
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
