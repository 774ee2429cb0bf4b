import { el, empty } from './dom.js'
import { plural } from './format.js'

/** What the architecture lint objects to in the sources as they stand on disk. */
export class LintView {
  title = 'Lint'
  badge = ''
  #page
  #note = el('p', { class: 'note' })
  #body = el('div', { class: 'lint' })
  #again = el('button', { type: 'button', text: 'Check again' })

  constructor(page) {
    this.#page = page
    this.#again.addEventListener('click', () => this.#check())
    this.element = el(
      'section',
      { class: 'view', 'aria-label': 'Lint' },
      el('div', { class: 'card' }, el('div', { class: 'toolbar' }, this.#again, this.#note), this.#body),
    )
  }

  onHello() {}
  onSecond() {}

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
          'The lint could not be had',
          el('p', { text: 'The plugin lint-architecture is not installed, or the process is not there.' }),
        ),
      )
      return
    }
    const { findings, checked, observed } = report
    this.badge = findings.length === 0 ? '' : String(findings.length)
    this.#page.refreshBadges()
    const { plugins, events, routes, migrations } = checked
    this.#note.textContent = `${plural(plugins, 'plugin')}, ${plural(events, 'event')}, ${plural(routes, 'route')}, ${plural(migrations, 'migration')} looked at`
    const rules = new Map()
    for (const finding of findings) rules.set(finding.rule, [...(rules.get(finding.rule) ?? []), finding])
    const groups = [...rules].map(([rule, list]) =>
      el('section', { class: 'rule' }, el('h2', { text: rule }), el('ul', { class: 'plain' }, ...list.map(findingOf))),
    )
    if (groups.length === 0)
      groups.push(
        empty(
          'Nothing to object to',
          el('p', {
            text: 'Domains keep to themselves, events fit their contracts, tables and routes have one owner each.',
          }),
        ),
      )
    this.#body.replaceChildren(...groups, ...observedParts(observed))
  }
}

function findingOf({ severity, file, line, message }) {
  return el(
    'li',
    { class: 'finding' },
    el('span', { class: `state state-${severity === 'error' ? 'bad' : 'warn'}`, text: severity }),
    el(
      'span',
      { class: 'finding-text' },
      el('span', { text: message }),
      el('code', { class: 'muted', text: `${file}:${line}` }),
    ),
  )
}

/** What was seen while the process ran, beside what the sources say: lists by name, whatever they hold. */
function observedParts(observed) {
  if (observed === null || typeof observed !== 'object') return []
  const parts = []
  for (const [name, list] of Object.entries(observed)) {
    if (!Array.isArray(list) || list.length === 0) continue
    const texts = list.map((each) => (typeof each === 'string' ? each : Object.values(each).flat().join(' · ')))
    parts.push(
      el('h2', { text: `Seen at run time: ${name.replaceAll('_', ' ')}` }),
      el('ul', { class: 'plain' }, ...texts.map((text) => el('li', { text }))),
    )
  }
  return parts
}
