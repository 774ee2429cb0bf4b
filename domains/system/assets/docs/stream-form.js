import { sendRequest } from '/system/docs/application.js'
import { el } from '/system/docs/dom.js'
import { answerView, headerList } from './answer-view.js'
import { ConnectionLine, counted } from './connection-line.js'
import { streamedEvents } from './event-stream.js'
import { MessageLog } from './message-log.js'
import { RequestInputs } from './request-inputs.js'

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
