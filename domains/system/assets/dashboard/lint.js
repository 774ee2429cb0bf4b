import { el, empty } from '/system/dashboard/dom.js'
import { clock, count, plural } from './format.js'

/** The findings of the architecture lint for the sources on disk. */
export class LintView {
  title = 'Lint'
  badge = ''
  #page
  #note = el('p.note')
  #body = el('div.lint')
  #again = el('button', { type: 'button' }, 'Check again')

  constructor(page) {
    this.#page = page
    this.#again.addEventListener('click', () => this.#check())
    this.element = el(
      'section.view',
      { 'aria-label': 'Lint' },
      el('div.card', {}, el('div.toolbar', {}, this.#again, this.#note), this.#body),
    )
  }

  show() {
    void this.#check()
  }

  async #check() {
    this.#note.textContent = 'Reading the sources …'
    const report = await this.#page.fetchJson('/system/lint')
    if (report === null) {
      this.#note.textContent = ''
      this.#body.replaceChildren(
        empty(
          'The lint report is not available',
          el('p', {}, 'The plugin lint-architecture is not installed, or the process does not answer.'),
        ),
      )
      return
    }
    const { findings, checked, observed } = report
    this.badge = findings.length === 0 ? '' : String(findings.length)
    this.#page.refreshBadges()
    const { plugins, events, routes, migrations } = checked
    this.#note.textContent = `${plural(plugins, 'plugin')}, ${plural(events, 'event')}, ${plural(routes, 'route')}, ${plural(migrations, 'migration')} checked`
    const rules = new Map()
    for (const finding of findings) rules.set(finding.rule, [...(rules.get(finding.rule) ?? []), finding])
    const groups = [...rules].map(([rule, list]) =>
      el('section.rule', {}, el('h2', {}, rule), el('ul.plain', {}, ...list.map(findingOf))),
    )
    if (groups.length === 0)
      groups.push(
        empty(
          'No findings',
          el(
            'p',
            {},
            'No domain imports another, events fit their contracts, and tables and routes have one owner each.',
          ),
        ),
      )
    this.#body.replaceChildren(...groups, ...observedParts(observed))
  }
}

function findingOf({ severity, file, line, message }) {
  return el(
    'li.finding',
    {},
    el('span', { class: `state state-${severity === 'error' ? 'bad' : 'warn'}` }, severity),
    el('span.finding-text', {}, el('span', {}, message), el('code.muted', {}, `${file}:${line}`)),
  )
}

/** The differences between the sources and what the process has seen since its start. */
function observedParts(observed) {
  if (!observed) return []
  const { since, undeclared_events: undeclared, unseen_events: unseen, unused_tools: unused } = observed
  const parts = [
    seen(
      'Published but not declared',
      ['Event', 'Published by', 'Fired'],
      undeclared?.map(({ event, emitters, fire_count }) => [event, emitters.join(', '), count(fire_count)]),
    ),
    seen(
      'Declared but not seen yet',
      ['Event', 'Would be published by', 'Contract'],
      unseen?.map(({ event, emitters, contract }) => [event, emitters.join(', ') || 'nobody', contract ?? 'none']),
    ),
    seen(
      'Tools that a plugin takes but has not called yet',
      ['Plugin', 'Tools'],
      unused?.map(({ plugin, tools }) => [plugin, tools.join(', ')]),
    ),
  ].filter((part) => part !== null)
  if (parts.length === 0) return []
  const note = `Since ${clock(since).slice(0, 8)}, the start of the process. What has not happened yet is not a fault.`
  return [el('h2.observed', {}, 'Seen at run time'), el('p.note', {}, note), ...parts]
}

function seen(title, headings, rows = []) {
  if (rows.length === 0) return null
  const cells = ([first, ...others]) => [el('th', { scope: 'row' }, first), ...others.map((text) => el('td', {}, text))]
  return el(
    'div.scrolls',
    {},
    el(
      'table',
      {},
      el('caption', {}, title),
      el('thead', {}, el('tr', {}, ...headings.map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, ...rows.map((row) => el('tr', {}, ...cells(row)))),
    ),
  )
}
