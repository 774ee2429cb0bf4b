import { Models } from './models.js'

/** The models of all operations and events, with where each is used. */
export function modelsOf(operations, schemas, events, eventSchemas) {
  const models = new Models()
  for (const operation of operations) {
    const { id, method, path, requestBody, responses, tags } = operation
    const isOwn = tags[0] === 'system'
    const use = (place) => ({ text: `${method} ${path}`, place, href: `#${encodeURIComponent(id)}`, isOwn })
    const add = (content, name, place) => {
      const schema = Object.values(content ?? {})[0]?.schema
      if (schema !== undefined) models.add(schema, schemas, componentName(schema) ?? name, use(place))
    }
    const type = id[0].toUpperCase() + id.slice(1)
    add(requestBody?.content, `${type}Body`, 'body')
    for (const [status, response] of Object.entries(responses)) {
      add(
        schemas.resolve(response).content,
        `${type}${status === '200' ? 'Response' : `Error${status}`}`,
        `answer ${status}`,
      )
    }
  }
  for (const { id, name, message, domain } of events) {
    const href = `#${encodeURIComponent(id)}`
    models.add(message.payload, eventSchemas, eventModelName(name), {
      text: name,
      place: 'payload',
      href,
      isOwn: domain === 'system',
    })
  }
  return models
}

/** The name under which a document holds the schema. */
function componentName({ $ref }) {
  return /^#\/components\/schemas\/([\w.-]+)$/.exec($ref ?? '')?.[1]
}

/** As in the typed client: `user.created` is `UserCreatedEvent`. */
function eventModelName(event) {
  const words = event.split(/[^A-Za-z0-9]+/).filter(Boolean)
  return `${words.map((word) => word[0].toUpperCase() + word.slice(1)).join('')}Event`
}
