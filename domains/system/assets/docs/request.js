import { fieldsOf, isFree } from './filled-request.js'

/** A request that may be carried out once only has a key of its own, if nobody gives it one. */
const KEY = 'Idempotency-Key'
const FORM = 'application/x-www-form-urlencoded'
const UPLOAD = 'multipart/form-data'

/**
 * The arguments of `fetch` for a filled-in form.
 * @param operation method, path and parameters
 * @param {{ values: Map<string, string>, type?: string, body?: string, files?: File[], token?: string }} input `values` by `in:name`
 * A required query parameter may be missing, so that the service's response to that can be seen.
 * @throws Error that says which path parameter is missing, or what is wrong with the body
 */
export function requestOf(operation, { values, type, body = '', files = [], token = '' }) {
  let path = operation.path
  const query = new URLSearchParams()
  const headers = {}
  for (const parameter of operation.parameters ?? []) {
    const { name, in: place, schema, required } = parameter
    const value = values.get(`${place}:${name}`) ?? ''
    if (place === 'path') {
      if (value === '' && name !== 'rest') throw new Error(`The path needs a value for ${name}`)
      path = path.replace(`{${name}}`, encodeURIComponent(value))
    } else if (place === 'header') {
      const text = value === '' && required && name === KEY ? newKey() : value
      if (text !== '') headers[name.toLowerCase()] = text
    } else if (isFree(parameter)) {
      for (const [each, text] of Object.entries(fieldsOf(value))) query.append(each, text)
    } else if (value !== '') {
      // A list has one value per line.
      const list = schema?.type === 'array' ? value.split('\n').filter((line) => line !== '') : [value]
      for (const item of list) query.append(name, item)
    }
  }
  const text = query.toString()
  if (operation.needsToken && token !== '') headers.authorization = `Bearer ${token}`
  const init = { method: operation.method, headers }
  if (type !== undefined && (body.trim() !== '' || files.length > 0)) {
    init.body = bodyOf(type, body, files)
    // The browser sets the content type of a form, with its boundary.
    if (type !== UPLOAD) headers['content-type'] = type === '*/*' ? 'text/plain' : type
  }
  return { url: text === '' ? path : `${path}?${text}`, init }
}

function bodyOf(type, text, files) {
  if (type !== FORM && type !== UPLOAD) return text
  const fields = text.trim() === '' ? {} : parseFields(text)
  const form = type === FORM ? new URLSearchParams() : new FormData()
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      form.append(name, typeof item === 'object' ? JSON.stringify(item) : String(item))
    }
  }
  if (type === UPLOAD) for (const file of files) form.append('file', file)
  return form
}

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
