import { answerView, jsonBlock, toneOf } from './answer.js'
import { sendRequest } from './application.js'
import { el, prose } from './dom.js'
import { socketForm, streamForm } from './live.js'
import { RequestInputs } from './request.js'
import { samplesView } from './samples.js'

const KINDS = { stream: 'SSE', socket: 'WS' }

const TONES = {
  GET: 'info',
  POST: 'ok',
  PUT: 'warn',
  PATCH: 'warn',
  DELETE: 'bad',
  SSE: 'accent',
  WS: 'accent',
  EVENT: 'violet',
}

export function badge({ method, kind }) {
  const text = KINDS[kind] ?? method
  return el('span.badge', { 'data-method': text, 'data-tone': TONES[text] }, text)
}

/** The path with its parameters marked, and with places for line breaks. */
export function pathText(path) {
  const parts = path.split(/(\{[^}]+\}|\/)/).filter(Boolean)
  return el(
    'code.path',
    {},
    ...parts.flatMap((part) => {
      if (part === '/') return [el('wbr'), '/']
      return part.startsWith('{') ? [el('span.path-parameter', {}, part)] : [part]
    }),
  )
}

/** A card of one line, which shows the whole operation when it is opened. */
export function operationCard(operation, page) {
  const { id, summary } = operation
  const body = el('div.card-body')
  const card = el(
    'details.card',
    { id },
    el(
      'summary.card-line',
      {},
      badge(operation),
      pathText(operation.path),
      summary && el('span.summary-text', {}, summary),
      operation.lock && el('span.lock', { title: `Asks for a ${operation.lock}` }, operation.lock),
    ),
    body,
  )
  card.addEventListener('toggle', () => {
    // Rendered when it is opened: there may be hundreds.
    if (card.open && body.childElementCount === 0) body.append(...details(operation, page))
  })
  return card
}

function details(operation, page) {
  const { schemas } = page
  return [
    el(
      'p.meta',
      {},
      'Answered by ',
      el('code', {}, operation['x-plugin'] ?? '?'),
      ' · ',
      ...prose(operation.description),
      ' · ',
      el('a', { href: `#${encodeURIComponent(operation.id)}` }, 'Link'),
    ),
    el(
      'div.card-parts',
      {},
      el(
        'div.input',
        {},
        operation.parameters && section('Parameters', parameterList(operation.parameters, schemas)),
        operation.requestBody && section('Body', bodyView(operation.requestBody, schemas)),
      ),
      el('div.trial', {}, section('Try it', ...tryIt(operation, page))),
      el('div.answers', {}, section('Answers', responseList(operation.responses, schemas))),
    ),
  ]
}

function section(title, ...content) {
  return el('section.part', {}, el('h4', {}, title), ...content)
}

function parameterList(parameters, schemas) {
  return el(
    'ul.fields',
    {},
    ...parameters.map((parameter) =>
      el(
        'li.schema-line',
        {},
        el('code.field-name', {}, parameter.name),
        el('span.where', {}, parameter.in),
        parameter.required && el('span.required', {}, 'required'),
        schemas.describe(parameter.schema),
        parameter.description !== parameter.schema?.description &&
          parameter.description &&
          el('span.about', {}, ...prose(parameter.description)),
      ),
    ),
  )
}

function bodyView({ description, required, content }, schemas) {
  const types = Object.keys(content)
  const media = content[types[0]]
  return el(
    'div',
    {},
    description && el('p.about', {}, ...prose(description)),
    el('p.meta', {}, required ? 'Required, as ' : 'Optional, as ', types.join(', '), ' ', schemas.linkOf(media.schema)),
    media.schema && Object.keys(media.schema).length > 0 && schemas.render(media.schema),
  )
}

function responseList(responses, schemas) {
  const rows = Object.entries(responses).map(([status, given]) => {
    const response = schemas.resolve(given)
    const [type, media] = Object.entries(response.content ?? {})[0] ?? []
    const line = [
      el('span.status', { 'data-tone': toneOf(status) }, status === 'default' ? 'other' : status),
      el('span', {}, ...prose(response.description)),
    ]
    const examples = Object.values(media?.examples ?? {}).map(({ value }) => value)
    if (media?.example !== undefined) examples.unshift(media.example)
    if (!media?.schema && examples.length === 0) return el('li.response', {}, el('div.response-line', {}, ...line))
    return el(
      'li.response',
      {},
      el(
        'details',
        { open: status === '200' },
        el('summary.response-line.fold-line', {}, ...line),
        el(
          'div.response-body',
          {},
          el('p.meta', {}, type, ' ', schemas.linkOf(media.schema)),
          media.schema && schemas.render(media.schema),
          examples.length > 0 && el('p.meta', {}, examples.length > 1 ? 'Examples' : 'Example'),
          ...examples.map(jsonBlock),
        ),
      ),
    )
  })
  return el('ul.responses', {}, ...rows)
}

const FORMS = { http: requestForm, stream: streamForm, socket: socketForm }

/** What tries an operation for what it is: a request, a stream of events or a WebSocket; under it, how to do the same from elsewhere. */
function tryIt(operation, page) {
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
