import { el } from '/system/docs/dom.js'

/** Places that a card names; of the rest it tells how many. */
const USES_SHOWN_MAX = 30

/** Where a model stands on the page. */
export function modelHref({ name }) {
  return `/system/docs/models#${modelId({ name })}`
}

function modelId({ name }) {
  return `model-${name}`
}

/** The model as a link; null when a schema is none. */
export function modelLink(model) {
  return model ? el('a.model-link', { href: modelHref(model) }, model.name) : null
}

/** True for a model that the runtime alone uses. */
export function isOfRuntime({ uses }) {
  return uses.every(({ isOwn }) => isOwn)
}

export function modelCard(model) {
  const body = el('div.card-body')
  const card = el(
    'details.card',
    { id: modelId(model) },
    el(
      'summary.card-line',
      {},
      el('code.path', {}, model.name),
      el('span.summary-text', {}, model.schema.description ?? ''),
      el('span.uses-count', {}, usesText(model.uses.length)),
    ),
    body,
  )
  card.addEventListener('toggle', () => {
    if (card.open && body.childElementCount === 0) body.append(...details(model))
  })
  return card
}

function details({ schema, schemas, uses }) {
  const shown = uses.slice(0, USES_SHOWN_MAX).map(useLine)
  const rest = uses.length - shown.length
  return [
    el(
      'div.card-parts',
      {},
      el('div.input', {}, el('section.part', {}, el('h4', {}, 'Fields'), schemas.render(schema))),
      el(
        'div.trial',
        {},
        el(
          'section.part',
          {},
          el('h4', {}, 'Used by'),
          el('ul.uses', {}, ...shown),
          rest > 0 && el('p.meta', {}, `and ${rest} more`),
        ),
      ),
    ),
  ]
}

function useLine({ text, place, href, model }) {
  const link = model ? modelLink(model) : el('a', { href: `/system/docs${href}` }, el('code', {}, text))
  return el('li', {}, link, el('span.about', {}, place ?? 'a part of it'))
}

function usesText(count) {
  return `${count} use${count === 1 ? '' : 's'}`
}
