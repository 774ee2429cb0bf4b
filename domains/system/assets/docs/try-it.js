import { sendRequest } from '/system/docs/application.js'
import { el } from '/system/docs/dom.js'
import { answerView } from './answer-view.js'
import { RequestInputs } from './request-inputs.js'
import { samplesView } from './samples-view.js'
import { socketForm } from './socket-form.js'
import { streamForm } from './stream-form.js'

const FORMS = { http: requestForm, stream: streamForm, socket: socketForm }

/** What tries an operation for what it is: a request, a stream of events or a WebSocket; under it, how to do the same from elsewhere. */
export function tryIt(operation, page) {
  const { form, inputs } = FORMS[operation.kind](operation, page)
  const samples = samplesView(operation, inputs, page)
  form.addEventListener('input', samples.update)
  form.addEventListener('change', samples.update)
  return [form, samples.element]
}

/** A form that sends the operation's request and shows the answer. */
function requestForm(operation, page) {
  const inputs = new RequestInputs(operation)
  const outcome = el('div.outcome', { 'aria-live': 'polite' })
  const send = el('button.primary', { type: 'submit' }, 'Send')
  const stop = el('button.quiet', { type: 'button', hidden: true }, 'Stop')
  let running = null
  stop.addEventListener('click', () => running?.abort())
  const form = el('form.try-it', { novalidate: true }, ...inputs.elements, el('div.actions', {}, send, stop), outcome)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    running?.abort()
    const abort = new AbortController()
    running = abort
    stop.hidden = false
    outcome.replaceChildren(el('p.meta', {}, 'Waiting for the answer …'))
    try {
      if (operation.needsToken && page.token() === '') page.hintToken()
      const { url, init } = inputs.request(page.token())
      const startedMs = performance.now()
      const response = await sendRequest(url, { ...init, signal: abort.signal })
      const bytes = new Uint8Array(await response.arrayBuffer())
      outcome.replaceChildren(answerView(response, bytes, performance.now() - startedMs, page))
    } catch (error) {
      if (!abort.signal.aborted) outcome.replaceChildren(el('p.fault', { role: 'alert' }, error.message))
      else if (running === abort) outcome.replaceChildren(el('p.meta', {}, 'Stopped'))
    } finally {
      if (running === abort) stop.hidden = true
    }
  })
  return { form, inputs }
}
