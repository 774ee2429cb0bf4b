import { learnApplication } from './application.js'
import { Catalogue, fieldPaths, GroupView, modelsOf, operationFields, operationsOf } from './catalogue.js'
import { el, prose } from './dom.js'
import { CausedLinks, canPublish, eventCard, eventsOf } from './events.js'
import { badge, operationCard, pathText } from './operation.js'
import { isOfRuntime, modelCard, SchemaView } from './schema.js'

/** The domain of the runtime's own operations and events: they are folded away behind those of the service. */
const RUNTIME = 'system'
const RUNTIME_GROUP = 'The runtime itself'
/** By what else an operation is found. */
const KIND_WORDS = { http: '', stream: 'sse stream', socket: 'ws websocket' }
const DOCS = '/system/docs'
/** What each address shows. */
const VIEWS = { [DOCS]: 'operations', [`${DOCS}/models`]: 'models' }

/** @returns {any} the one that is in `index.html` */
const $ = (id) => document.getElementById(id)
const catalogues = { operations: new Catalogue(), models: new Catalogue() }

start().catch((error) => {
  $('notice').replaceChildren(`The API cannot be shown: ${error.message}`)
  $('notice').classList.add('fault')
})

async function start() {
  // The plugin for the events may have been deleted from the deployment.
  const [openApi, asyncApi] = await Promise.all([read('openapi.json'), read('asyncapi.json').catch(() => null)])
  // The application has an address of its own.
  if (openApi.servers[0].url !== '/') learnApplication(await read('status'))
  const token = new Token($('token-form'), $('token'), $('token-clear'))
  document.title = `${openApi.info.title} · API`
  $('dashboard').hidden = openApi.paths['/system/dashboard'] === undefined

  const page = {
    canPublish: canPublish(openApi),
    caused: new CausedLinks(openApi),
    schemas: new SchemaView(openApi),
    eventSchemas: new SchemaView(asyncApi ?? {}),
    token: () => token.value,
    useToken: (value) => token.use(value),
    hintToken: () => token.hint(),
  }
  const operations = operationsOf(openApi)
  const events = asyncApi === null ? [] : eventsOf(asyncApi, page.eventSchemas)
  const models = modelsOf(operations, page.schemas, events, page.eventSchemas)
  page.schemas.models = models
  page.eventSchemas.models = models
  $('content').replaceChildren(aboutApi(openApi, asyncApi))
  show('operations', operationGroups(openApi.tags, operations, events, page))
  show('models', modelGroups(models.list))
  $('content').append(el('p.notice', { id: 'nothing', hidden: true }, 'Nothing matches.'))
  listen()
  navigate()
}

async function read(document) {
  const path = `/system/${document}`
  const response = await fetch(path)
  if (response.status === 401) location.replace(`/system/login?next=${encodeURIComponent(location.pathname)}`)
  if (!response.ok) throw new Error(`${path} answers ${response.status}`)
  return response.json()
}

function aboutApi({ info, paths }, asyncApi) {
  const links = [
    el('a', { href: '/system/openapi.json' }, 'OpenAPI'),
    asyncApi && el('a', { href: '/system/asyncapi.json' }, 'AsyncAPI'),
    paths['/system/client.ts'] && el('a', { href: '/system/client.ts' }, 'Typed client'),
  ]
  const name = [el('h1', {}, info.title), el('span.version', {}, info.version)]
  return el(
    'div.about-api',
    {},
    el('div.about-line', {}, ...name, el('span.documents', {}, ...links)),
    el('p.intro', {}, ...prose(info.description ?? '')),
  )
}

/** Puts the groups of a view, and their part of the index, into the page. */
function show(view, given) {
  const groups = given.filter(({ members }) => members.length > 0).map((group) => new GroupView(group))
  for (const group of groups) catalogues[view].add(group)
  $('content').append(el('div', { 'data-view': view }, ...groups.map(({ section }) => section)))
  $('index').append(el('div', { 'data-view': view }, ...groups.map(({ nav }) => nav)))
}

/** The tags of the service in their order, its events, and what belongs to the runtime. */
function operationGroups(tags, operations, events, page) {
  const ofTag = (name) => operations.filter((each) => each.tags[0] === name).map((each) => operationEntry(each, page))
  const eventsWhere = (isOwn) =>
    events.filter(({ domain }) => (domain === RUNTIME) === isOwn).map((event) => eventEntry(event, page))
  return [
    ...tags.filter(({ name }) => name !== RUNTIME).map(({ name }) => ({ name, members: ofTag(name) })),
    { name: 'Events', members: eventsWhere(false) },
    { name: RUNTIME_GROUP, members: [...ofTag(RUNTIME), ...eventsWhere(true)], isFolded: true },
  ]
}

function modelGroups(models) {
  const members = (isOwn) => models.filter((model) => isOfRuntime(model) === isOwn).map(modelEntry)
  return [
    { name: 'Models', members: members(false) },
    { name: RUNTIME_GROUP, members: members(true), isFolded: true },
  ]
}

function operationEntry(operation, page) {
  const { id, method, path, summary = '', tags } = operation
  return {
    card: operationCard(operation, page),
    link: indexLink(id, badge(operation), path, summary),
    words: [id, method, path, summary, ...tags, operation['x-plugin'], KIND_WORDS[operation.kind]],
    fields: operationFields(operation, page.schemas),
  }
}

function eventEntry(event, page) {
  const { id, name, emitters, subscribers, message } = event
  return {
    card: eventCard(event, page.eventSchemas, page),
    link: indexLink(id, badge({ method: 'EVENT', kind: 'event' }), name, ''),
    words: ['event', name, ...emitters, ...subscribers],
    fields: [...new Set(fieldPaths(message.payload, page.eventSchemas))].map((path) => `payload ${path}`),
  }
}

function modelEntry(model) {
  const { name, schema, schemas } = model
  const card = modelCard(model)
  return {
    card,
    link: indexLink(card.id, null, name, ''),
    words: ['model', name],
    fields: [...new Set(fieldPaths(schema, schemas))],
  }
}

function indexLink(id, mark, text, title) {
  return el(
    'li',
    {},
    el(
      'a',
      { href: `#${encodeURIComponent(id)}`, title: title || undefined },
      mark,
      el('span.index-text', {}, pathText(text)),
    ),
  )
}

function listen() {
  $('search').addEventListener('input', filter)
  for (const type of ['hashchange', 'popstate']) addEventListener(type, navigate)
  addEventListener('click', followLink)
  addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault()
      $('search').select()
      $('search').focus()
    } else if (event.key === 'Escape' && event.target === $('search')) {
      event.preventDefault()
      $('search').value = ''
      filter()
    }
  })
}

/** From the operations to the models and back without loading the page again. */
function followLink(event) {
  const link = event.target.closest?.('a')
  if (!link || event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey) return
  if (link.origin !== location.origin || VIEWS[link.pathname] === undefined) return
  event.preventDefault()
  if (link.href !== location.href) history.pushState(null, '', link.href)
  navigate()
}

function filter() {
  for (const [view, catalogue] of Object.entries(catalogues)) {
    const { shown, all } = catalogue.filter($('search').value)
    $(`${view}-count`).textContent = shown === all ? String(all) : `${shown} of ${all}`
    if (view === currentView()) $('nothing').hidden = shown > 0
  }
}

function currentView() {
  return VIEWS[location.pathname] ?? 'operations'
}

/** Shows what the address names: `#getUsersById` opens that operation. */
function navigate() {
  const view = currentView()
  /** @type {NodeListOf<HTMLElement>} */
  const parts = document.querySelectorAll('[data-view]')
  for (const part of parts) part.hidden = part.dataset.view !== view
  for (const name of Object.values(VIEWS)) {
    if (name === view) $(`show-${name}`).setAttribute('aria-current', 'page')
    else $(`show-${name}`).removeAttribute('aria-current')
  }
  filter()
  const catalogue = catalogues[view]
  const card = catalogue.choose(decodeURIComponent(location.hash.slice(1)))
  if (card === undefined) return
  if (card.hidden) {
    $('search').value = ''
    filter()
  }
  catalogue.reveal(card)
  card.open = true
  card.scrollIntoView({ block: 'start' })
  card.querySelector('summary').focus({ preventScroll: true })
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

  /** Highlights the token field. The request is sent all the same, and shows its 401. */
  hint() {
    this.#flash()
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
