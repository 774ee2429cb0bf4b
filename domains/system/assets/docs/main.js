import { el, prose } from './dom.js'
import { eventCard, eventsOf } from './event-view.js'
import { badge, operationCard, pathText } from './operation-view.js'
import { operationsOf } from './operations.js'
import { SchemaView } from './schema-view.js'
import { Token } from './token.js'

/** The runtime's own operations are listed behind those of the service. */
const RUNTIME_TAG = 'system'
const DASHBOARD = '/system/dashboard'
/** By what else an operation is found. */
const KIND_WORDS = { http: '', stream: 'sse stream', socket: 'ws websocket' }

const $ = (id) => document.getElementById(id)
/** Operations and events for the search: the card, the line in the index, and the words by which it is found. */
const entries = []
const groups = []

start().catch((error) => {
  $('notice').replaceChildren(`The API cannot be shown: ${error.message}`)
  $('notice').classList.add('fault')
})

async function start() {
  // The plugin for the events may have been deleted from the deployment.
  const [openApi, asyncApi] = await Promise.all([read('openapi.json'), read('asyncapi.json').catch(() => null)])
  const token = new Token($('token-form'), $('token'), $('token-clear'))
  document.title = `${openApi.info.title} · API`
  $('title').textContent = openApi.info.title
  $('version').textContent = openApi.info.version

  const page = {
    schemas: new SchemaView(openApi),
    token: () => token.value,
    useToken: (value) => token.use(value),
    hintToken: () => token.hint(),
  }
  const content = [
    el(
      'p.intro',
      {},
      ...prose(openApi.info.description ?? ''),
      ' As documents: ',
      el('a', { href: 'openapi.json' }, 'OpenAPI'),
      asyncApi && ', ',
      asyncApi && el('a', { href: 'asyncapi.json' }, 'AsyncAPI'),
      '. ',
      openApi.paths[DASHBOARD] && el('a', { href: 'dashboard' }, 'What happens in it, live'),
    ),
  ]
  const operations = operationsOf(openApi)
  const addTag = (name) => {
    const own = operations.filter(({ tags }) => tags[0] === name)
    if (own.length > 0)
      content.push(
        group(
          name,
          own.map((operation) => operationEntry(operation, page)),
        ),
      )
  }
  for (const { name } of openApi.tags) if (name !== RUNTIME_TAG) addTag(name)
  if (asyncApi !== null) {
    const schemas = new SchemaView(asyncApi)
    const events = eventsOf(asyncApi, schemas)
    if (events.length > 0)
      content.push(
        group(
          'Events',
          events.map((event) => eventEntry(event, schemas)),
        ),
      )
  }
  addTag(RUNTIME_TAG)
  content.push(el('p.notice', { id: 'nothing', hidden: true }, 'Nothing matches.'))
  $('content').replaceChildren(...content)
  for (const { nav } of groups) $('index').append(nav)
  listen()
  filter()
  openHash()
}

async function read(path) {
  const response = await fetch(path)
  if (response.status === 401) location.replace(`/system/login?next=${encodeURIComponent(location.pathname)}`)
  if (!response.ok) throw new Error(`${path} answers ${response.status}`)
  return response.json()
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

function eventEntry(event, schemas) {
  return {
    card: eventCard(event, schemas),
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

function group(name, members) {
  const headingId = `group-${groups.length}`
  const section = el(
    'section.group',
    { 'aria-labelledby': headingId },
    el('h2', { id: headingId }, name),
    ...members.map(({ card }) => card),
  )
  const nav = el('section', {}, el('h3', {}, name), el('ul', {}, ...members.map(({ link }) => link)))
  for (const member of members) entries.push({ ...member, text: member.words.join(' ').toLowerCase() })
  groups.push({ section, nav, members: entries.slice(-members.length) })
  return section
}

function listen() {
  $('search').addEventListener('input', filter)
  addEventListener('hashchange', openHash)
  addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault()
      $('search').focus()
    } else if (event.key === 'Escape' && event.target === $('search') && $('search').value !== '') {
      event.preventDefault()
      $('search').value = ''
      filter()
    }
  })
}

/** Shows the entries that contain all words of the search. */
function filter() {
  const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean)
  let shown = 0
  for (const { card, link, text } of entries) {
    const isMatch = words.every((word) => text.includes(word))
    card.hidden = !isMatch
    link.hidden = !isMatch
    if (isMatch) shown++
  }
  for (const { section, nav, members } of groups) {
    section.hidden = members.every(({ card }) => card.hidden)
    nav.hidden = section.hidden
  }
  $('count').textContent = words.length === 0 ? `${entries.length} entries` : `${shown} of ${entries.length}`
  $('nothing').hidden = shown > 0
}

/** `#getUsersById` opens that operation. */
function openHash() {
  const id = decodeURIComponent(location.hash.slice(1))
  const entry = entries.find(({ card }) => card.id === id)
  for (const { link, card } of entries) {
    const anchor = link.firstElementChild
    if (card.id === id) anchor.setAttribute('aria-current', 'true')
    else anchor.removeAttribute('aria-current')
  }
  if (entry === undefined) return
  if (entry.card.hidden) {
    $('search').value = ''
    filter()
  }
  entry.card.open = true
  entry.card.scrollIntoView({ block: 'start' })
  entry.card.querySelector('summary').focus({ preventScroll: true })
}
