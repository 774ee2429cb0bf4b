import { el } from '/system/docs/dom.js'
import { answerView } from './answer-view.js'
import { placeholderOf } from './filled-request.js'

const PATH = '/system/events/publish'

/** True for a process in which events can be published by hand: in production the route says that it is closed. */
export function canPublish({ paths }) {
  return paths[PATH] !== undefined && !('404' in paths[PATH].post.responses)
}

/** A form that publishes an event with a payload that can be edited, and shows what came of it. */
export function publishForm({ id, name, message }, schemas, page) {
  const fieldId = `${id}-payload`
  const example = message.examples?.[0]?.payload ?? placeholderOf(message.payload, schemas, 'text')
  const payload = el('textarea.body-text', { id: fieldId, spellcheck: 'false' })
  payload.value = JSON.stringify(example, null, 2)
  payload.rows = Math.min(16, Math.max(3, payload.value.split('\n').length))
  const outcome = el('div.outcome', { 'aria-live': 'polite' })
  const form = el(
    'form.try-it',
    { novalidate: true },
    el('div.field.tall', {}, el('label', { for: fieldId }, 'Payload'), payload),
    el('div.actions', {}, el('button.primary', { type: 'submit' }, 'Publish')),
    outcome,
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    outcome.replaceChildren(el('p.meta', {}, 'Publishing …'))
    try {
      const body = JSON.stringify({ event: name, payload: parsed(payload.value) })
      const startedMs = performance.now()
      const response = await fetch(PATH, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      const bytes = new Uint8Array(await response.arrayBuffer())
      outcome.replaceChildren(answerView(response, bytes, performance.now() - startedMs, page))
    } catch (error) {
      outcome.replaceChildren(el('p.fault', { role: 'alert' }, error.message))
    }
  })
  return form
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The payload is no JSON: ${error.message}`)
  }
}
