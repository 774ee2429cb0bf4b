import { answerView, codeBlock, headerList } from './answer.js'
import { openSocket, sendRequest } from './application.js'
import { clock, count, plural } from './format.js'
import { html, nothing, render } from './lit-html.js'
import { readInputs, requestOf } from './request.js'

const TONES = { connecting: 'warn', open: 'ok', failed: 'bad' }

/** What the forms of streams and WebSockets have in common: a line that says in what state the connection is and what has gone over it, and what came. */
class ConnectionForm {
  /** `idle`, `connecting`, `open`, `closed` or `failed` */
  #state = 'idle'
  #text = 'Not connected'
  #frame = 0
  facts = ''
  /** @type {unknown} */
  outcome = nothing
  log = new MessageLog()

  constructor(operation, page, draw) {
    this.operation = operation
    this.page = page
    this.draw = draw
  }

  set(state, text) {
    this.#state = state
    this.#text = text
    this.draw()
  }

  /** Draws with the next frame: many messages may come at once. */
  drawSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0
      this.draw()
    })
  }

  /** A new connection begins. */
  begin() {
    this.log = new MessageLog()
    this.outcome = nothing
    this.facts = ''
    this.set('connecting', 'Connecting')
  }

  /** @param {string} verb what the button says that connects */
  actions(verb, close) {
    const isGoingOn = this.#state === 'connecting' || this.#state === 'open'
    return html`
      <div class="actions">
        <button class="primary" type="submit">${isGoingOn ? `${verb} anew` : verb}</button>
        <button type="button" ?hidden=${!isGoingOn} @click=${close}>Close</button>
        <p class="connection" role="status" data-state=${this.#state} data-tone=${TONES[this.#state] ?? nothing}><span class="dot"></span><span>${this.#text}</span><span class="meta">${this.facts}</span></p>
      </div>`
  }

  /** @throws Error that says what is missing */
  request(form, token) {
    return requestOf(this.operation, { ...readInputs(form), token })
  }
}

/** A form that listens to a stream of server-sent events and shows each of them as it comes, until either side closes it. */
export class StreamForm extends ConnectionForm {
  #running = null

  content() {
    return html`${this.actions('Listen', () => this.#running.abort())}<div class="outcome">${this.outcome}</div>`
  }

  async submit(form) {
    this.#running?.abort()
    const abort = new AbortController()
    this.#running = abort
    const isCurrent = () => this.#running === abort
    this.begin()
    try {
      const { url, init } = this.request(form, this.page.tokenFor(this.operation))
      const headers = { accept: 'text/event-stream', ...init.headers }
      const startedMs = performance.now()
      const response = await sendRequest(url, { ...init, headers, signal: abort.signal })
      const ms = performance.now() - startedMs
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) await this.#follow(response)
      else {
        this.outcome = answerView(response, new Uint8Array(await response.arrayBuffer()), ms, this.page)
        return this.set('failed', 'Refused')
      }
      if (isCurrent()) this.set('closed', 'Ended by the server')
    } catch (error) {
      if (isCurrent())
        this.set(abort.signal.aborted ? 'closed' : 'failed', abort.signal.aborted ? 'Closed' : error.message)
    }
  }

  async #follow(response) {
    const { log } = this
    this.outcome = [headerList(response), this.page.caused.ofResponse(response), log.element]
    this.facts = plural(0, 'event')
    this.set('open', 'Open')
    for await (const { name, id, data } of streamedEvents(response.body)) {
      log.add('in', data, [name, id !== '' && `id ${id}`].filter(Boolean).join(' · '))
      this.facts = plural(log.counts.in, 'event')
      this.drawSoon()
    }
  }
}

/** Bytes of a binary message that are shown. */
const BYTES_SHOWN_MAX = 64

/** A form that opens a WebSocket, sends messages over it and shows those that come, until either side closes it. */
export class SocketForm extends ConnectionForm {
  #socket = null

  get #isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN
  }

  content() {
    const id = `${this.operation.id}-message`
    const send = ({ currentTarget }) => this.#send(currentTarget.form.querySelector(`[id="${id}"]`))
    const onKey = (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      this.#send(event.target)
    }
    return html`
      ${this.actions('Connect', () => this.#socket.close(1000))}
      <div class="field tall message-input">
        <label for=${id}>Message</label>
        <textarea class="message-text" id=${id} rows="2" spellcheck="false" title="Ctrl and Enter send it" @keydown=${onKey}></textarea>
        <button type="button" ?disabled=${!this.#isOpen} @click=${send}>Send</button>
      </div>
      <div class="outcome">${this.outcome}</div>`
  }

  #send(message) {
    if (!this.#isOpen) return
    this.#socket.send(message.value)
    this.log.add('out', message.value)
    this.#count()
    message.select()
  }

  #count() {
    const { in: received, out: sent } = this.log.counts
    this.facts = `${plural(received, 'message')} in, ${count(sent)} out`
    this.drawSoon()
  }

  submit(form) {
    if (this.#socket !== null && this.#socket.readyState <= WebSocket.OPEN) this.#socket.close(1000)
    const token = this.page.tokenFor(this.operation)
    let socket
    try {
      socket = openSocket(this.request(form, '').url, token === '' ? [] : ['bearer', token])
    } catch (error) {
      return this.set('failed', error.message)
    }
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    this.begin()
    this.outcome = [this.log.element, this.page.caused.ofRoute(this.operation['x-route'])]
    let wasOpen = false
    socket.addEventListener('open', () => {
      wasOpen = true
      this.set('open', 'Open')
      this.#count()
      form.querySelector('.message-text').focus()
    })
    socket.addEventListener('message', ({ data }) => {
      if (socket !== this.#socket) return
      this.log.add('in', textOf(data), typeof data === 'string' ? '' : plural(data.byteLength, 'byte'))
      this.#count()
    })
    socket.addEventListener('close', ({ code, reason }) => {
      if (socket !== this.#socket) return
      // A browser does not tell a page what a handshake was answered with.
      if (!wasOpen) this.set('failed', 'The handshake was refused: the requests of the dashboard show its status')
      else this.set(code === 1006 ? 'failed' : 'closed', `Closed with ${code}${reason === '' ? '' : `: ${reason}`}`)
    })
  }
}

/** Text as it is; of bytes the first, in hexadecimal. */
function textOf(data) {
  if (typeof data === 'string') return data
  const bytes = new Uint8Array(data)
  const shown = Array.from(bytes.subarray(0, BYTES_SHOWN_MAX), (byte) => byte.toString(16).padStart(2, '0')).join(' ')
  return bytes.length > BYTES_SHOWN_MAX ? `${shown} …` : shown
}

/** Most messages that are kept on the page. */
const SHOWN_MAX = 200
/** Most characters of a message that are shown. */
const TEXT_MAX_CHARS = 10_000
const ARROWS = { in: '↓', out: '↑' }
const NAMES = { in: 'received', out: 'sent' }

/** The messages of a connection, newest first. However many come at once, they are drawn once a frame. */
class MessageLog {
  element = document.createElement('ol')
  counts = { in: 0, out: 0 }
  #waiting = []

  constructor() {
    this.element.className = 'messages'
    this.element.tabIndex = 0
    this.element.ariaLabel = 'Received and sent, newest first'
  }

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
  const item = document.createElement('li')
  item.className = 'message'
  item.dataset.direction = direction
  const shown = text.length > TEXT_MAX_CHARS ? `${text.slice(0, TEXT_MAX_CHARS)} …` : text
  const content = html`
    <span class="message-arrow" role="img" aria-label=${NAMES[direction]}>${ARROWS[direction]}</span>
    <time datetime=${at.toISOString()}>${clock(at)}</time>${label === '' ? nothing : html`<span class="message-label">${label}</span>`}${codeBlock(shown)}`
  render(content, item)
  return item
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
