import { learnApplication } from './application.js'
import { ChartsView } from './charts.js'
import { Connection } from './connection.js'
import { LETTERS_SHOWN_MAX, LettersView } from './dead-letters.js'
import { EventsView } from './events.js'
import { Figures } from './figures.js'
import { JobsView } from './jobs.js'
import { LanesView } from './lanes.js'
import { LintView } from './lint.js'
import { html, nothing, render } from './lit-html.js'
import { LogsView } from './logs.js'
import { Notices } from './notices.js'
import { addressOfEvent, REQUESTS } from './page.js'
import { isPlain } from './parts.js'
import { PluginsView } from './plugins.js'
import { fetchJson } from './process.js'
import { QueuesView } from './queues.js'
import { RequestsView } from './requests.js'
import { ToolsView } from './tools.js'
import { TopologyView } from './topology.js'
import { setAttribute } from './view.js'

/** Milliseconds between two reads of the dead letters while they are shown: they may be replayed or deleted elsewhere too. */
const LETTERS_MS = 15_000
const STATES = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost, trying again' }

const byId = (id) => document.getElementById(id)
const main = byId('main')
const figures = new Figures(byId('figures'))
const notices = new Notices()
byId('notices').append(notices.element)
let connected = false

/** The state that the views share. */
const page = {
  notices,
  /** Oldest first. */
  deadLetters: [],
  async loadLetters() {
    const letters = await fetchJson(`/system/dead-letters?limit=${LETTERS_SHOWN_MAX + 1}`)
    if (letters === null && !connected) return
    page.deadLetters = letters ?? []
    views.letters.onLetters(letters)
    views.requests.onLetters(letters)
    figures.onLetters(page.deadLetters)
    if (letters !== null) views.events.onLetters(letters)
    page.refreshBadges()
  },
  open: (name) => views[name].element.isConnected || go(addressOf(name)),
  revealEvent: (id) => go(addressOfEvent(id)),
  refreshBadges() {
    const links = Object.entries(views).map(
      ([name, { title, badge, element }]) => html`
      <a href=${addressOf(name)} data-section=${name} aria-current=${element.isConnected ? 'true' : nothing}>
        <span>${title}</span><span class="badge" ?hidden=${badge === ''}>${badge}</span></a>`,
    )
    render(links, byId('sections'))
  },
}

const views = {
  requests: new RequestsView(page),
  plugins: new PluginsView(page),
  jobs: new JobsView(page),
  charts: new ChartsView(page),
  events: new EventsView(page),
  topology: new TopologyView(page),
  tools: new ToolsView(page),
  lanes: new LanesView(page),
  logs: new LogsView(page),
  queues: new QueuesView(page),
  letters: new LettersView(page),
  lint: new LintView(page),
}
/**
 * @typedef {import('../../dashboard/frames.ts').HelloFrame} HelloFrame
 * @typedef {import('../../dashboard/frames.ts').SecondFrame} SecondFrame
 * @typedef {{ title: string, onHello?(hello: HelloFrame, isOtherProcess: boolean): void, onSecond?(frame: SecondFrame): void, onGap?(): void }} View
 */
/** @type {View[]} */
const heard = Object.values(views)

// ── sections ───────────────────────────────────────────────────────────────

/** Requests have addresses of their own, with the filter and the one that is chosen. */
const addressOf = (name) => (name === 'requests' ? REQUESTS : `/system/dashboard#${name}`)

/** Shows the section that the address names. */
function show() {
  const wanted = location.pathname.startsWith(REQUESTS) ? 'requests' : location.hash.slice(1)
  const name = wanted in views ? wanted : 'requests'
  if (main.firstElementChild === views[name].element) return
  main.replaceChildren(views[name].element)
  page.refreshBadges()
  document.title = `${views[name].title} · heddle`
  // In a narrow window the sections are a row that scrolls sideways.
  const link = /** @type {HTMLElement} */ (byId('sections').querySelector('[aria-current]'))
  byId('sections').scrollLeft = link.offsetLeft - byId('sections').clientWidth / 3
  views[name].show()
}

/** Goes to an address of this page without loading it again. */
function go(address) {
  history.pushState(null, '', address)
  dispatchEvent(new PopStateEvent('popstate'))
}

document.addEventListener('click', (event) => {
  const link = /** @type {Element} */ (event.target).closest('a[href^="/system/dashboard"]')
  if (link === null || event.defaultPrevented || !isPlain(event)) return
  event.preventDefault()
  // The section that is shown stays as it is.
  if (link.getAttribute('aria-current') !== 'true') go(link.getAttribute('href'))
})
for (const type of ['hashchange', 'popstate']) addEventListener(type, () => location.hash === '#main' || show())

// ── the stream ─────────────────────────────────────────────────────────────

new Connection({
  onState(state) {
    connected = state === 'live'
    setAttribute(byId('link'), 'data-state', state)
    setAttribute(byId('figures'), 'data-stale', state === 'lost' ? 'true' : null)
    byId('link-text').textContent = STATES[state]
  },
  onFrame(frame, isOtherProcess) {
    if (frame.type !== 'live' && frame.status !== undefined) {
      learnApplication(frame.status)
      showRelease(frame.status)
    }
    if (frame.type === 'hello') {
      figures.onHello(frame)
      page.notices.tellHealth(frame)
      for (const view of heard) view.onHello?.(frame, isOtherProcess)
      void page.loadLetters()
    } else if (frame.type === 'live') {
      views.events.onLive(frame)
      views.logs.onLive(frame)
      if (frame.failures.length > 0) lettersSoon()
    } else {
      figures.onSecond(frame)
      page.notices.tellHealth(frame)
      for (const view of heard) view.onSecond?.(frame)
      page.refreshBadges()
    }
  },
  onGap(gap) {
    page.notices.tellGap(gap)
    for (const view of heard) view.onGap?.()
  },
})

/** Which release runs, beside the name. */
function showRelease({ release = '' }) {
  byId('release').textContent = release
  byId('release').title = `Release ${release}`
  byId('release').hidden = release === ''
}

let lettersAreDue = false
/** Reads the dead letters soon; many failures share one read. */
function lettersSoon() {
  if (lettersAreDue) return
  lettersAreDue = true
  setTimeout(() => {
    lettersAreDue = false
    void page.loadLetters()
  }, 300)
}
setInterval(() => document.hidden || !views.letters.element.isConnected || void page.loadLetters(), LETTERS_MS)

show()
