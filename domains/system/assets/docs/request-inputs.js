import { el } from '/system/docs/dom.js'
import { isFree } from './filled-request.js'
import { requestOf } from './request.js'

/** Methods that a browser sends no body with. */
const WITHOUT_BODY = new Set(['GET', 'HEAD'])

/** The fields in which an operation's request is filled in. */
export class RequestInputs {
  elements
  #operation
  #values = new Map()
  #body

  constructor(operation) {
    this.#operation = operation
    this.#body = bodyInput(operation)
    this.elements = [
      ...(operation.parameters ?? []).map((parameter) => parameterInput(operation, parameter, this.#values)),
      this.#body?.element,
    ]
  }

  /** What was filled in: `values` by `in:name`, and the body. */
  read() {
    return { values: this.#values, ...this.#body?.read() }
  }

  /** @throws Error that says what is missing */
  request(token) {
    return requestOf(this.#operation, { ...this.read(), token })
  }
}

function parameterInput({ id }, { name, in: place, required, schema = {}, example }, values) {
  const inputId = `${id}-${place}-${name}`
  const key = `${place}:${name}`
  const write = (event) => values.set(key, event.target.value)
  const label = el('label', { for: inputId }, el('code', {}, name), required && el('span.required', {}, 'required'))
  const options = schema.enum ?? (schema.type === 'boolean' ? [true, false] : null)
  let input
  if (options !== null) {
    input = el('select', { id: inputId, change: write })
    if (!required) input.append(el('option', { value: '' }, '—'))
    input.append(...options.map((option) => el('option', { value: String(option) }, String(option))))
    values.set(key, required ? String(options[0]) : '')
  } else {
    const isNumber = schema.type === 'integer' || schema.type === 'number'
    const attributes = {
      id: inputId,
      input: write,
      placeholder: placeholderOf({ name, in: place, required, schema, example }),
      spellcheck: 'false',
      autocomplete: 'off',
    }
    input =
      schema.type === 'array'
        ? el('textarea', { ...attributes, rows: '2', title: 'One value per line' })
        : el('input', { ...attributes, type: 'text', inputmode: isNumber ? 'decimal' : undefined })
  }
  return el('div.field', {}, label, input)
}

function placeholderOf({ name, in: place, required, schema, example }) {
  if (isFree({ in: place, schema })) return 'a=1&b=2'
  if (required && name === 'Idempotency-Key') return 'a new one for each request'
  return required || schema.default === undefined ? String(example ?? '') : `default ${JSON.stringify(schema.default)}`
}

function bodyInput(operation) {
  if (operation.requestBody === undefined) return null
  if (WITHOUT_BODY.has(operation.method)) {
    return { element: el('p.about', {}, 'A browser sends no body with this method.'), read: () => ({}) }
  }
  const { content } = operation.requestBody
  const typeId = `${operation.id}-type`
  const bodyId = `${operation.id}-body`
  const fileId = `${operation.id}-files`
  const types = Object.keys(content)
  const select = el('select', { id: typeId }, ...types.map((type) => el('option', { value: type }, type)))
  const text = el('textarea.body-text', { id: bodyId, rows: '6', spellcheck: 'false' })
  const example = content[types[0]].example
  text.value = example === undefined ? '' : JSON.stringify(example, null, 2)
  text.rows = Math.min(16, Math.max(3, text.value.split('\n').length + 1))
  const files = el('input', { id: fileId, type: 'file', multiple: true })
  const fileField = el(
    'div.field',
    { hidden: types[0] !== 'multipart/form-data' },
    el('label', { for: fileId }, 'Files, as ', el('code', {}, 'file')),
    files,
  )
  select.addEventListener('change', () => {
    fileField.hidden = select.value !== 'multipart/form-data'
  })
  const element = el(
    'div.body-input',
    {},
    types.length > 1 && el('div.field', {}, el('label', { for: typeId }, 'Body as'), select),
    el('div.field.tall', {}, el('label', { for: bodyId }, 'Body'), text),
    fileField,
  )
  return { element, read: () => ({ type: select.value, body: text.value, files: [...files.files] }) }
}
