import { jsonBlock } from './code-view.js'
import { el } from './dom.js'

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

export function eventCard(event, schemas) {
  const { id, name, message, emitters, subscribers } = event
  const body = el('div.card-body')
  const card = el(
    'details.card',
    { id },
    el('summary.card-line', {}, el('span.badge', { 'data-method': 'EVENT' }, 'EVENT'), el('code.path', {}, name)),
    body,
  )
  card.addEventListener('toggle', () => {
    if (!card.open || body.childElementCount > 0) return
    const example = message.examples?.[0]?.payload
    body.append(
      el(
        'dl.parties',
        {},
        el('dt', {}, 'Published by'),
        el('dd', {}, ...names(emitters)),
        el('dt', {}, 'Subscribers'),
        el('dd', {}, ...names(subscribers)),
      ),
      el('section.part', {}, el('h4', {}, 'Payload'), schemas.render(message.payload)),
    )
    if (example !== undefined) body.append(el('section.part', {}, el('h4', {}, 'Example'), jsonBlock(example)))
  })
  return card
}

function names(plugins) {
  return plugins.length === 0 ? [el('span.about', {}, 'nobody')] : plugins.map((plugin) => el('code', {}, plugin))
}
