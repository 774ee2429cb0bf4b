import { learnApplication } from '/system/dashboard/application.js'
import { el, setAttribute, setText } from '/system/dashboard/dom.js'
import { ChartsView } from './charts.js'
import { Connection } from './connection.js'
import { letterButtons } from './dead-letter-actions.js'
import { LETTERS_SHOWN_MAX, LettersView } from './dead-letters.js'
import { EventsView } from './events.js'
import { Figures } from './figures.js'
import { LanesView } from './lanes.js'
import { LintView } from './lint.js'
import { LogsView } from './logs.js'
import { Notices } from './notices.js'
import { logIn } from './page.js'
import { PluginsView } from './plugins.js'
import { RequestsView } from './requests.js'
import { ToolsView } from './tools.js'
import { TopologyView } from './topology.js'

/** Milliseconds of work in one animation frame. The remaining jobs wait for the next frame. */
const BUDGET_MS = 6

/**
 * Runs drawing jobs in animation frames. A job may be requested at any time and runs at most once per frame, and at most once per
 * interval of its own: a thousand changes a second are drawn ten times.
 */
class Painter {
  #jobs = new Map()
  #due = new Set()
  #frame = 0
  #timer

  /** @returns a function that requests a run of the job; with the argument `true` it runs in the next frame */
  job(run, everyMs = 100) {
    const job = { run, everyMs, lastMs: Number.NEGATIVE_INFINITY, isUrgent: false }
    this.#jobs.set(run, job)
    return (isUrgent = false) => {
      job.isUrgent ||= isUrgent
      this.#due.add(job)
      this.#schedule(isUrgent ? 0 : Math.max(0, job.lastMs + everyMs - performance.now()))
    }
  }

  #schedule(inMs) {
    if (this.#frame !== 0) return
    if (inMs > 20) {
      this.#timer ||= setTimeout(() => {
        this.#timer = undefined
        this.#schedule(0)
      }, inMs)
      return
    }
    this.#frame = requestAnimationFrame(() => this.#paint())
  }

  #paint() {
    this.#frame = 0
    const begunMs = performance.now()
    let waitMs = Number.POSITIVE_INFINITY
    for (const job of this.#due) {
      const nowMs = performance.now()
      const leftMs = job.isUrgent ? 0 : job.lastMs + job.everyMs - nowMs
      if (leftMs > 0 || nowMs - begunMs > BUDGET_MS) {
        waitMs = Math.min(waitMs, Math.max(0, leftMs))
        continue
      }
      this.#due.delete(job)
      job.isUrgent = false
      job.lastMs = nowMs
      job.run()
    }
    if (this.#due.size > 0) this.#schedule(waitMs)
  }
}

/** Milliseconds between two reads of the dead letters while they are shown: they may be replayed or deleted elsewhere too. */
const LETTERS_MS = 15_000
const STATES = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost, trying again' }

const byId = (id) => document.getElementById(id)
const main = byId('main')
const figures = new Figures()
byId('figures').append(figures.element)
let connected = false

/** The state that the views share. */
const page = {
  painter: new Painter(),
  notices: new Notices(byId('notices')),
  /** Oldest first. */
  deadLetters: [],
  /** @returns the parsed response, or null when the endpoint or the process does not exist */
  async fetchJson(path, init) {
    try {
      const response = await fetch(path, init)
      if (response.status === 401) logIn()
      return response.ok ? await response.json() : null
    } catch {
      // The state of the connection shows it already.
      return null
    }
  },
  async loadLetters() {
    const letters = await page.fetchJson(`/system/dead-letters?limit=${LETTERS_SHOWN_MAX + 1}`)
    if (letters === null && !connected) return
    page.deadLetters = letters ?? []
    views.letters.onLetters(letters)
    views.requests.onLetters(letters)
    figures.onLetters(page.deadLetters)
    if (letters !== null) views.events.onLetters(letters)
    page.refreshBadges()
  },
  letterButtons: (letter, ...more) => letterButtons(page, letter, ...more),
  open,
  hasEvent: (id) => views.events.has(id),
  revealEvent(id) {
    open('events')
    views.events.reveal(id)
  },
  refreshBadges() {
    for (const [name, { badge }] of Object.entries(views)) {
      const element = links[name].querySelector('.badge')
      setText(element, badge)
      element.hidden = badge === ''
    }
  },
}

const views = {
  requests: new RequestsView(page),
  plugins: new PluginsView(page),
  charts: new ChartsView(page),
  events: new EventsView(page),
  topology: new TopologyView(page),
  tools: new ToolsView(page),
  lanes: new LanesView(page),
  logs: new LogsView(page),
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
const links = Object.fromEntries(
  Object.entries(views).map(([name, { title }]) => [
    name,
    el('a', { href: addressOf(name), 'data-section': name }, el('span', {}, title), el('span.badge', { hidden: true })),
  ]),
)
byId('sections').append(...Object.values(links))

// ── sections ───────────────────────────────────────────────────────────────

/** Requests have addresses of their own, with the filter and the one that is chosen. */
function addressOf(name) {
  return name === 'requests' ? '/system/dashboard/requests' : `/system/dashboard#${name}`
}

function wantedSection() {
  if (location.pathname.startsWith('/system/dashboard/requests')) return 'requests'
  return location.hash.slice(1)
}

/** Goes to a section without loading the page again. */
function open(name) {
  if (wantedSection() !== name) history.pushState(null, '', addressOf(name))
  show(name)
}

function show(wanted) {
  const name = wanted in views ? wanted : 'requests'
  if (main.firstElementChild === views[name].element) return
  main.replaceChildren(views[name].element)
  for (const [each, link] of Object.entries(links)) setAttribute(link, 'aria-current', each === name ? 'true' : null)
  document.title = `${views[name].title} · heddle`
  // In a narrow window the sections are a row that scrolls sideways.
  byId('sections').scrollLeft = links[name].offsetLeft - byId('sections').clientWidth / 3
  views[name].show()
}

/** Goes to an address of this page without loading it again. */
function go(address) {
  history.pushState(null, '', address)
  dispatchEvent(new PopStateEvent('popstate'))
}

/** The link in which something was clicked. @param {Event} event @returns {HTMLAnchorElement | null} */
const linkOf = ({ target }, selector = 'a') => /** @type {Element} */ (target).closest(selector)

const isPlain = (event) => !event.metaKey && !event.ctrlKey && !event.shiftKey

byId('sections').addEventListener('click', (event) => {
  const name = linkOf(event)?.dataset.section
  if (name === undefined || !isPlain(event)) return
  event.preventDefault()
  open(name)
})
// Links from one section to another.
document.addEventListener('click', (event) => {
  const address = linkOf(event, 'a[href^="/system/dashboard"]')?.getAttribute('href')
  if (address === undefined || event.defaultPrevented || !isPlain(event)) return
  event.preventDefault()
  go(address)
})
for (const type of ['hashchange', 'popstate'])
  addEventListener(type, () => {
    if (location.hash !== '#main') show(wantedSection())
  })

// ── the stream ─────────────────────────────────────────────────────────────

new Connection({
  onState(state) {
    connected = state === 'live'
    setAttribute(byId('link'), 'data-state', state)
    setAttribute(byId('figures'), 'data-stale', state === 'lost' ? 'true' : null)
    setText(byId('link-text'), STATES[state])
  },
  onFrame(frame, isOtherProcess) {
    if (frame.type !== 'live' && frame.status !== undefined) learnApplication(frame.status)
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

show(wantedSection())
