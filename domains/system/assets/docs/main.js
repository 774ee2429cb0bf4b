import { learnApplication } from './application.js'
import { fieldPaths, modelsOf, operationFields, operationsOf } from './catalogue.js'
import { CausedLinks } from './caused.js'
import { html, nothing, render } from './lit-html.js'
import { badge, operationBody, operationLine, pathText } from './operation.js'
import { isPlain, isTyping, prose } from './parts.js'
import { logIn } from './process.js'
import { isOfRuntime, modelBody, modelId, modelLine, SchemaView } from './schema.js'

/** The domain of the runtime's own operations: they are folded away behind those of the service. */
const RUNTIME = 'system'
const RUNTIME_GROUP = 'The runtime itself'
/** By what else an operation is found. */
const KIND_WORDS = { http: '', stream: 'sse stream', socket: 'ws websocket' }
const DOCS = '/system/docs'
/** What each address shows. */
const VIEWS = { [DOCS]: 'operations', [`${DOCS}/models`]: 'models' }
/** Fields that a line names; of the rest it tells how many. */
const FIELDS_SHOWN_MAX = 6

/** @returns {any} the one that is in `index.html` */
const $ = (id) => document.getElementById(id)

/**
 * What can be found: a card, and its line in the index.
 * @typedef {{ id: string, mark?: unknown, name: string, title?: string, line: unknown, words: string[], fields: string[], body: () => unknown,
 *   isOpen?: boolean, text?: string, element?: HTMLElement }} Entry `words` by which it is found, and `fields` with their places: `body email`; `element`:
 *   its body, since it was opened
 * @typedef {{ name: string, entries: Entry[], isFolded?: boolean, isOpen?: boolean }} Group one that is folded away shows its name and how
 *   much it has, until it is opened or something in it is searched for
 */
/** @type {Record<string, Group[]>} */
const views = { operations: [], models: [] }
/** What stands above them. */
let about
/** The drawing that is asked for; 0: none. */
let frame = 0

start().catch((error) => {
  render(`The API cannot be shown: ${error.message}`, $('notice'))
  $('notice').classList.add('fault')
})

async function start() {
  const openApi = await read('openapi.json')
  // The application has an address of its own.
  if (openApi.servers[0].url !== '/') learnApplication(await read('status'))
  const token = new Token($('token-form'), $('token'), $('token-clear'))
  document.title = `${openApi.info.title} · API`
  $('dashboard').hidden = openApi.paths['/system/dashboard'] === undefined

  const page = {
    caused: new CausedLinks(openApi),
    schemas: new SchemaView(openApi),
    token: () => token.value,
    tokenFor: ({ needsToken }) => (needsToken ? token.wanted() : ''),
    useToken: (value) => token.use(value),
  }
  const operations = operationsOf(openApi)
  const models = modelsOf(operations, page.schemas)
  page.schemas.models = models
  about = aboutApi(openApi)
  views.operations = operationGroups(openApi.tags, operations, page)
  views.models = modelGroups(models.list)
  $('content').replaceChildren()
  listen()
  navigate()
}

async function read(document) {
  const path = `/system/${document}`
  const response = await fetch(path)
  if (response.status === 401) logIn()
  if (!response.ok) throw new Error(`${path} answers ${response.status}`)
  return response.json()
}

function aboutApi({ info, paths }) {
  const client = paths['/system/client.ts'] ? html`<a href="/system/client.ts">Typed client</a>` : nothing
  return html`
    <div class="about-api">
      <div class="about-line">
        <h1>${info.title}</h1><span class="version">${info.version}</span>
        <span class="documents">
          <a href="/system/openapi.json">OpenAPI</a>${client}
        </span>
      </div>
      <p class="intro">${prose(info.description ?? '')}</p>
    </div>`
}

/** The tags of the service in their order, and what belongs to the runtime. @returns {Group[]} */
function operationGroups(tags, operations, page) {
  const ofTag = (name) => operations.filter((each) => each.tags[0] === name).map((each) => operationEntry(each, page))
  return [
    ...tags.filter(({ name }) => name !== RUNTIME).map(({ name }) => ({ name, entries: ofTag(name) })),
    { name: RUNTIME_GROUP, entries: ofTag(RUNTIME), isFolded: true },
  ].filter(({ entries }) => entries.length > 0)
}

/** @returns {Group[]} */
function modelGroups(models) {
  const entries = (isOwn) => models.filter((model) => isOfRuntime(model) === isOwn).map(modelEntry)
  return [
    { name: 'Models', entries: entries(false) },
    { name: RUNTIME_GROUP, entries: entries(true), isFolded: true },
  ].filter((group) => group.entries.length > 0)
}

function operationEntry(operation, page) {
  const { id, method, path, summary = '', tags, kind } = operation
  return {
    id,
    mark: badge(operation),
    name: path,
    title: summary,
    line: operationLine(operation),
    words: [id, method, path, summary, ...tags, operation['x-plugin'], KIND_WORDS[kind]],
    fields: operationFields(operation, page.schemas),
    body: () => operationBody(operation, page),
  }
}

function modelEntry(model) {
  const { name, schema, schemas } = model
  return {
    id: modelId(model),
    name,
    line: modelLine(model),
    words: ['model', name],
    fields: [...new Set(fieldPaths(schema, schemas))],
    body: () => modelBody(model),
  }
}

// ── what is shown ────────────────────────────────────────────────────────────

const currentView = () => VIEWS[location.pathname] ?? 'operations'
const chosenId = () => decodeURIComponent(location.hash.slice(1))
const searched = () => $('search').value.toLowerCase().split(/\s+/).filter(Boolean)

function isFound(entry, wanted) {
  entry.text ??= [...entry.words, ...entry.fields].join(' ').toLowerCase()
  return wanted.every((word) => entry.text.includes(word))
}

/** Shows what has all the words. */
function filter() {
  const wanted = searched()
  for (const group of Object.values(views).flat())
    if (group.isFolded) group.isOpen = wanted.length > 0 && group.entries.some((entry) => isFound(entry, wanted))
  draw()
}

function draw() {
  frame = 0
  const wanted = searched()
  const found = new Set(
    Object.values(views).flatMap((groups) =>
      groups.flatMap(({ entries }) => entries.filter((each) => isFound(each, wanted))),
    ),
  )
  for (const [view, groups] of Object.entries(views)) {
    const all = groups.flatMap(({ entries }) => entries)
    const shown = all.filter((entry) => found.has(entry)).length
    $(`${view}-count`).textContent = shown === all.length ? String(shown) : `${shown} of ${all.length}`
  }
  const isEmpty = !views[currentView()].some(({ entries }) => entries.some((entry) => found.has(entry)))
  const parts = (draws) =>
    Object.entries(views).map(
      ([view, groups]) =>
        html`<div data-view=${view} ?hidden=${view !== currentView()}>${groups.map((group, n) => draws(group, `${view}-${n}`))}</div>`,
    )
  const content = parts((group, id) => groupView(group, `group-${id}`, found, wanted))
  render(html`${about}${content}<p class="notice" ?hidden=${!isEmpty}>Nothing matches.</p>`, $('content'))
  render(
    parts((group) => indexOf(group, found)),
    $('index'),
  )
}

function groupView(group, id, found, wanted) {
  const { name, entries, isFolded = false, isOpen = false } = group
  const isHidden = !entries.some((entry) => found.has(entry))
  const cards = entries.map((entry) => card(entry, !found.has(entry), wanted))
  if (!isFolded)
    return html`<section class="group" aria-labelledby=${id} ?hidden=${isHidden}><h2 id=${id}>${name}</h2>${cards}</section>`
  return html`
    <details class="group" ?hidden=${isHidden} .open=${isOpen} @toggle=${(event) => toggle(event, group)}>
      <summary class="group-line fold-line"><h2 id=${id}>${name}</h2><span class="group-size">${entries.length}</span></summary>${cards}
    </details>`
}

function card(entry, isHidden, wanted) {
  const { id, line, fields, isOpen = false } = entry
  const hits =
    wanted.length === 0 ? [] : fields.filter((field) => wanted.some((word) => field.toLowerCase().includes(word)))
  const rest = hits.length - FIELDS_SHOWN_MAX
  const foundFields = html`<p class="found-fields" ?hidden=${hits.length === 0}>${hits.slice(0, FIELDS_SHOWN_MAX).map((field) => html`<code>${field}</code>`)}${rest > 0 ? `and ${rest} more` : ''}</p>`
  return html`
    <details class="card" id=${id} ?hidden=${isHidden} .open=${isOpen} @toggle=${(event) => toggle(event, entry)}>
      <summary class="card-line">${line}${foundFields}</summary>${isOpen || entry.element ? bodyOf(entry) : nothing}
    </details>`
}

/** It is made once, and keeps what was written in it. */
function bodyOf(entry) {
  if (entry.element === undefined) {
    entry.element = document.createElement('div')
    entry.element.className = 'card-body'
    render(entry.body(), entry.element)
  }
  return entry.element
}

function toggle({ currentTarget, target }, what) {
  if (target !== currentTarget || what.isOpen === currentTarget.open) return
  what.isOpen = currentTarget.open
  // Many may be opened at once.
  if (frame === 0) frame = requestAnimationFrame(draw)
}

function indexOf({ name, entries, isFolded = false, isOpen = false }, found) {
  const isHidden = !entries.some((entry) => found.has(entry))
  const link = (entry) => html`
    <li ?hidden=${!found.has(entry)}><a href=${`#${encodeURIComponent(entry.id)}`} title=${entry.title || nothing} aria-current=${entry.id === chosenId() ? 'true' : nothing}>${entry.mark ?? nothing}<span class="index-text">${pathText(entry.name)}</span></a></li>`
  const list = html`<ul>${entries.map(link)}</ul>`
  if (!isFolded) return html`<section ?hidden=${isHidden}><h3>${name}</h3>${list}</section>`
  return html`
    <details ?hidden=${isHidden} .open=${isOpen}>
      <summary class="fold-line"><h3>${name}</h3><span class="group-size">${entries.length}</span></summary>${list}
    </details>`
}

// ── what is done ─────────────────────────────────────────────────────────────

function listen() {
  $('search').addEventListener('input', filter)
  for (const type of ['hashchange', 'popstate']) addEventListener(type, navigate)
  addEventListener('click', followLink)
  addEventListener('keydown', (event) => {
    const { key, target } = event
    if (key === '/' && !isTyping(/** @type {Element} */ (target)) && isPlain(event) && !event.altKey) {
      event.preventDefault()
      $('search').select()
      $('search').focus()
    } else if (key === 'Escape' && target === $('search')) {
      event.preventDefault()
      $('search').value = ''
      filter()
    }
  })
}

/** From the operations to the models and back without loading the page again. */
function followLink(event) {
  const link = event.target.closest?.('a')
  if (!link || event.defaultPrevented || !isPlain(event)) return
  if (link.origin !== location.origin || VIEWS[link.pathname] === undefined) return
  event.preventDefault()
  if (link.href !== location.href) history.pushState(null, '', link.href)
  navigate()
}

/** Shows what the address names: `#getUsersById` opens that operation. */
function navigate() {
  const view = currentView()
  for (const name of Object.values(VIEWS)) $(`show-${name}`).ariaCurrent = name === view ? 'page' : null
  const groups = views[view]
  const id = chosenId()
  const group = groups.find(({ entries }) => entries.some((each) => each.id === id))
  const entry = group?.entries.find((each) => each.id === id)
  if (entry !== undefined && !isFound(entry, searched())) $('search').value = ''
  filter()
  if (group === undefined || entry === undefined) return
  group.isOpen = true
  entry.isOpen = true
  draw()
  $(id).scrollIntoView({ block: 'start' })
  $(id).querySelector('summary').focus({ preventScroll: true })
}

const KEY = 'heddle-docs-token'

/** The token for operations that require one. It is kept until the tab is closed. */
class Token {
  #input
  #clear

  constructor(form, input, clear) {
    this.#input = input
    this.#clear = clear
    input.value = sessionStorage.getItem(KEY) ?? ''
    input.addEventListener('input', () => this.#keep())
    clear.addEventListener('click', () => {
      this.use('')
      input.focus()
    })
    form.addEventListener('submit', (event) => event.preventDefault())
    this.#keep()
  }

  get value() {
    return this.#input.value.trim()
  }

  use(value) {
    this.#input.value = value
    this.#keep()
    if (value !== '') this.#flash()
  }

  /** For a request that asks for one. It is sent without, too, and shows its 401: then the field is highlighted. */
  wanted() {
    if (this.value === '') this.#flash()
    return this.value
  }

  #flash() {
    this.#input.classList.remove('flash')
    requestAnimationFrame(() => this.#input.classList.add('flash'))
  }

  #keep() {
    if (this.value === '') sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, this.value)
    this.#clear.hidden = this.value === ''
  }
}
