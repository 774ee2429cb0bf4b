import { codeBlock } from './answer.js'
import { applicationOrigin } from './application.js'
import { successOf } from './catalogue.js'
import { html, nothing } from './lit-html.js'
import { copyButton } from './parts.js'
import { formFields, queryText } from './process.js'
import { FORM, filledRequest, sentType, UPLOAD, WITHOUT_BODY } from './request.js'
import { literal, quoted, Source, shellWord } from './source-text.js'

/** Stands for a token that was entered: it is copied, and not shown. */
const HIDDEN_TOKEN = '••••••••'
/** The kind of sample that was looked at last, for all operations. */
let wanted = 'curl'

/** Samples of a request as it is filled in. */
export function samplesView(operation, input, page, draw) {
  const made = (token) => {
    const origin = operation.servers === undefined ? applicationOrigin() : location.origin
    return samplesOf(operation, input, { schemas: page.schemas, origin, token })
  }
  const samples = made(page.token() === '' ? 'TOKEN' : HIDDEN_TOKEN)
  const shown = chosen(samples)
  const choose = (name) => {
    wanted = name
    draw()
  }
  const button = ({ name }) => html`
    <button class="quiet" type="button" aria-pressed=${String(name === shown.name)} @click=${() => choose(name)}>${name}</button>`
  return html`
    <div class="samples">
      <div class="sample-line">
        <div class="sample-names" role="group" aria-label="Samples">${samples.map(button)}</div>
        ${copyButton(() => chosen(made(page.token() || 'TOKEN')).text, 'the sample')}
      </div>
      <div class="sample-code">${codeBlock(shown.text.trimEnd(), shown.language)}</div>
      ${shown.name === 'client' ? clientNote(operation) : nothing}
    </div>`
}

function chosen(samples) {
  return samples.find(({ name }) => name === wanted) ?? samples[0]
}

function clientNote({ path }) {
  const address = path.startsWith('/system/') ? '/system/client.ts?system=true' : '/system/client.ts'
  return html`<p class="meta"><code>client.ts</code> is <a href=${address}>${address}</a></p>`
}

const JSON_TYPE = 'application/json'

/**
 * How to send what is filled in from elsewhere: `{ name, language, text }` for a shell, for a page, and for the typed client.
 * @param operation with what it is, its method and its path
 * @param input as `RequestInputs` reads it
 * @param {{ schemas: object, origin: string, token: string }} context `token`: what stands where the token belongs
 */
export function samplesOf(operation, input, { schemas, origin, token }) {
  const request = filledRequest(operation, input, schemas)
  const url = origin + request.path + queryText(request.query)
  const headers = { ...request.headers, ...(operation.needsToken ? { authorization: `Bearer ${token}` } : {}) }
  // The client makes a key for each call by itself.
  const ownKey = input.values.get('header:Idempotency-Key')
  const facts = { operation, request, url, headers, origin, token, ownKey }
  const client = { name: 'client', language: 'ts', text: clientSample(facts) }
  if (operation.kind === 'socket') return [{ name: 'WebSocket', language: 'js', text: socketSample(facts) }, client]
  const curl = { name: 'curl', language: 'sh', text: curlSample(facts) }
  if (operation.kind === 'stream') return [curl, streamSample(facts), client]
  return [curl, { name: 'fetch', language: 'js', text: fetchSample(facts) }, client]
}

function curlSample({ operation, request, url, headers }) {
  const { body } = request
  const method = operation.method
  const parts = [
    `curl ${operation.kind === 'stream' ? '-N' : '-i'}${method === 'GET' ? '' : ` -X ${method}`} ${shellWord(url)}`,
  ]
  const type = body === null || body.type === UPLOAD ? {} : contentType(body)
  for (const [name, value] of Object.entries({ ...headers, ...type }))
    parts.push(`-H ${shellWord(`${name}: ${value}`)}`)
  if (body !== null) parts.push(...curlBody(body))
  return `${parts.join(' \\\n  ')}\n`
}

function curlBody(body) {
  if (body.type === UPLOAD) {
    const fields = formFields(body.value).map(([name, value]) => `--form-string ${shellWord(`${name}=${value}`)}`)
    return [...fields, ...body.files.map((name) => `-F ${shellWord(`file=@${name}`)}`)]
  }
  if (body.type === FORM)
    return formFields(body.value).map(([name, value]) => `--data-urlencode ${shellWord(`${name}=${value}`)}`)
  return [`--data-raw ${shellWord(textOf(body))}`]
}

function fetchSample({ operation, request, url, headers }) {
  const { body } = request
  const init = operation.method === 'GET' ? {} : { method: operation.method }
  const all = { ...headers }
  const before = []
  if (body !== null && !WITHOUT_BODY.has(operation.method)) {
    // `fetch` sets the content type of a form by itself.
    if (body.type !== UPLOAD && body.type !== FORM) Object.assign(all, contentType(body))
    init.body = fetchBody(body, before)
  }
  if (Object.keys(all).length > 0) init.headers = all
  const { body: given, ...rest } = init
  const options = given === undefined ? rest : { ...rest, body: given }
  const isJson = Object.keys(successOf(operation.responses)?.[1].content ?? {})[0] === JSON_TYPE
  const start = `const response = await fetch(${quoted(url)}`
  const call = Object.keys(options).length === 0 ? `${start})` : `${start}, ${literal(options, '', start.length)})`
  const end = `console.log(response.status, await response.${isJson ? 'json' : 'text'}())`
  return `${[...before, call, end].join('\n')}\n`
}

function fetchBody(body, before) {
  if (body.type === FORM)
    return new Source(`new URLSearchParams(${literal(Object.fromEntries(formFields(body.value)), '  ')})`)
  if (body.type === UPLOAD) {
    before.push('const form = new FormData()')
    for (const [name, value] of formFields(body.value)) before.push(`form.append(${quoted(name)}, ${quoted(value)})`)
    for (const name of body.files) before.push(`form.append('file', new Blob(['the content']), ${quoted(name)})`)
    return new Source('form')
  }
  return new Source(body.text === undefined ? `JSON.stringify(${literal(body.value, '  ', 24)})` : quoted(body.text))
}

function streamSample({ operation, url, headers }) {
  if (!operation.needsToken) {
    const text = `const source = new EventSource(${quoted(url)})\nsource.onmessage = ({ data }) => console.log(JSON.parse(data))\n`
    return { name: 'EventSource', language: 'js', text }
  }
  const text = `// An EventSource of a browser sends no token.
const response = await fetch(${quoted(url)}, ${literal({ headers })})
for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text)
`
  return { name: 'fetch', language: 'js', text }
}

function socketSample({ operation, url, token }) {
  const protocols = operation.needsToken ? `, ${literal(['bearer', token])}` : ''
  return `const socket = new WebSocket(${quoted(url.replace(/^http/, 'ws'))}${protocols})
socket.onmessage = ({ data }) => console.log(data)
socket.onopen = () => socket.send('hello')
`
}

/** For the file that `/system/client.ts` gives. */
function clientSample({ operation, request, origin, token, ownKey }) {
  const options = operation.needsToken ? { baseUrl: origin, token } : { baseUrl: origin }
  const head = `import { Client } from './client.ts'\n\nconst client = new Client(${literal(options)})\n`
  const input = clientInput(operation, request)
  const start = `client.${operation.id}(`
  const given = Object.keys(input).length === 0 && !ownKey ? '' : literal(input, '', start.length + 22)
  const call = `${start}${given}${ownKey ? `, ${literal({ idempotencyKey: ownKey })}` : ''})`
  if (operation.kind === 'stream') return `${head}for await (const frame of ${call}) console.log(frame)\n`
  if (operation.kind === 'socket') {
    const talk = `channel.send('hello')\nfor await (const message of channel) console.log(message)\n`
    return `${head}const channel = await ${call}\n${talk}`
  }
  return `${head}const answer = await ${call}\nconsole.log(answer)\n`
}

function clientInput(operation, { params, query, body }) {
  const input = {}
  if (Object.keys(params).length > 0) input.params = params
  if (Object.keys(query).length > 0) input.query = query
  if (body !== null && operation.kind === 'http') Object.assign(input, clientBody(operation, body))
  return input
}

function clientBody(operation, body) {
  const { content } = operation.requestBody
  const isAny = content['application/octet-stream'] !== undefined || content['*/*'] !== undefined
  if (body.type === UPLOAD || (body.type === FORM && !isAny)) {
    const file = (name) => ({ name, content: 'the content' })
    const files =
      body.files.length === 0 ? {} : { file: body.files.length === 1 ? file(body.files[0]) : body.files.map(file) }
    return { body: body.value ?? {}, files }
  }
  if (body.type === FORM) {
    return { body: new Source(`new URLSearchParams(${literal(Object.fromEntries(formFields(body.value)))})`) }
  }
  if (body.text === undefined) return { body: body.value }
  if (content['*/*'] !== undefined) return { body: body.text }
  return { body: new Source(`new TextEncoder().encode(${quoted(body.text)})`), contentType: body.type }
}

function contentType({ type }) {
  return { 'content-type': sentType(type) }
}

function textOf({ value, text }) {
  return text ?? JSON.stringify(value)
}
