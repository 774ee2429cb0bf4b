import { answerView, codeBlock, headerList } from './answer.js'
import { openSocket, sendRequest } from './application.js'
import { el } from './dom.js'
import { RequestInputs } from './request.js'

/** A form that listens to a stream of server-sent events and shows each of them as it comes, until either side closes it. */
export function streamForm(operation, page) {
  const inputs = new RequestInputs(operation)
  const line = new ConnectionLine()
  const listen = el('button.primary', { type: 'submit' }, 'Listen')
  const close = el('button', { type: 'button', hidden: true }, 'Close')
  const outcome = el('div.outcome')
  const form = el(
    'form.try-it',
    { novalidate: true },
    ...inputs.elements,
    el('div.actions', {}, listen, close, line.element),
    outcome,
  )
  let running = null
  close.addEventListener('click', () => running?.abort())
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    running?.abort()
    const abort = new AbortController()
    running = abort
    const isCurrent = () => running === abort
    close.hidden = false
    listen.textContent = 'Listen anew'
    line.set('connecting', 'Connecting')
    line.tell()
    outcome.replaceChildren()
    try {
      if (operation.needsToken && page.token() === '') page.hintToken()
      const { url, init } = inputs.request(page.token())
      const headers = { accept: 'text/event-stream', ...init.headers }
      const startedMs = performance.now()
      const response = await sendRequest(url, { ...init, headers, signal: abort.signal })
      const ms = performance.now() - startedMs
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
        const bytes = new Uint8Array(await response.arrayBuffer())
        line.set('failed', 'Refused')
        outcome.replaceChildren(answerView(response, bytes, ms, page))
        return
      }
      line.set('open', 'Open')
      await follow(response, outcome, line, page)
      if (isCurrent()) line.set('closed', 'Ended by the server')
    } catch (error) {
      if (!isCurrent()) return
      if (abort.signal.aborted) line.set('closed', 'Closed')
      else line.set('failed', error.message)
    } finally {
      if (isCurrent()) {
        close.hidden = true
        listen.textContent = 'Listen'
      }
    }
  })
  return { form, inputs }
}

async function follow(response, outcome, line, page) {
  const log = new MessageLog()
  const caused = page.caused.ofResponse(response)
  outcome.replaceChildren(...[headerList(response), caused, log.element].filter((part) => part !== null))
  line.tell(counted(0, 'event'))
  for await (const { name, id, data } of streamedEvents(response.body)) {
    log.add('in', data, [name, id !== '' && `id ${id}`].filter(Boolean).join(' · '))
    line.tell(counted(log.counts.in, 'event'))
  }
}

/** Bytes of a binary message that are shown. */
const BYTES_SHOWN_MAX = 64
const GOING_ON = new Set([WebSocket.CONNECTING, WebSocket.OPEN])

/** A form that opens a WebSocket, sends messages over it and shows those that come, until either side closes it. */
export function socketForm(operation, page) {
  const inputs = new RequestInputs(operation)
  const line = new ConnectionLine()
  const connect = el('button.primary', { type: 'submit' }, 'Connect')
  const close = el('button', { type: 'button', hidden: true }, 'Close')
  const messageId = `${operation.id}-message`
  const message = el('textarea.body-text', {
    id: messageId,
    rows: '2',
    spellcheck: 'false',
    title: 'Ctrl and Enter send it',
  })
  const send = el('button', { type: 'button', disabled: true }, 'Send')
  const outcome = el('div.outcome')
  const form = el(
    'form.try-it',
    { novalidate: true },
    ...inputs.elements,
    el('div.actions', {}, connect, close, line.element),
    el('div.field.tall.message-input', {}, el('label', { for: messageId }, 'Message'), message, send),
    outcome,
  )
  let socket = null
  let log = null
  const tell = () => line.tell(`${counted(log.counts.in, 'message')} in, ${log.counts.out.toLocaleString('en')} out`)
  const sendMessage = () => {
    if (socket?.readyState !== WebSocket.OPEN) return
    socket.send(message.value)
    log.add('out', message.value)
    tell()
    message.select()
  }
  send.addEventListener('click', sendMessage)
  message.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    sendMessage()
  })
  close.addEventListener('click', () => socket.close(1000))

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (GOING_ON.has(socket?.readyState)) socket.close(1000)
    const token = operation.needsToken ? page.token() : ''
    if (operation.needsToken && token === '') page.hintToken()
    try {
      socket = opened(inputs.request(''), token)
    } catch (error) {
      line.set('failed', error.message)
      return
    }
    const own = socket
    let wasOpen = false
    log = new MessageLog()
    const caused = page.caused.ofRoute(operation['x-route'])
    outcome.replaceChildren(...[log.element, caused].filter((part) => part !== null))
    line.set('connecting', 'Connecting')
    line.tell()
    close.hidden = false
    own.addEventListener('open', () => {
      wasOpen = true
      line.set('open', 'Open')
      tell()
      send.disabled = false
      connect.textContent = 'Connect anew'
      message.focus()
    })
    own.addEventListener('message', ({ data }) => {
      if (own !== socket) return
      log.add('in', textOf(data), typeof data === 'string' ? '' : counted(data.byteLength, 'byte'))
      tell()
    })
    own.addEventListener('close', ({ code, reason }) => {
      if (own !== socket) return
      // A browser does not tell a page what a handshake was answered with.
      if (wasOpen)
        line.set(code === 1006 ? 'failed' : 'closed', `Closed with ${code}${reason === '' ? '' : `: ${reason}`}`)
      else line.set('failed', 'The handshake was refused: the requests of the dashboard show its status')
      send.disabled = true
      close.hidden = true
      connect.textContent = 'Connect'
    })
  })
  return { form, inputs }
}

function opened({ url }, token) {
  const socket = openSocket(url, token === '' ? [] : ['bearer', token])
  socket.binaryType = 'arraybuffer'
  return socket
}

/** Text as it is; of bytes the first, in hexadecimal. */
function textOf(data) {
  if (typeof data === 'string') return data
  const bytes = new Uint8Array(data)
  const shown = Array.from(bytes.subarray(0, BYTES_SHOWN_MAX), (byte) => byte.toString(16).padStart(2, '0')).join(' ')
  return bytes.length > BYTES_SHOWN_MAX ? `${shown} …` : shown
}

/** Says in one line what state a connection is in, and what has gone over it. */
class ConnectionLine {
  #text = el('span')
  #facts = el('span.meta')
  element = el('p.connection', { role: 'status' }, el('span.dot'), this.#text, this.#facts)

  constructor() {
    this.set('idle', 'Not connected')
  }

  /** @param {'idle' | 'connecting' | 'open' | 'closed' | 'failed'} state */
  set(state, text) {
    this.element.dataset.state = state
    this.element.dataset.tone = { connecting: 'warn', open: 'ok', failed: 'bad' }[state] ?? ''
    this.#text.textContent = text
  }

  tell(...facts) {
    this.#facts.textContent = facts.join(' · ')
  }
}

function counted(count, noun) {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** Most messages that are kept on the page. */
const SHOWN_MAX = 200
/** Most characters of a message that are shown. */
const TEXT_MAX_CHARS = 10_000
const ARROWS = { in: '↓', out: '↑' }
const NAMES = { in: 'received', out: 'sent' }
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** The messages of a connection, newest first. However many come at once, they are drawn once a frame. */
class MessageLog {
  element = el('ol.messages', { tabindex: '0', 'aria-label': 'Received and sent, newest first' })
  counts = { in: 0, out: 0 }
  #waiting = []

  /** @param {'in' | 'out'} direction */
  add(direction, text, label = '') {
    this.counts[direction]++
    if (this.#waiting.length === 0) requestAnimationFrame(() => this.#draw())
    this.#waiting.push({ direction, text, label, at: new Date() })
    if (this.#waiting.length > SHOWN_MAX) this.#waiting.shift()
  }

  #draw() {
    this.element.prepend(...this.#waiting.reverse().map(row))
    this.#waiting = []
    while (this.element.childElementCount > SHOWN_MAX) this.element.lastElementChild.remove()
  }
}

function row({ direction, text, label, at }) {
  const shown = text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)} …` : text
  return el(
    'li.message',
    { 'data-direction': direction },
    el('span.message-arrow', { role: 'img', 'aria-label': NAMES[direction] }, ARROWS[direction]),
    el('time', { datetime: at.toISOString() }, `${CLOCK.format(at)}.${String(at.getMilliseconds()).padStart(3, '0')}`),
    label !== '' && el('span.message-label', {}, label),
    codeBlock(shown),
  )
}

/**
 * The events of a stream, as they come: name, data and id. Comments, which keep the connection open, are left out.
 * Source: WHATWG HTML, section 9.2.6.
 */
async function* streamedEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let id = ''
  let name = ''
  let data = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    // A carriage return at the end may be the first half of a line's end.
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()
    for (const line of lines) {
      const [, field, text = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)
      if (field === 'data') data.push(text)
      else if (field === 'event') name = text
      else if (field === 'id') id = text
      if (line !== '') continue
      if (data.length > 0) yield { name, id, data: data.join('\n') }
      name = ''
      data = []
    }
  }
}
