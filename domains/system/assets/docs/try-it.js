import { answerView, streamView } from './answer-view.js'
import { copyButton, el } from './dom.js'
import { curlOf, requestOf } from './request.js'

/** Methods that a browser sends no body with. */
const WITHOUT_BODY = new Set(['GET', 'HEAD'])

/** A form that sends the operation's request and shows the response. */
export function tryItForm(operation, page) {
  const values = new Map()
  const outcome = el('div.outcome', { 'aria-live': 'polite' })
  const body = bodyInput(operation)
  const send = el('button.primary', { type: 'submit' }, operation.isStream ? 'Listen' : 'Send')
  const stop = el('button.quiet', { type: 'button', hidden: true }, 'Stop')
  let running = null
  stop.addEventListener('click', () => running?.abort())

  const prepare = () => requestOf(operation, { values, ...body?.read(), token: page.token() })
  const curl = copyButton(() => {
    try {
      return curlOf(prepare(), location.origin)
    } catch (error) {
      return `# ${error.message}`
    }
  }, 'Copy as curl')

  const form = el(
    'form.try-it',
    { novalidate: true },
    ...(operation.parameters ?? []).map((parameter) => parameterInput(operation, parameter, values)),
    body?.element,
    el('div.actions', {}, send, stop, curl),
    outcome,
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    running?.abort()
    const abort = new AbortController()
    running = abort
    stop.hidden = false
    outcome.replaceChildren(el('p.meta', {}, operation.isStream ? 'Connecting …' : 'Waiting for the answer …'))
    try {
      if (operation.needsToken && page.token() === '') page.hintToken()
      const { url, init } = prepare()
      await exchange(outcome, url, { ...init, signal: abort.signal }, page)
    } catch (error) {
      if (!abort.signal.aborted) outcome.replaceChildren(el('p.fault', { role: 'alert' }, error.message))
      else if (running === abort && !operation.isStream) outcome.replaceChildren(el('p.meta', {}, 'Stopped'))
    } finally {
      if (running === abort) stop.hidden = true
    }
  })
  return form
}

async function exchange(outcome, url, init, page) {
  const startedMs = performance.now()
  const response = await fetch(url, init)
  const headMs = performance.now() - startedMs
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await streamView(outcome, response, headMs)
    return
  }
  const bytes = new Uint8Array(await response.arrayBuffer())
  outcome.replaceChildren(answerView(response, bytes, performance.now() - startedMs, page))
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
    const preset = required ? '' : schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`
    const attributes = {
      id: inputId,
      input: write,
      placeholder: preset || String(example ?? ''),
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
    { hidden: true },
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
