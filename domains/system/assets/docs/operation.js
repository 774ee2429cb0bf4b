import { answerTo, jsonBlock, toneOf } from './answer.js'
import { sendRequest } from './application.js'
import { html, nothing, render } from './lit-html.js'
import { SocketForm, StreamForm } from './live.js'
import { prose } from './parts.js'
import { inputsOf, readInputs, requestOf } from './request.js'
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
}

export function badge({ method, kind }) {
  const text = KINDS[kind] ?? method
  return html`<span class="badge" data-method=${text} data-tone=${TONES[text] ?? nothing}>${text}</span>`
}

/** The path with its parameters marked, and with places for line breaks. */
export function pathText(path) {
  const parts = path.split(/(\{[^}]+\}|\/)/).filter(Boolean)
  const shown = parts.map((part) => {
    if (part === '/') return html`<wbr>/`
    return part.startsWith('{') ? html`<span class="path-parameter">${part}</span>` : part
  })
  return html`<code class="path">${shown}</code>`
}

/** What the card of an operation says when it is closed. */
export function operationLine(operation) {
  const { path, summary, lock } = operation
  const about = summary ? html`<span class="summary-text">${summary}</span>` : nothing
  return html`${badge(operation)}${pathText(path)}${about}${lock ? html`<span class="lock" title=${`Asks for a ${lock}`}>${lock}</span>` : nothing}`
}

/** The whole operation, made when its card is opened: there may be hundreds. */
export function operationBody(operation, page) {
  const { schemas } = page
  const { id, parameters, requestBody, responses, description } = operation
  return html`
    <p class="meta">Answered by <code>${operation['x-plugin'] ?? '?'}</code> · ${prose(description)} · <a href=${`#${encodeURIComponent(id)}`}>Link</a></p>
    <div class="card-parts">
      <div class="input">
        ${parameters ? section('Parameters', html`<ul class="fields">${parameters.map((each) => parameterLine(each, schemas))}</ul>`) : nothing}
        ${requestBody ? section('Body', bodyView(requestBody, schemas)) : nothing}
      </div>
      <div class="trial">${section('Try it', tryIt(operation, page))}</div>
      <div class="answers">${section('Answers', responseList(responses, schemas))}</div>
    </div>`
}

export const section = (title, content) => html`<section class="part"><h4>${title}</h4>${content}</section>`

function parameterLine({ name, in: place, required, schema, description }, schemas) {
  const about =
    description && description !== schema?.description
      ? html`<span class="about">${prose(description)}</span>`
      : nothing
  return html`
    <li class="schema-line">
      <code class="field-name">${name}</code><span class="where">${place}</span>${required ? html`<span class="required">required</span>` : nothing}
      ${schemas.describe(schema)}${about}
    </li>`
}

function bodyView({ description, required, content }, schemas) {
  const types = Object.keys(content)
  const { schema } = content[types[0]]
  return html`
    ${description ? html`<p class="about">${prose(description)}</p>` : nothing}
    <p class="meta">${required ? 'Required, as' : 'Optional, as'} ${types.join(', ')} ${schemas.linkOf(schema)}</p>
    ${schema && Object.keys(schema).length > 0 ? schemas.render(schema) : nothing}`
}

/** The route's own answers; those that the runtime may give on any route are folded into one line. */
function responseList(responses, schemas) {
  const all = Object.entries(responses)
  const shared = all.filter(([, { $ref }]) => $ref !== undefined)
  const rows = (entries) => entries.map(([status, given]) => responseRow(status, schemas.resolve(given), schemas))
  const statuses = shared.map(([status]) => statusText(status)).join(' · ')
  return html`
    <ul class="responses">${rows(all.filter((each) => !shared.includes(each)))}</ul>
    ${
      shared.length === 0
        ? nothing
        : html`<details class="response shared-answers">
            <summary class="response-line fold-line"><span class="status">any</span><span>Of the runtime: ${statuses}</span></summary>
            <ul class="responses">${rows(shared)}</ul>
          </details>`
    }`
}

const statusText = (status) => (status === 'default' ? 'other' : status)

function responseRow(status, response, schemas) {
  const [type, media] = Object.entries(response.content ?? {})[0] ?? []
  const line = html`
    <span class="status" data-tone=${toneOf(status)}>${statusText(status)}</span><span>${prose(response.description)}</span>`
  const examples = Object.values(media?.examples ?? {}).map(({ value }) => value)
  if (media?.example !== undefined) examples.unshift(media.example)
  if (!media?.schema && examples.length === 0)
    return html`<li class="response"><div class="response-line">${line}</div></li>`
  return html`
    <li class="response"><details ?open=${/^2/.test(status)}>
      <summary class="response-line fold-line">${line}</summary>
      <div class="response-body">
        <p class="meta">${type} ${schemas.linkOf(media.schema)}</p>
        ${media.schema ? schemas.render(media.schema) : nothing}
        ${examples.length === 0 ? nothing : html`<p class="meta">${examples.length > 1 ? 'Examples' : 'Example'}</p>${examples.map(jsonBlock)}`}
      </div>
    </details></li>`
}

/** A form that sends the operation's request and shows the answer. */
class RequestForm {
  #operation
  #page
  #draw
  #running = null
  #outcome = nothing

  constructor(operation, page, draw) {
    this.#operation = operation
    this.#page = page
    this.#draw = draw
  }

  content() {
    return html`
      <div class="actions">
        <button class="primary" type="submit">Send</button>
        <button class="quiet" type="button" ?hidden=${this.#running === null} @click=${() => this.#running.abort()}>Stop</button>
      </div>
      <div class="outcome" aria-live="polite">${this.#outcome}</div>`
  }

  async submit(form) {
    this.#running?.abort()
    const abort = new AbortController()
    this.#running = abort
    this.#show(html`<p class="meta">Waiting for the answer …</p>`)
    try {
      const { url, init } = requestOf(this.#operation, {
        ...readInputs(form),
        token: this.#page.tokenFor(this.#operation),
      })
      this.#show(await answerTo(sendRequest(url, { ...init, signal: abort.signal }), this.#page))
    } catch (error) {
      if (!abort.signal.aborted) this.#show(html`<p class="fault" role="alert">${error.message}</p>`)
      else if (this.#running === abort) this.#show(html`<p class="meta">Stopped</p>`)
    } finally {
      if (this.#running === abort) this.#running = null
      this.#draw()
    }
  }

  #show(outcome) {
    this.#outcome = outcome
    this.#draw()
  }
}

const FORMS = { http: RequestForm, stream: StreamForm, socket: SocketForm }

/** What tries an operation for what it is: a request, a stream of events or a WebSocket; under it, how to do the same from elsewhere. */
function tryIt(operation, page) {
  const element = document.createElement('div')
  const form = new FORMS[operation.kind](operation, page, draw)
  const submit = (event) => {
    event.preventDefault()
    void form.submit(event.target)
  }
  const inputs = inputsOf(operation)
  function draw() {
    const input = readInputs(element.querySelector('form'))
    render(
      html`
        <form class="try-it" novalidate @submit=${submit} @input=${draw} @change=${draw}>${inputs}${form.content()}</form>
        ${samplesView(operation, input, page, draw)}`,
      element,
    )
  }
  draw()
  // What stands in the fields is read when they are there.
  draw()
  return element
}
