const FORM = 'application/x-www-form-urlencoded'
const UPLOAD = 'multipart/form-data'

/**
 * What was filled in for an operation, typed by its schemas; what is required and missing is an example or a value of the right type.
 * @param schemas resolves the references of the document
 * @returns `params` by the names of the route, `query`, `headers`, and `body`: its type, and its value or text
 */
export function filledRequest(operation, { values = new Map(), type, body = '', files = [] }, schemas) {
  const { parameters = [], requestBody } = operation
  const fill = (parameter) => valueIn(parameter, values.get(`${parameter.in}:${parameter.name}`) ?? '', schemas)
  const inPath = parameters.filter(({ in: place }) => place === 'path')
  const keys = keysOf(operation['x-route'] ?? '')
  const filled = { params: {}, query: {}, headers: {}, path: operation.path, body: null }
  inPath.forEach((parameter, index) => {
    const value = fill(parameter) ?? ''
    filled.params[keys[index] ?? parameter.name] = value
    const text = encodeURIComponent(String(value))
    filled.path = filled.path.replace(`{${parameter.name}}`, keys[index] === '*' ? text.replaceAll('%2F', '/') : text)
  })
  for (const parameter of parameters) {
    const value = fill(parameter)
    if (value === undefined) continue
    if (parameter.in === 'header') filled.headers[parameter.name.toLowerCase()] = value
    else if (parameter.in === 'query' && isFree(parameter)) Object.assign(filled.query, fieldsOf(value))
    else if (parameter.in === 'query') filled.query[parameter.name] = value
  }
  if (requestBody !== undefined) filled.body = bodyOf(requestBody, { type, body, files }, schemas)
  return filled
}

/** The query of a path, with its question mark; empty for none. */
export function queryText(query) {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) search.append(name, each)
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

/** The keys of a route's parameters: `/pairs/:x/*` has `x` and `*`. */
function keysOf(route) {
  return route
    .split('/')
    .filter((segment) => segment.startsWith(':') || segment === '*')
    .map((segment) => segment.replace(/^:/, ''))
}

/** A query whose names are not known: `a=1&b=2`. */
export function isFree({ in: place, schema }) {
  return place === 'query' && schema?.type === 'object'
}

export function fieldsOf(text) {
  return Object.fromEntries(new URLSearchParams(text))
}

/** Undefined for a parameter that may be left out, and is. */
function valueIn({ name, required, schema = {}, example }, text, schemas) {
  const target = schemas.resolve(schema)
  if (text === '') {
    if (!required) return undefined
    return example ?? placeholderOf(schema, schemas, name)
  }
  if (target.type === 'array') return text.split('\n').filter((line) => line !== '')
  return typed(text, target)
}

/** A text that was typed, as a value of the type that the schema asks for, where it is one. */
function typed(text, { type, enum: choices }) {
  const types = [type].flat()
  const isNumber = types.includes('integer') || types.includes('number')
  if (isNumber && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (types.includes('boolean') && /^(true|false)$/.test(text)) return text === 'true'
  return choices?.find((choice) => String(choice) === text) ?? text
}

function bodyOf({ required, content }, { type = Object.keys(content)[0], body, files }, schemas) {
  const { schema, example } = content[type] ?? {}
  const isForm = type === FORM || type === UPLOAD
  const names = files.map(({ name }) => name)
  if (body.trim() === '') {
    if (!required && names.length === 0 && !isOpaque(content, schemas)) return null
    const value = example ?? (schema === undefined ? undefined : placeholderOf(schema, schemas, 'text'))
    return isForm || type === 'application/json' ? { type, value: value ?? {}, files: names } : null
  }
  if (!isForm && type !== 'application/json') return { type, text: body, files: names }
  try {
    return { type, value: JSON.parse(body), files: names }
  } catch {
    // It is sent as it is, and the service says what is wrong with it.
    return { type, text: body, files: names }
  }
}

/** A schema asks for something, and does not say what. */
function isOpaque(content, schemas) {
  const { schema } = content['application/json'] ?? {}
  if (schema === undefined || content['application/octet-stream'] !== undefined) return false
  return Object.keys(schemas.resolve(schema)).every((keyword) => keyword === 'description')
}

/** A value of the type that a schema asks for; whether it is accepted nobody knows. */
export function placeholderOf(schema, schemas, name, depth = 0) {
  const target = schemas.resolve(schema)
  if (target.examples?.length > 0) return target.examples[0]
  if (target.default !== undefined) return target.default
  if (target.const !== undefined) return target.const
  if (target.enum) return target.enum[0]
  const choice = target.anyOf ?? target.oneOf
  if (choice) return placeholderOf(choice[0], schemas, name, depth + 1)
  if (target.allOf)
    return Object.assign({}, ...target.allOf.map((part) => placeholderOf(part, schemas, name, depth + 1)))
  const type = [target.type].flat()[0]
  if (type === 'integer' || type === 'number') return target.minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'array') return arrayOf(target, schemas, name, depth)
  if (type === 'object' || target.properties) return objectOf(target, schemas, depth)
  return name
}

function arrayOf({ prefixItems, items, minItems = 0 }, schemas, name, depth) {
  if (prefixItems) return prefixItems.map((item) => placeholderOf(item, schemas, name, depth + 1))
  return minItems > 0 && depth < 16 ? [placeholderOf(items, schemas, name, depth + 1)] : []
}

function objectOf({ properties = {}, required = [] }, schemas, depth) {
  if (depth > 16) return {}
  const wanted = Object.entries(properties).filter(([name]) => required.includes(name))
  return Object.fromEntries(wanted.map(([name, schema]) => [name, placeholderOf(schema, schemas, name, depth + 1)]))
}
