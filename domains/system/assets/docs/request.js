import { html, nothing } from './lit-html.js'
import { formFields, queryText } from './process.js'

/** Methods that a browser sends no body with. */
export const WITHOUT_BODY = new Set(['GET', 'HEAD'])

/** The fields in which an operation's request is filled in. Those of a parameter have the name `in:name`. */
export function inputsOf(operation) {
  return [
    (operation.parameters ?? []).map((parameter) => parameterField(operation.id, parameter)),
    bodyFields(operation),
  ]
}

/**
 * What was filled in.
 * @param {HTMLFormElement | null} form null: nothing yet
 * @returns {{ values: Map<string, any>, type?: string, body?: string, files?: File[] }} `values` by `in:name`
 */
export function readInputs(form) {
  if (form === null) return { values: new Map() }
  const values = new Map(new FormData(form))
  const body = form.querySelector('.body-text')
  if (body === null) return { values }
  const { files } = /** @type {HTMLInputElement} */ (form.querySelector('input[type="file"]'))
  return { values, type: String(values.get('type')), body: String(values.get('body')), files: [...files] }
}

function parameterField(operationId, { name, in: place, required, schema = /** @type {any} */ ({}), example }) {
  const id = `${operationId}-${place}-${name}`
  const key = `${place}:${name}`
  const choices = schema.enum ?? (schema.type === 'boolean' ? [true, false] : null)
  const hint = hintOf({ name, in: place, required, schema, example })
  const isNumber = schema.type === 'integer' || schema.type === 'number'
  const select = () => html`
    <select id=${id} name=${key}>
      ${required ? nothing : html`<option value="">—</option>`}${choices.map((choice) => html`<option value=${choice}>${choice}</option>`)}
    </select>`
  const list = () => html`
    <textarea id=${id} name=${key} placeholder=${hint} spellcheck="false" autocomplete="off" rows="2" title="One value per line"></textarea>`
  const text = () => html`
    <input id=${id} name=${key} placeholder=${hint} spellcheck="false" autocomplete="off" type="text" inputmode=${isNumber ? 'decimal' : nothing}>`
  const input = choices !== null ? select() : schema.type === 'array' ? list() : text()
  return html`
    <div class="field"><label for=${id}><code>${name}</code>${required ? html`<span class="required">required</span>` : nothing}</label>${input}</div>`
}

function hintOf({ name, in: place, required, schema, example }) {
  if (isFree({ in: place, schema })) return 'a=1&b=2'
  if (required && name === 'Idempotency-Key') return 'a new one for each request'
  return required || schema.default === undefined ? String(example ?? '') : `default ${JSON.stringify(schema.default)}`
}

function bodyFields({ id, method, requestBody }) {
  if (requestBody === undefined) return nothing
  if (WITHOUT_BODY.has(method)) return html`<p class="about">A browser sends no body with this method.</p>`
  const { content } = requestBody
  const types = Object.keys(content)
  const { example } = content[types[0]]
  const text = example === undefined ? '' : JSON.stringify(example, null, 2)
  const choose = ({ target }) => {
    target.form.querySelector('.files').hidden = target.value !== UPLOAD
  }
  return html`
    <div class="field" ?hidden=${types.length < 2}>
      <label for=${`${id}-type`}>Body as</label>
      <select id=${`${id}-type`} name="type" @change=${choose}>${types.map((type) => html`<option value=${type}>${type}</option>`)}</select>
    </div>
    <div class="field tall">
      <label for=${`${id}-body`}>Body</label>
      <textarea class="body-text" id=${`${id}-body`} name="body" rows=${rowsOf(text)} spellcheck="false" .value=${text}></textarea>
    </div>
    <div class="field files" ?hidden=${types[0] !== UPLOAD}>
      <label for=${`${id}-files`}>Files, as <code>file</code></label><input id=${`${id}-files`} type="file" multiple>
    </div>`
}

/** Lines for a text that is edited. */
export const rowsOf = (text) => Math.min(16, Math.max(3, text.split('\n').length + 1))

/** A request that may be carried out once only has a key of its own, if nobody gives it one. */
const KEY = 'Idempotency-Key'
export const FORM = 'application/x-www-form-urlencoded'
export const UPLOAD = 'multipart/form-data'

/**
 * The arguments of `fetch` for a filled-in form.
 * @param operation method, path and parameters
 * @param {{ values: Map<string, string>, type?: string, body?: string, files?: File[], token?: string }} input `values` by `in:name`
 * A required query parameter may be missing, so that the service's response to that can be seen.
 * @throws Error that says which path parameter is missing, or what is wrong with the body
 */
export function requestOf(operation, { values, type, body = '', files = [], token = '' }) {
  const fill = ({ name, in: place, schema, required }) => {
    const value = values.get(`${place}:${name}`) ?? ''
    if (place === 'path' && value === '' && name !== 'rest') throw new Error(`The path needs a value for ${name}`)
    if (place === 'header' && value === '' && required && name === KEY) return newKey()
    if (place === 'query' && schema?.type === 'array') return linesOf(value)
    return place === 'path' || value !== '' ? value : undefined
  }
  const { path, query, headers } = placed(operation, fill, '%2F')
  if (operation.needsToken && token !== '') headers.authorization = `Bearer ${token}`
  const init = { method: operation.method, headers }
  if (type !== undefined && (body.trim() !== '' || files.length > 0)) {
    init.body = bodyOf(type, body, files)
    // The browser sets the content type of a form, with its boundary.
    if (type !== UPLOAD) headers['content-type'] = sentType(type)
  }
  return { url: path + queryText(query), init }
}

/**
 * Puts values where the parameters of an operation belong.
 * @param fill undefined: it is left out
 * @param slash how one is written in the rest of a path
 * @returns {{ path: string, params: Record<string, any>, query: Record<string, any>, headers: Record<string, any> }} `params` by the names of the route
 */
function placed({ path, parameters = [], 'x-route': route = '' }, fill, slash) {
  const keys = keysOf(route)
  const found = { path, params: {}, query: {}, headers: {} }
  for (const parameter of parameters) {
    const { name, in: place } = parameter
    const value = fill(parameter)
    if (place === 'path') {
      const key = keys.shift() ?? name
      found.params[key] = value
      const text = encodeURIComponent(String(value))
      found.path = found.path.replace(`{${name}}`, key === '*' ? text.replaceAll('%2F', slash) : text)
    } else if (value === undefined) continue
    else if (place === 'header') found.headers[name.toLowerCase()] = value
    else if (isFree(parameter)) Object.assign(found.query, fieldsOf(value))
    else found.query[name] = value
  }
  return found
}

/** A list has one value per line. */
const linesOf = (text) => text.split('\n').filter((line) => line !== '')

function bodyOf(type, text, files) {
  if (type !== FORM && type !== UPLOAD) return text
  const fields = text.trim() === '' ? {} : parseFields(text)
  const form = type === FORM ? new URLSearchParams() : new FormData()
  for (const [name, value] of formFields(fields)) form.append(name, value)
  if (type === UPLOAD) for (const file of files) form.append('file', file)
  return form
}

/** A body of any type is sent as text. */
export const sentType = (type) => (type === '*/*' ? 'text/plain' : type)

function parseFields(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error('Write the fields of the form as a JSON object')
  }
}

/** Not `crypto.randomUUID`, which pages without TLS do not have. */
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * What was filled in for an operation, typed by its schemas; what is required and missing is an example or a value of the right type.
 * @param schemas resolves the references of the document
 * @returns `params` by the names of the route, `query`, `headers`, and `body`: its type, and its value or text
 */
export function filledRequest(operation, { values = new Map(), type, body = '', files = [] }, schemas) {
  const fill = (parameter) => {
    const value = valueIn(parameter, values.get(`${parameter.in}:${parameter.name}`) ?? '', schemas)
    return parameter.in === 'path' ? (value ?? '') : value
  }
  const { requestBody } = operation
  const filled = requestBody === undefined ? null : filledBody(requestBody, { type, body, files }, schemas)
  return { ...placed(operation, fill, '/'), body: filled }
}

/** The keys of a route's parameters: `/pairs/:x/*` has `x` and `*`. */
function keysOf(route) {
  return route
    .split('/')
    .filter((segment) => segment.startsWith(':') || segment === '*')
    .map((segment) => segment.replace(/^:/, ''))
}

/** A query whose names are not known: `a=1&b=2`. */
function isFree({ in: place, schema }) {
  return place === 'query' && schema?.type === 'object'
}

function fieldsOf(text) {
  return Object.fromEntries(new URLSearchParams(text))
}

/** Undefined for a parameter that may be left out, and is. */
function valueIn({ name, required, schema = {}, example }, text, schemas) {
  const target = schemas.resolve(schema)
  if (text === '') {
    if (!required) return undefined
    return example ?? placeholderOf(schema, schemas, name)
  }
  if (target.type === 'array') return linesOf(text)
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

function filledBody({ required, content }, { type = Object.keys(content)[0], body, files }, schemas) {
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
