import { answerView, jsonBlock } from './answer.js'
import { el } from './dom.js'
import { placeholderOf } from './request.js'

/** The events of the document, each with its publishers and subscribers. */
export function eventsOf(document, schemas) {
  return Object.entries(document.channels).map(([key, channel]) => {
    const message = schemas.resolve(Object.values(channel.messages)[0])
    const plugins = (action) =>
      Object.values(document.operations)
        .filter((operation) => operation.action === action && operation.channel.$ref === `#/channels/${key}`)
        .map((operation) => operation['x-plugin'])
    return {
      id: `event-${key}`,
      name: channel.address,
      /** The domain that declares it; undefined without a contract. */
      domain: message.tags?.[0]?.name,
      message,
      emitters: plugins('send'),
      subscribers: plugins('receive'),
    }
  })
}

export function eventCard(event, schemas, page) {
  const body = el('div.card-body')
  const card = el(
    'details.card',
    { id: event.id },
    el(
      'summary.card-line',
      {},
      el('span.badge', { 'data-method': 'EVENT', 'data-tone': 'violet' }, 'EVENT'),
      el('code.path', {}, event.name),
    ),
    body,
  )
  card.addEventListener('toggle', () => {
    if (card.open && body.childElementCount === 0) body.append(...details(event, schemas, page))
  })
  return card
}

function details(event, schemas, page) {
  const { message, emitters, subscribers } = event
  const example = message.examples?.[0]?.payload
  const parties = el(
    'dl.parties',
    {},
    el('dt', {}, 'Published by'),
    el('dd', {}, ...names(emitters)),
    el('dt', {}, 'Subscribers'),
    el('dd', {}, ...names(subscribers)),
  )
  const trial = page.canPublish
    ? section('Publish it', publishForm(event, schemas, page))
    : example !== undefined && section('Example', jsonBlock(example))
  return [
    parties,
    el(
      'div.card-parts',
      {},
      el(
        'div.input',
        {},
        section('Payload', el('p.meta', {}, schemas.linkOf(message.payload)), schemas.render(message.payload)),
      ),
      el('div.trial', {}, trial),
    ),
  ]
}

function section(title, ...content) {
  return el('section.part', {}, el('h4', {}, title), ...content)
}

function names(plugins) {
  return plugins.length === 0 ? [el('span.about', {}, 'nobody')] : plugins.map((plugin) => el('code', {}, plugin))
}

const PATH = '/system/events/publish'

/** True for a process in which events can be published by hand: in production the route says that it is closed. */
export function canPublish({ paths }) {
  return paths[PATH] !== undefined && !('404' in paths[PATH].post.responses)
}

/** A form that publishes an event with a payload that can be edited, and shows what came of it. */
function publishForm({ id, name, message }, schemas, page) {
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

const REQUESTS = '/system/dashboard/requests'
/** Of the routes under `/system` the history keeps only what failed, and this one. */
const PUBLISH = '/system/events/publish'

/** Makes the links from what was sent to what it caused, on the dashboard. */
export class CausedLinks {
  #hasDashboard

  constructor({ paths }) {
    this.#hasDashboard = paths[`${REQUESTS}/{id}`] !== undefined
  }

  /** For a response; null where nothing is kept of it. */
  ofResponse({ url, status, headers }) {
    const id = headers.get('x-request-id')
    const { pathname } = new URL(url)
    const isKept = !pathname.startsWith('/system/') || pathname === PUBLISH || status >= 500
    return id !== null && isKept ? this.#link(`${REQUESTS}/${encodeURIComponent(id)}`) : null
  }

  /** For a WebSocket, whose handshake a browser does not show: what was lately asked of its route. */
  ofRoute(route) {
    return this.#link(`${REQUESTS}?q=${encodeURIComponent(`route:${route} since:10m`)}`)
  }

  #link(href) {
    return this.#hasDashboard ? el('a.caused', { href }, 'See what it caused') : null
  }
}
