/** Fields below this depth are not searched. */
const DEPTH_MAX = 6

/** The fields of a schema with where they stand: `items.price`. */
export function fieldPaths(schema, schemas, path = '', above = []) {
  const target = schemas.resolve(schema)
  if (above.length > DEPTH_MAX || above.includes(target)) return []
  const inner = [...above, target]
  const parts = [target.allOf, target.anyOf, target.oneOf].flatMap((list) => list ?? [])
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
