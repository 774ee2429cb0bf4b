/** What can be copied of a request: a command and a test that repeat it. It imports nothing, so that it can be tested without a page. */

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** Characters of a title. */
const TITLE_MAX = 100

/** Stands where a secret stood. */
const SECRET = '[secret]'

/**
 * What a repeated request sends, as far as the history keeps it.
 * @returns {{ method: string, path: string, body: unknown, type: string | null, lacks: string }} `path` with its query; `body` of JSON is
 *   parsed, another one is a text, and undefined where there was none or it is not kept whole; `lacks` says what is not kept
 */
export function repeatOf({ method, path, parts }) {
  const handler = parts.find(({ type, kind }) => type === 'work' && kind === 'request')
  const { query, body } = handler ?? {}
  const isWhole = body !== undefined && body.bytes === undefined && body.text !== ''
  const asked = queryOf(query)
  const isSecret = `${asked}${body?.text ?? ''}`.includes(SECRET) || asked.includes(encodeURIComponent(SECRET))
  const lacks = isSecret
    ? `Its secrets were not kept: write them instead of ${SECRET}`
    : !isWhole && WITH_BODY.has(method)
      ? 'Its body was not kept'
      : ''
  return { method, path: path + asked, ...(isWhole ? bodyOf(body) : { body: undefined, type: null }), lacks }
}

function bodyOf({ text, type = 'application/json' }) {
  if (/\bjson\b/.test(type)) {
    try {
      return { body: JSON.parse(text), type }
    } catch {
      // Sent as it came.
    }
  }
  return { body: text, type }
}

function queryOf(query) {
  const text = query?.bytes === undefined ? (query?.text ?? '') : ''
  let parsed
  try {
    parsed = JSON.parse(text)
  } catch {
    return text === '' || text.startsWith('?') ? text : `?${text}`
  }
  if (typeof parsed !== 'object' || parsed === null) return ''
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(parsed))
    for (const each of [value].flat()) parameters.append(name, typeof each === 'string' ? each : JSON.stringify(each))
  return parameters.size === 0 ? '' : `?${parameters}`
}

/** A command of a POSIX shell. */
export function curlOf(request, origin) {
  const { method, path, body, type } = repeatOf(request)
  const how = method === 'GET' ? [] : method === 'HEAD' ? ['--head'] : ['-X', method]
  const parts = ['curl', ...how, quoted(origin + path)]
  if (body !== undefined) parts.push('-H', quoted(`content-type: ${type}`), '--data-raw', quoted(textOf(body)))
  return parts.join(' ')
}

/** A body as it is sent. */
export const textOf = (body) => (typeof body === 'string' ? body : JSON.stringify(body))

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * A test that boots the domains, and sends the request once more. It fails while the request fails as it did.
 * @param {string} testing what tests of the project import
 */
export function testOf(request, testing) {
  const { method, path, body, type, lacks } = repeatOf(request)
  const { status, error, route } = request
  const isBroken = status === null || status === 0 || status >= 500
  const expected = isBroken ? 'does not fail' : `answers ${status}`
  const lines = [
    "import assert from 'node:assert/strict'",
    "import { test } from 'node:test'",
    `import { boot } from '${testing}'`,
    '',
    `test(${literal(`${method} ${route === '' ? path : route} ${expected}`.slice(0, TITLE_MAX))}, async (t) => {`,
    '  const app = await boot(t)',
  ]
  if (lacks !== '') lines.push(`  // ${lacks}.`)
  lines.push(`  const answer = await app.request(${literal(method)}, ${literal(path)}${optionsOf(body, type)})`)
  if (error !== null) lines.push(`  // ${comment(error)}`)
  lines.push(
    isBroken
      ? '  assert.ok(answer.status < 500, JSON.stringify(answer.body))'
      : `  assert.equal(answer.status, ${status}, JSON.stringify(answer.body))`,
    '  await app.idle()',
    '  assert.deepEqual((await app.deadLetters()).map(({ subscriber, error }) => [subscriber, error]), [])',
    '})',
    '',
  )
  return lines.join('\n')
}

function optionsOf(body, type) {
  if (body === undefined) return ''
  const headers = typeof body === 'string' ? `, headers: { 'content-type': ${literal(type)} }` : ''
  return `, { body: ${code(body, '  ')}${headers} }`
}

const comment = (text) => text.replaceAll(/\s+/g, ' ').slice(0, 200)
const literal = (text) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'").replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`

/** A value of JSON as source text. */
function code(value, indent) {
  if (typeof value === 'string') return literal(value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const isList = Array.isArray(value)
  const parts = isList
    ? value.map((each) => code(each, `${indent}  `))
    : Object.entries(value).map(([name, each]) => `${nameOf(name)}: ${code(each, `${indent}  `)}`)
  const [open, close] = isList ? ['[', ']'] : ['{ ', ' }']
  if (parts.length === 0) return isList ? '[]' : '{}'
  const line = open + parts.join(', ') + close
  if (line.length + indent.length <= 100 && !line.includes('\n')) return line
  return `${open.trim()}\n${parts.map((part) => `${indent}  ${part},\n`).join('')}${indent}${close.trim()}`
}

/** `__proto__: …` in a literal sets the prototype. */
const nameOf = (name) => (name === '__proto__' ? `['${name}']` : /^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name))
