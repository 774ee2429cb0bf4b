import { el } from '/system/docs/dom.js'
import { jsonBlock } from './code-view.js'
import { publishForm } from './publish-form.js'

/** The events of the document, each with its publishers and subscribers. */
export function eventsOf(document, schemas) {
  return Object.entries(document.channels).map(([key, channel]) => {
    const message = schemas.resolve(Object.values(channel.messages)[0])
    const plugins = (action) =>
      Object.values(document.operations)
        .filter((operation) => operation.action === action && operation.channel.$ref === `#/channels/${key}`)
        .map((operation) => operation['x-plugin'])
    return {
      id: `event-${key}`,
      name: channel.address,
      /** The domain that declares it; undefined without a contract. */
      domain: message.tags?.[0]?.name,
      message,
      emitters: plugins('send'),
      subscribers: plugins('receive'),
    }
  })
}

export function eventCard(event, schemas, page) {
  const body = el('div.card-body')
  const card = el(
    'details.card',
    { id: event.id },
    el('summary.card-line', {}, el('span.badge', { 'data-method': 'EVENT' }, 'EVENT'), el('code.path', {}, event.name)),
    body,
  )
  card.addEventListener('toggle', () => {
    if (card.open && body.childElementCount === 0) body.append(...details(event, schemas, page))
  })
  return card
}

function details(event, schemas, page) {
  const { message, emitters, subscribers } = event
  const example = message.examples?.[0]?.payload
  const parties = el(
    'dl.parties',
    {},
    el('dt', {}, 'Published by'),
    el('dd', {}, ...names(emitters)),
    el('dt', {}, 'Subscribers'),
    el('dd', {}, ...names(subscribers)),
  )
  const trial = page.canPublish
    ? section('Publish it', publishForm(event, schemas, page))
    : example !== undefined && section('Example', jsonBlock(example))
  return [
    parties,
    el(
      'div.card-parts',
      {},
      el(
        'div.input',
        {},
        section('Payload', el('p.meta', {}, schemas.linkOf(message.payload)), schemas.render(message.payload)),
      ),
      el('div.trial', {}, trial),
    ),
  ]
}

function section(title, ...content) {
  return el('section.part', {}, el('h4', {}, title), ...content)
}

function names(plugins) {
  return plugins.length === 0 ? [el('span.about', {}, 'nobody')] : plugins.map((plugin) => el('code', {}, plugin))
}
