import { answerTo, jsonBlock } from './answer.js'
import { html, nothing, render } from './lit-html.js'
import { section } from './operation.js'
import { placeholderOf, rowsOf } from './request.js'

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

/** The whole event, made when its card is opened. */
export function eventBody(event, schemas, page) {
  const { message, emitters, subscribers } = event
  const example = message.examples?.[0]?.payload
  const trial = page.canPublish
    ? section('Publish it', publishForm(event, schemas, page))
    : example === undefined
      ? nothing
      : section('Example', jsonBlock(example))
  const payload = html`<p class="meta">${schemas.linkOf(message.payload)}</p>${schemas.render(message.payload)}`
  return html`
    <dl class="parties"><dt>Published by</dt><dd>${names(emitters)}</dd><dt>Subscribers</dt><dd>${names(subscribers)}</dd></dl>
    <div class="card-parts"><div class="input">${section('Payload', payload)}</div><div class="trial">${trial}</div></div>`
}

const names = (plugins) =>
  plugins.length === 0 ? html`<span class="about">nobody</span>` : plugins.map((plugin) => html`<code>${plugin}</code>`)

const PATH = '/system/events/publish'

/** True for a process in which events can be published by hand: in production the route says that it is closed. */
export function canPublish({ paths }) {
  return paths[PATH] !== undefined && !('404' in paths[PATH].post.responses)
}

/** A form that publishes an event with a payload that can be edited, and shows what came of it. */
function publishForm({ id, name, message }, schemas, page) {
  const example = message.examples?.[0]?.payload ?? placeholderOf(message.payload, schemas, 'text')
  const text = JSON.stringify(example, null, 2)
  const publish = async (event) => {
    event.preventDefault()
    const { payload } = event.target.elements
    const show = (outcome) => render(outcome, event.target.querySelector('.outcome'))
    show(html`<p class="meta">Publishing …</p>`)
    try {
      const body = JSON.stringify({ event: name, payload: parsed(payload.value) })
      const headers = { 'content-type': 'application/json' }
      show(await answerTo(fetch(PATH, { method: 'POST', headers, body }), page))
    } catch (error) {
      show(html`<p class="fault" role="alert">${error.message}</p>`)
    }
  }
  return html`
    <form class="try-it" novalidate @submit=${publish}>
      <div class="field tall">
        <label for=${`${id}-payload`}>Payload</label>
        <textarea class="body-text" id=${`${id}-payload`} name="payload" rows=${rowsOf(text)} spellcheck="false" .value=${text}></textarea>
      </div>
      <div class="actions"><button class="primary" type="submit">Publish</button></div>
      <div class="outcome" aria-live="polite"></div>
    </form>`
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The payload is no JSON: ${error.message}`)
  }
}

const REQUESTS = '/system/dashboard/requests'
/** Makes the links from what was sent to what it caused, on the dashboard. */
export class CausedLinks {
  #hasDashboard

  constructor({ paths }) {
    this.#hasDashboard = paths[`${REQUESTS}/{id}`] !== undefined
  }

  /** For a response; `nothing` where nothing is kept of it. */
  ofResponse({ url, status, headers }) {
    const id = headers.get('x-request-id')
    const { pathname } = new URL(url)
    // Of the routes under `/system` the history keeps only what failed, and one.
    const isKept = !pathname.startsWith('/system/') || pathname === PATH || status >= 500
    return id !== null && isKept ? this.#link(`${REQUESTS}/${encodeURIComponent(id)}`) : nothing
  }

  /** For a WebSocket, whose handshake a browser does not show: what was lately asked of its route. */
  ofRoute(route) {
    return this.#link(`${REQUESTS}?q=${encodeURIComponent(`route:${route} since:10m`)}`)
  }

  #link(href) {
    return this.#hasDashboard ? html`<a class="caused" href=${href}>See what it caused</a>` : nothing
  }
}
