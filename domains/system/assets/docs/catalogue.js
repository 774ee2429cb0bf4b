import { choicesOf, Models } from './schema.js'

/** The operations of the document, each with its method, its path, and what it is: `http`, `stream` or `socket`. */
export function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      path,
      method: method.toUpperCase(),
      kind: kindOf(operation.responses),
      needsToken: operation.security.some((way) => way.bearer !== undefined),
      lock: lockOf(operation.security),
    })),
  )
}

/** The answer of an operation that has succeeded. @returns {[status: string, response: any] | undefined} */
export const successOf = (responses) => Object.entries(responses).find(([status]) => /^2/.test(status))

/** How an operation wants to know who calls: undefined where it does not, or serves strangers, too. */
function lockOf(security) {
  const ways = security.flatMap((way) => Object.keys(way))
  if (ways.length === 0 || security.some((way) => Object.keys(way).length === 0)) return undefined
  return ways.map((way) => (way === 'bearer' ? 'token' : way)).join(' or ')
}

function kindOf(responses) {
  if (responses['101'] !== undefined) return 'socket'
  return responses['200']?.content?.['text/event-stream'] === undefined ? 'http' : 'stream'
}

/** The models of all operations, with where each is used. */
export function modelsOf(operations, schemas) {
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
        `${type}${/^2/.test(status) ? 'Response' : `Error${status}`}`,
        `answer ${status}`,
      )
    }
  }
  return models
}

/** The name under which a document holds the schema. */
function componentName({ $ref }) {
  return /^#\/components\/schemas\/([\w.-]+)$/.exec($ref ?? '')?.[1]
}

/** Fields below this depth are not searched. */
const DEPTH_MAX = 6

/** The fields of a schema with where they stand: `items.price`. */
export function fieldPaths(schema, schemas, path = '', above = []) {
  const target = schemas.resolve(schema)
  if (above.length > DEPTH_MAX || above.includes(target)) return []
  const inner = [...above, target]
  const parts = choicesOf(target)
  if (typeof target.items === 'object') parts.push(target.items)
  const own = Object.entries(target.properties ?? {}).flatMap(([name, property]) => {
    const place = path === '' ? name : `${path}.${name}`
    return [place, ...fieldPaths(property, schemas, place, inner)]
  })
  return [...own, ...parts.flatMap((part) => fieldPaths(part, schemas, path, inner))]
}

/** The fields of an operation by where they go: `query limit`, `body email`, `200 data.id`. What the runtime answers to all is left out. */
export function operationFields({ parameters = [], requestBody, responses }, schemas) {
  const inParameters = parameters.map(({ name, in: place }) => `${place} ${name}`)
  const inBody = fieldsOfContent(requestBody?.content, schemas).map((path) => `body ${path}`)
  const own = Object.entries(responses).filter(([, response]) => response.$ref === undefined)
  const inAnswers = own.flatMap(([status, { content }]) =>
    fieldsOfContent(content, schemas).map((path) => `${status} ${path}`),
  )
  return [...new Set([...inParameters, ...inBody, ...inAnswers])]
}

function fieldsOfContent(content, schemas) {
  const media = Object.values(content ?? {})[0]
  return media?.schema === undefined ? [] : fieldPaths(media.schema, schemas)
}
