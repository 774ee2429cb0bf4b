import { ago, clockSeconds, count, duration, plural, rate } from './format.js'
import { scheduleText } from './jobs.js'
import { html, nothing } from './lit-html.js'
import { addressOfSearch } from './page.js'
import { empty } from './parts.js'
import { fetchJson } from './process.js'
import { View } from './view.js'

/** Seconds between two looks while the section is shown. */
const LOOK_SECONDS = 2
const KINDS = { request: 'route', event: 'event', job: 'job' }
const COLUMNS = [
  ['calls', 'Per second'],
  ['errors', 'Errors'],
  ['p50_ms', 'p50'],
  ['slow', 'p95'],
  ['p99_ms', 'p99'],
]

/** Which plugin is slow, which fails, and what the last change of the code has made of it. */
export class PluginsView extends View {
  #report = null
  #isMissing = false
  #sortBy = 'slow'
  #seconds = 0
  #isAsking = false

  constructor(page) {
    super(page, 'Plugins', 'plugins')
  }

  onHello() {
    void this.#look()
  }

  onSecond() {
    if (this.isShown && ++this.#seconds % LOOK_SECONDS === 0) void this.#look()
  }

  show() {
    super.show()
    void this.#look()
  }

  async #look() {
    if (!this.element.isConnected || this.#isAsking) return
    this.#isAsking = true
    const report = await fetchJson('/system/plugins')
    this.#isAsking = false
    this.#isMissing = report === null
    this.#report = report ?? this.#report
    this.draw()
  }

  content() {
    const report = this.#report
    if (report === null) {
      const why = this.#isMissing ? 'The plugin that measures them (show-plugins) is not installed.' : 'Looking …'
      return html`<div class="card"><p class="empty">${why}</p></div>`
    }
    if (report.plugins.length === 0)
      return html`<div class="card">${empty('No plugin has a route, a subscriber or a job')}</div>`
    const slowest = Math.max(...report.plugins.map(({ slow_ms: ms }) => ms ?? 0), 0.001)
    const of = { to: report.to, slowest, hasBefore: report.before !== null }
    const before = html`<th scope="col" class="number">Old p50</th><th scope="col" class="number">Old p95</th>`
    return html`
      <div class="card answers">${answers(report)}</div>
      <div class="card scrolls">
        <table class="handlers stacked">
          <thead><tr>
            <th scope="col">Plugin</th>
            ${COLUMNS.map(([key, text]) => this.#heading(key, text))}
            ${of.hasBefore ? [before, this.#heading('change', 'Change')] : nothing}
          </tr></thead>
          ${this.#sorted(report.plugins).map((plugin) => pluginRows(plugin, of))}
        </table>
        ${report.missing.map((text) => html`<p class="note">${text}</p>`)}
      </div>`
  }

  #heading(key, text) {
    const isChosen = this.#sortBy === key
    return html`<th scope="col" class="number" aria-sort=${isChosen ? 'descending' : nothing}>
      <button class="sort" type="button" @click=${() => this.#sort(key)}>${text}</button></th>`
  }

  #sort(key) {
    this.#sortBy = key
    this.draw()
  }

  /** As the process has sorted them: the slowest first; or by another column. */
  #sorted(plugins) {
    const key = this.#sortBy
    if (key === 'slow') return plugins
    const most = (handlers) => Math.max(...handlers.map((each) => sortValue(each, key)))
    return plugins
      .map((plugin) => ({
        ...plugin,
        handlers: [...plugin.handlers].sort((a, b) => sortValue(b, key) - sortValue(a, key)),
      }))
      .sort((a, b) => most(b.handlers) - most(a.handlers))
  }
}

function sortValue(handler, key) {
  if (key !== 'change') return handler[key] ?? -1
  const { p50_ms: now, before } = handler
  return now === null || !before?.p50_ms ? 0 : Math.abs(Math.log(now / before.p50_ms))
}

/** Handlers that fail which are named. */
const FAILING_MAX = 3

/** The questions of this page, each answered in a sentence that says of which time. */
function answers({ plugins, changed, before, before_missing: beforeMissing, from, to }) {
  const [{ plugin, handlers }] = plugins
  const { slow } = handlers[0]
  const since = changed.kind === 'reload' ? 'the reload' : 'the start'
  const all = plugins.flatMap(({ handlers }) => handlers)
  const isQuiet = all.every(({ kind, calls }) => kind !== 'request' || calls === 0)
  const slowest =
    slow.ms !== null
      ? html`<p>Slowest is <a href=${linkOf({ plugin, ...handlers[0] })}><b>${plugin}</b></a>: <code>${handlers[0].name}</code> takes ${duration(slow.ms)} at ${slow.at}, of ${plural(handlers[0].calls, 'call')} in the last ${spanOf(handlers[0].from, to)}.</p>`
      : html`<p>${isQuiet ? 'No route was called' : 'No duration was measured'} in the last ${spanOf(from, to)}.</p>`
  const failing = all.filter(({ errors }) => errors > 0).sort((a, b) => b.errors - a.errors)
  const failures = failing
    .slice(0, FAILING_MAX)
    .map(
      (handler) =>
        html`<p class="state" data-tone="bad"><span class="dot"></span><span><code>${handler.name}</code> of ${handler.plugin} failed ${timesOf(handler)} in the last ${spanOf(handler.from, to)}.</span></p>`,
    )
  const changes = changesOf(plugins)
  const different =
    before === null
      ? html`<p class="muted">No comparison with the code before ${since} ${ago(changed.at)}. ${beforeMissing}.</p>`
      : changes.length === 0
        ? html`<p>Nothing has become slower or faster, and nothing fails more often, since ${since} ${ago(changed.at)}.</p>`
        : html`<p>Since ${since} ${ago(changed.at)}:</p><ul>${changes.map(
            ({ handler, text, isWorse }) =>
              html`<li class="state" data-tone=${isWorse ? 'bad' : 'ok'}><span class="dot"></span><span><code>${handler.name}</code> ${text}</span></li>`,
          )}</ul>`
  return html`${slowest}${failures}${different}`
}

/** From one time to another. */
const spanOf = (from, to) =>
  duration(Math.max(1000, Math.round((Date.parse(to) - Date.parse(from)) / 1000) * 1000)).replace('.0 s', ' s')

const timesOf = ({ errors, calls }) =>
  calls === null ? plural(errors, 'time') : `${count(errors)} of ${plural(calls, 'time')}`

function pluginRows({ plugin, errors, handlers }, of) {
  const isCalled = handlers.some(({ calls }) => calls > 0)
  return html`<tbody class=${isCalled ? '' : 'is-idle'}>
    <tr class="plugin-row"><th scope="rowgroup" colspan=${of.hasBefore ? 9 : 6}>
      <a href=${addressOfSearch(`plugin:${plugin}`)}>${plugin}</a>
      ${errors > 0 ? html`<span class="state" data-tone="bad">${plural(errors, 'error')}</span>` : nothing}
    </th></tr>
    ${handlers.map((handler) => handlerRow(handler, of))}
  </tbody>`
}

function handlerRow(handler, { to, slowest, hasBefore }) {
  const { kind, name, calls, errors, p50_ms, p95_ms, p99_ms, slow, before, from, job } = handler
  const span = from === null ? '' : `in the last ${spanOf(from, to)}`
  const seconds = Math.max(1, (Date.parse(to) - Date.parse(from)) / 1000)
  const width = ((slow.ms ?? 0) / slowest) * 100
  return html`<tr>
    <th scope="row"><a href=${linkOf(handler)}><code>${name}</code></a><span class="tag">${KINDS[kind]}</span>${job ? html`<span class="muted job-times">${jobText(job)}</span>` : nothing}</th>
    <td class="number" data-label="Per second" title=${calls === null ? 'not counted' : `${plural(calls, 'call')} ${span}`}>${calls === null ? '–' : rate(calls / seconds)}</td>
    <td class="number ${errors > 0 ? 'is-bad' : ''}" data-label="Errors" title=${errors === null ? 'not counted' : span}>${errors === null ? '–' : count(errors)}</td>
    <td class="number" data-label="p50">${duration(p50_ms)}</td>
    <td class="number slow" data-label="p95"><svg aria-hidden="true" class="share"><rect height="3" rx="1.5" width=${`${width}%`}></rect></svg>${duration(p95_ms)}</td>
    <td class="number" data-label="p99">${duration(p99_ms)}</td>
    ${hasBefore ? html`<td class="number muted" data-label="Old p50">${duration(before?.p50_ms)}</td><td class="number muted" data-label="Old p95">${duration(before?.p95_ms)}</td>${changeCell(handler)}` : nothing}
  </tr>`
}

/** When a job runs, by whose clocks, and when next. */
function jobText({ schedule, next_run: next, fires_here: isHere, running }) {
  const state = !isHere
    ? 'in another process, or not at all'
    : running
      ? 'running'
      : next === null
        ? 'does not run again'
        : `next ${clockSeconds(next)}`
  return `${scheduleText(schedule)} · ${state}`
}

/** Of p50: a single slow call moves p95. */
function changeCell(handler) {
  const { p50_ms: now, before, calls } = handler
  if (before === null) return html`<td class="number muted" data-label="Change">${calls > 0 ? 'new' : ''}</td>`
  if (now === null || !before.p50_ms) return html`<td class="number" data-label="Change"></td>`
  const factor = now / before.p50_ms
  const percent = Math.round((factor - 1) * 100)
  const state = !isChanged(handler, 'p50_ms') ? 'muted' : percent > 0 ? 'is-bad' : 'is-good'
  const text = factor >= 10 ? `× ${count(Math.round(factor))}` : `${percent > 0 ? '+' : ''}${percent} %`
  return html`<td class="number ${state}" data-label="Change">${text}</td>`
}

/** The requests that it served; of a subscriber, those in which it has done something. */
function linkOf({ plugin, kind, name }) {
  const words =
    kind === 'event' ? `"${plugin}."` : `plugin:${plugin}${kind === 'request' ? ` route:${name.split(' ')[1]}` : ''}`
  return addressOfSearch(words)
}

/** With fewer calls, before or now, a percentile says little. */
const CALLS_MIN = { p50_ms: 5, p95_ms: 40 }
/** A percentile that is off by less is no change: its factor, and milliseconds. */
const FACTOR = 1.5
const LEAST_MS = 2
/** Of all calls. */
const ERRORS_MORE = 0.01
const SHOWN_MAX = 5

/** Whether the handler has become slower or faster. @param key `p50_ms` or `p95_ms` */
function isChanged(handler, key) {
  const { calls, before } = handler
  const now = handler[key]
  const then = before?.[key]
  if (now === null || !then || calls < CALLS_MIN[key] || before.calls < CALLS_MIN[key]) return false
  const factor = now / then
  return Math.abs(now - then) >= LEAST_MS && (factor >= FACTOR || factor <= 1 / FACTOR)
}

/** What is different with the present code, the worst first. */
function changesOf(plugins) {
  const changes = []
  for (const handler of plugins.flatMap(({ handlers }) => handlers)) {
    const { before } = handler
    const key = ['p50_ms', 'p95_ms'].find((each) => isChanged(handler, each))
    if (key !== undefined) {
      const [now, then] = [handler[key], before[key]]
      const text = `takes ${duration(now)} instead of ${duration(then)} at ${key.slice(0, 3)}`
      changes.push({ handler, text, isWorse: now > then, weight: Math.abs(Math.log(now / then)) })
    }
    const more = errorShare(handler) - errorShare(before)
    if (handler.calls > 0 && Math.abs(more) > ERRORS_MORE) {
      const then = before === null ? 'it was not called before' : `instead of ${percent(errorShare(before))}`
      const text = `fails in ${percent(errorShare(handler))} of its calls${before === null ? ',' : ''} ${then}`
      changes.push({ handler, text, isWorse: more > 0, weight: 10 + Math.abs(more) })
    }
  }
  return changes.sort((a, b) => b.isWorse - a.isWorse || b.weight - a.weight).slice(0, SHOWN_MAX)
}

const errorShare = (figures) => (figures === null || figures.calls === 0 ? 0 : figures.errors / figures.calls)
const percent = (share) => `${share > 0 && share < 0.01 ? '< 1' : Math.round(share * 100)} %`
