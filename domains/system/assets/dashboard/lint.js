import { clockSeconds, count, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { empty } from './parts.js'
import { fetchJson } from './process.js'
import { View } from './view.js'

/** The findings of the architecture lint for the sources on disk. */
export class LintView extends View {
  #isReading = false
  /** Null where there is none. */
  #report

  constructor(page) {
    super(page, 'Lint', '')
  }

  show() {
    void this.#check()
  }

  async #check() {
    this.#isReading = true
    this.draw()
    this.#report = await fetchJson('/system/lint')
    this.#isReading = false
    if (this.#report !== null) this.badge = String(this.#report.findings.length || '')
    this.page.refreshBadges()
    this.draw()
  }

  content() {
    return html`
      <div class="card">
        <div class="toolbar">
          <button type="button" @click=${() => this.#check()}>Check again</button>
          <p class="note">${this.#isReading ? 'Reading the sources …' : checkedText(this.#report)}</p>
        </div>
        <div class="lint">${this.#report === undefined ? nothing : reportParts(this.#report)}</div>
      </div>`
  }
}

function checkedText(report) {
  if (report === null) return ''
  const { plugins, events, routes, migrations } = report.checked
  return `${plural(plugins, 'plugin')}, ${plural(events, 'event')}, ${plural(routes, 'route')}, ${plural(migrations, 'migration')} checked`
}

function reportParts(report) {
  if (report === null) {
    const why = 'The plugin lint-architecture is not installed, or the process does not answer.'
    return empty('The lint report is not available', why)
  }
  const rules = Map.groupBy(report.findings, ({ rule }) => rule)
  const groups = [...rules].map(
    ([rule, findings]) => html`<section><h2>${rule}</h2><ul>${findings.map(findingOf)}</ul></section>`,
  )
  const good = 'No domain imports another, events fit their contracts, and tables and routes have one owner each.'
  return [groups.length === 0 ? empty('No findings', good) : groups, observedParts(report.observed)]
}

const findingOf = ({ severity, file, line, message }) => html`
  <li class="finding">
    <span class="state" data-tone=${severity === 'error' ? 'bad' : 'warn'}>${severity}</span>
    <span class="finding-text"><span>${message}</span><code class="muted">${file}:${line}</code></span>
  </li>`

/** The differences between the sources and what the process has seen since its start. */
function observedParts(observed) {
  if (!observed) return nothing
  const { since, undeclared_events: undeclared = [], unseen_events: unseen = [], unused_tools: unused = [] } = observed
  const tables = [
    {
      title: 'Published but not declared',
      headings: ['Event', 'Published by', 'Fired'],
      rows: undeclared.map(({ event, emitters, fire_count }) => [event, emitters.join(', '), count(fire_count)]),
    },
    {
      title: 'Declared but not seen yet',
      headings: ['Event', 'Would be published by', 'Contract'],
      rows: unseen.map(({ event, emitters, contract }) => [event, emitters.join(', ') || 'nobody', contract ?? 'none']),
    },
    {
      title: 'Tools that a plugin takes but has not called yet',
      headings: ['Plugin', 'Tools'],
      rows: unused.map(({ plugin, tools }) => [plugin, tools.join(', ')]),
    },
  ].filter(({ rows }) => rows.length > 0)
  if (tables.length === 0) return nothing
  return html`
    <h2 class="observed">Seen at run time</h2>
    <p class="note">Since ${clockSeconds(since)}, the start of the process. What has not happened yet is not a fault.</p>
    ${tables.map(tableOf)}`
}

const tableOf = ({ title, headings, rows }) => html`
  <div class="scrolls"><table>
    <caption>${title}</caption>
    <thead><tr>${headings.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
    <tbody>${rows.map(([first, ...others]) => html`<tr><th scope="row">${first}</th>${others.map((text) => html`<td>${text}</td>`)}</tr>`)}</tbody>
  </table></div>`
