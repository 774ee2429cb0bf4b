import { openSocket } from '/system/docs/application.js'
import { el } from '/system/docs/dom.js'
import { ConnectionLine, counted } from './connection-line.js'
import { MessageLog } from './message-log.js'
import { RequestInputs } from './request-inputs.js'

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
