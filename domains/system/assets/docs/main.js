import { Catalogue } from './catalogue.js'
import { CausedLinks } from './caused-link.js'
import { el, prose } from './dom.js'
import { eventCard, eventsOf } from './event-view.js'
import { GroupView } from './group-view.js'
import { badge, operationCard, pathText } from './operation-view.js'
import { operationsOf } from './operations.js'
import { canPublish } from './publish-form.js'
import { SchemaView } from './schema-view.js'
import { Token } from './token.js'

/** The domain of the runtime's own operations and events: they are folded away behind those of the service. */
const RUNTIME = 'system'
/** By what else an operation is found. */
const KIND_WORDS = { http: '', stream: 'sse stream', socket: 'ws websocket' }

const $ = (id) => document.getElementById(id)
const catalogue = new Catalogue()

start().catch((error) => {
  $('notice').replaceChildren(`The API cannot be shown: ${error.message}`)
  $('notice').classList.add('fault')
})

async function start() {
  // The plugin for the events may have been deleted from the deployment.
  const [openApi, asyncApi] = await Promise.all([read('openapi.json'), read('asyncapi.json').catch(() => null)])
  const token = new Token($('token-form'), $('token'), $('token-clear'))
  document.title = `${openApi.info.title} · API`
  $('dashboard').hidden = openApi.paths['/system/dashboard'] === undefined

  const page = {
    canPublish: canPublish(openApi),
    caused: new CausedLinks(openApi),
    schemas: new SchemaView(openApi),
    token: () => token.value,
    useToken: (value) => token.use(value),
    hintToken: () => token.hint(),
  }
  const groups = groupsOf(openApi, asyncApi, page).map((group) => new GroupView(group))
  for (const group of groups) catalogue.add(group)
  $('content').replaceChildren(
    aboutApi(openApi, asyncApi),
    ...groups.map(({ section }) => section),
    el('p.notice', { id: 'nothing', hidden: true }, 'Nothing matches.'),
  )
  $('index').replaceChildren(...groups.map(({ nav }) => nav))
  listen()
  filter()
  openHash()
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
  return el(
    'div.about-api',
    {},
    el('h1', {}, info.title),
    el('span.version', {}, info.version),
    el('span.documents', {}, ...links),
    el('p.intro', {}, ...prose(info.description ?? '')),
  )
}

/** The tags of the service in their order, its events, and what belongs to the runtime. */
function groupsOf(openApi, asyncApi, page) {
  const operations = operationsOf(openApi)
  const ofTag = (name) =>
    operations.filter(({ tags }) => tags[0] === name).map((operation) => operationEntry(operation, page))
  const schemas = asyncApi && new SchemaView(asyncApi)
  const events = asyncApi === null ? [] : eventsOf(asyncApi, schemas)
  const eventsWhere = (isOwn) =>
    events.filter(({ domain }) => (domain === RUNTIME) === isOwn).map((event) => eventEntry(event, schemas, page))
  return [
    ...openApi.tags.filter(({ name }) => name !== RUNTIME).map(({ name }) => ({ name, members: ofTag(name) })),
    { name: 'Events', members: eventsWhere(false) },
    { name: 'The runtime itself', members: [...ofTag(RUNTIME), ...eventsWhere(true)], isFolded: true },
  ].filter(({ members }) => members.length > 0)
}

function operationEntry(operation, page) {
  const { id, method, path, summary = '', tags } = operation
  const parameters = (operation.parameters ?? []).map(({ name }) => name)
  return {
    card: operationCard(operation, page),
    link: indexLink(id, badge(operation), path, summary),
    words: [id, method, path, summary, ...tags, operation['x-plugin'], ...parameters, KIND_WORDS[operation.kind]],
  }
}

function eventEntry(event, schemas, page) {
  return {
    card: eventCard(event, schemas, page),
    link: indexLink(event.id, el('span.badge', { 'data-method': 'EVENT' }, 'EVENT'), event.name, ''),
    words: ['event', event.name, ...event.emitters, ...event.subscribers],
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
  addEventListener('hashchange', openHash)
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

function filter() {
  const { shown, all } = catalogue.filter($('search').value)
  $('count').textContent = shown === all ? `${all} entries` : `${shown} of ${all}`
  $('nothing').hidden = shown > 0
}

/** `#getUsersById` opens that operation. */
function openHash() {
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
