import { Connection } from './connection.js'
import { el, setAttribute, setText } from './dom.js'
import { EventsView } from './events-view.js'
import { bytes, count, duration, plural, rate } from './format.js'
import { LanesView } from './lanes-view.js'
import { LettersView } from './letters-view.js'
import { LintView } from './lint-view.js'
import { LogsView } from './logs-view.js'
import { Painter } from './painter.js'
import { Sparkline } from './sparkline.js'
import { ToolsView } from './tools-view.js'
import { TopologyView } from './topology-view.js'

/** How often dead letters are asked for while they are shown, milliseconds: others replay and delete them too. */
const LETTERS_MS = 15_000
const STATES = { connecting: 'Connecting', live: 'Live', lost: 'Connection lost, trying again' }

const byId = (id) => document.getElementById(id)
const main = byId('main')
const notices = byId('notices')

/** What the views share. */
const page = {
  painter: new Painter(),
  /** Oldest first. */
  deadLetters: [],
  /** @returns the parsed answer, or null when there is no such endpoint, or no process */
  async fetchJson(path, init) {
    try {
      const response = await fetch(path, init)
      return response.ok ? await response.json() : null
    } catch {
      // The connection says so already.
      return null
    }
  },
  async loadLetters() {
    const letters = await page.fetchJson('/system/dead-letters')
    if (letters === null && !connected) return
    page.deadLetters = letters ?? []
    views.letters.onLetters(letters)
    if (letters !== null) views.events.onLetters(letters)
    page.refreshBadges()
  },
  letterButtons,
  hasEvent: (id) => views.events.has(id),
  revealEvent(id) {
    location.hash = '#events'
    show('events')
    views.events.reveal(id)
  },
  refreshBadges() {
    for (const [name, { badge }] of Object.entries(views)) {
      const element = links[name].querySelector('.badge')
      setText(element, badge)
      element.hidden = badge === ''
    }
    setText(figures.letters.value, count(page.deadLetters.length))
    setAttribute(figures.letters.element, 'data-state', page.deadLetters.length > 0 ? 'warn' : null)
  },
}

const views = {
  events: new EventsView(page),
  topology: new TopologyView(page),
  tools: new ToolsView(page),
  lanes: new LanesView(page),
  logs: new LogsView(page),
  letters: new LettersView(page),
  lint: new LintView(page),
}
const links = Object.fromEntries(
  Object.entries(views).map(([name, { title }]) => [
    name,
    el('a', { href: `#${name}` }, el('span', { text: title }), el('span', { class: 'badge', hidden: true })),
  ]),
)
byId('sections').append(...Object.values(links))

// ── sections ───────────────────────────────────────────────────────────────

function show(wanted) {
  const name = wanted in views ? wanted : 'events'
  if (main.firstElementChild === views[name].element) return
  main.replaceChildren(views[name].element)
  for (const [each, link] of Object.entries(links)) setAttribute(link, 'aria-current', each === name ? 'true' : null)
  document.title = `${views[name].title} · heddle`
  // In a narrow window the sections are a row that scrolls.
  byId('sections').scrollLeft = links[name].offsetLeft - byId('sections').clientWidth / 3
  views[name].show()
}

addEventListener('hashchange', () => {
  if (location.hash !== '#main') show(location.hash.slice(1))
})

// ── figures ────────────────────────────────────────────────────────────────

function figure(label, hasChart = false) {
  const value = el('dd', { text: '–' })
  const chart = hasChart ? new Sparkline(60) : null
  const element = el('div', { class: 'figure' }, el('dt', { text: label }), value, chart?.element)
  return { element, value, chart }
}
const figures = {
  events: figure('Events a second', true),
  calls: figure('Tool calls a second', true),
  errors: figure('Errors, last minute'),
  lanes: figure('Lanes ready'),
  letters: figure('Dead letters'),
  memory: figure('Memory'),
}
byId('figures').append(el('dl', {}, ...Object.values(figures).map(({ element }) => element)))
let totalBefore = null

function tellFigures({ events_total, calls, lanes, process }) {
  const perSecond = totalBefore === null ? 0 : Math.max(0, events_total - totalBefore)
  totalBefore = events_total
  const sum = (key) => calls.reduce((total, each) => total + each[key], 0)
  const regular = lanes.filter(({ role }) => role === 'regular')
  const ready = regular.filter(({ state, responsive }) => state === 'ready' && responsive).length
  setText(figures.events.value, rate(perSecond))
  setText(figures.calls.value, rate(sum('calls')))
  setText(figures.errors.value, count(sum('minute_errors')))
  setAttribute(figures.errors.element, 'data-state', sum('minute_errors') > 0 ? 'bad' : null)
  setText(figures.lanes.value, `${ready} of ${regular.length}`)
  setAttribute(figures.lanes.element, 'data-state', ready < regular.length ? 'bad' : null)
  setText(figures.memory.value, bytes(process.rss_bytes))
  figures.events.chart.push(perSecond)
  figures.calls.chart.push(sum('calls'))
  figures.events.chart.paint(10)
  figures.calls.chart.paint(10)
}

// ── notices ────────────────────────────────────────────────────────────────

/** One notice per subject, so that they never pile up. @param text null takes it away */
function notice(subject, kind, text, canClose = false) {
  const known = [...notices.children].find(({ dataset }) => dataset.subject === subject)
  if (text === null) return known?.remove()
  if (known?.firstElementChild.textContent === text) return
  const element = el('div', { class: `notice notice-${kind}`, 'data-subject': subject }, el('p', { text }))
  if (canClose) {
    element.append(
      el('button', {
        class: 'quiet',
        type: 'button',
        'aria-label': 'Close this notice',
        text: 'Close',
        on: { click: () => element.remove() },
      }),
    )
  }
  if (known === undefined) notices.append(element)
  else known.replaceWith(element)
}

function tellHealth({ status, readiness }) {
  if (readiness !== undefined) {
    notice('ready', 'warn', readiness.ready ? null : `Not ready: ${readiness.reasons.join(', ')}`)
  }
  if (status === undefined) return
  const { tools, plugins, reload } = status
  const ill = Object.entries(tools).filter(([, each]) => each.status !== 'OK')
  notice(
    'tools',
    'bad',
    ill.length === 0
      ? null
      : ill.map(([name, each]) => `Tool ${name} is ${each.status}: ${each.message ?? 'no message'}`).join(' · '),
  )
  const dead = Object.entries(plugins).filter(([, each]) => each.status !== 'OK')
  notice(
    'plugins',
    'bad',
    dead.length === 0 ? null : dead.map(([name, { error }]) => `${name} is dead: ${error}`).join(' · '),
  )
  notice('reload', 'bad', reload === undefined || reload.ok ? null : `The old code still runs: ${reload.error}`)
}

/** What was lost between two connections, as far as the process's own counters tell. */
function tellGap({ missed, shown, isRestart, forMs }) {
  for (const view of Object.values(views)) view.onGap?.()
  const away = forMs < 1000 ? '' : ` for ${duration(Math.round(forMs / 1000) * 1000).replace('.0 s', ' s')}`
  const text = isRestart
    ? `The process was started anew; the page was without it${away}. Missed ${plural(missed, 'event')} of the new process, and whatever the old one did last.`
    : missed === 0
      ? `The connection was lost${away}. Missed no events: ${shown === 0 ? 'there were none' : `all ${count(shown)} are shown`}.`
      : `The connection was lost${away}. Missed ${plural(missed, 'event')}; the last ${count(shown)} are shown.`
  notice('gap', missed > 0 || isRestart ? 'warn' : 'info', text, true)
}

// ── dead letters ───────────────────────────────────────────────────────────

function letterButtons({ id, event, subscriber }, ...more) {
  const about = `${event} to ${subscriber}`
  const act = async (button, path, method, done) => {
    const hadFocus = button.matches(':focus')
    button.disabled = true
    const refusal = await refusalOf(path, method)
    button.disabled = false
    notice('letter', refusal === null ? 'info' : 'bad', `${about}: ${refusal ?? done}`, true)
    if (refusal === null) setTimeout(() => notice('letter', 'info', null), 6000)
    await page.loadLetters()
    // Its button has gone with it.
    if (hadFocus && !button.isConnected) main.focus()
  }
  const path = `/system/dead-letters/${encodeURIComponent(id)}`
  const replay = el('button', { class: 'primary', type: 'button', 'aria-label': `Replay ${about}`, text: 'Replay' })
  replay.addEventListener('click', () => act(replay, `${path}/replay`, 'POST', 'handed over once more'))
  const remove = el('button', { class: 'quiet', type: 'button', 'aria-label': `Delete ${about}`, text: 'Delete' })
  remove.addEventListener('click', () => {
    if (remove.dataset.sure === 'true') return act(remove, path, 'DELETE', 'deleted')
    remove.dataset.sure = 'true'
    remove.textContent = 'Delete for good?'
    setTimeout(() => {
      remove.dataset.sure = 'false'
      remove.textContent = 'Delete'
    }, 4000)
  })
  return el('div', { class: 'actions' }, replay, remove, ...more)
}

/** @returns why it was refused, or null */
async function refusalOf(path, method) {
  try {
    const response = await fetch(path, { method })
    return response.ok ? null : ((await response.json()).error ?? `Refused: ${response.status}`)
  } catch {
    // No process, or no JSON: either way it was not done.
    return 'The process did not answer'
  }
}

// ── the stream ─────────────────────────────────────────────────────────────

let connected = false

new Connection({
  onState(state) {
    connected = state === 'live'
    setAttribute(byId('link'), 'data-state', state)
    setText(byId('link-text'), STATES[state])
  },
  onFrame(frame, isOtherProcess) {
    if (frame.type === 'hello') {
      totalBefore = frame.events_total
      tellHealth(frame)
      for (const view of Object.values(views)) view.onHello(frame, isOtherProcess)
      void page.loadLetters()
    } else if (frame.type === 'live') {
      views.events.onLive(frame)
      views.logs.onLive(frame)
      if (frame.failures.length > 0) lettersSoon()
    } else {
      tellFigures(frame)
      tellHealth(frame)
      for (const view of Object.values(views)) view.onSecond(frame)
      page.refreshBadges()
    }
  },
  onGap: tellGap,
})

let lettersAreDue = false
/** A flood of failures asks once in a while. */
function lettersSoon() {
  if (lettersAreDue) return
  lettersAreDue = true
  setTimeout(() => {
    lettersAreDue = false
    void page.loadLetters()
  }, 300)
}
setInterval(() => document.hidden || !views.letters.element.isConnected || void page.loadLetters(), LETTERS_MS)

show(location.hash.slice(1))
