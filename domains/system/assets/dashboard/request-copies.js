/** What can be copied of a request: a command and a test that repeat it. It imports nothing, so that it can be tested without a page. */

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** Characters of a title. */
const TITLE_MAX = 100

/**
 * What a repeated request sends.
 * @returns {{ method: string, path: string, body: unknown, isBodyKnown: boolean }} `path` with its query, where that is kept
 */
export function repeatOf(request) {
  const { method, path, query, body } = request
  const isBodyKnown = body !== undefined && body !== null
  return { method, path: path + queryOf(query), body: isBodyKnown ? body : undefined, isBodyKnown }
}

/** Whether it may have had a body that is not kept. */
export const lacksBody = (request) => WITH_BODY.has(request.method) && !repeatOf(request).isBodyKnown

function queryOf(query) {
  if (query === undefined || query === null || query === '') return ''
  if (typeof query === 'string') return query.startsWith('?') ? query : `?${query}`
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const each of [value].flat()) parameters.append(name, typeof each === 'string' ? each : JSON.stringify(each))
  return parameters.size === 0 ? '' : `?${parameters}`
}

/** A command of a POSIX shell. */
export function curlOf(request, origin) {
  const { method, path, body, isBodyKnown } = repeatOf(request)
  const parts = [
    'curl',
    ...(method === 'GET' ? [] : method === 'HEAD' ? ['--head'] : ['-X', method]),
    quoted(origin + path),
  ]
  if (isBodyKnown) {
    const isText = typeof body === 'string'
    if (!isText) parts.push('-H', quoted('content-type: application/json'))
    parts.push('--data-raw', quoted(isText ? body : JSON.stringify(body)))
  }
  return parts.join(' ')
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * A test that boots the domains, and sends the request once more. It fails while the request fails as it did.
 * @param {string} testing what tests of the project import
 */
export function testOf(request, testing) {
  const { method, path, body, isBodyKnown } = repeatOf(request)
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
  if (lacksBody(request)) lines.push('  // Its body was not kept: add it here.')
  const options = isBodyKnown ? `, { body: ${code(body, '  ')} }` : ''
  lines.push(`  const answer = await app.request(${literal(method)}, ${literal(path)}${options})`)
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
