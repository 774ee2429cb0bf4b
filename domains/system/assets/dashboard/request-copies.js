/** What can be copied of a request: a command and a test that repeat it. */
import { queryText } from './process.js'
import { literal, quoted, shellWord } from './source-text.js'

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
/** Characters of a title. */
const TITLE_MAX = 100

/** Stands where a secret stood. */
const SECRET = '[secret]'

/**
 * What a repeated request sends, as far as the history keeps it.
 * @returns {{ method: string, path: string, body: unknown, type: string | null, headers: Record<string, string>, lacks: string }} `path` with
 *   its query; `body` of JSON is parsed, another one is a text, and undefined where there was none or it is not kept whole; `headers` are those
 *   that held secrets; `lacks` says what is not kept
 */
export function repeatOf({ method, path, parts }) {
  const handler = parts.find(({ type, kind }) => type === 'work' && kind === 'request')
  const { query, body, withheld = [] } = handler ?? {}
  const isWhole = body !== undefined && body.bytes === undefined && body.text !== ''
  const repeat = {
    method,
    path: path + queryOf(query),
    ...(isWhole ? bodyOf(body) : { body: body === undefined ? undefined : CUT, type: body?.type ?? null }),
    headers: Object.fromEntries(withheld.map((name) => [name, SECRET])),
  }
  const isSecret = missingOf(repeat).some(({ isBody }) => !isBody)
  const isLost = repeat.body === CUT || (!isWhole && WITH_BODY.has(method))
  const lacks = [
    ...(isSecret ? [`Its secrets were not kept: write them instead of ${SECRET}`] : []),
    ...(isLost ? ['Its body was not kept'] : []),
  ].join('. ')
  return { ...repeat, lacks }
}

/** Stands for a body that came and is not kept whole. */
const CUT = Symbol('cut')
/** In a path, as the history keeps it, and in a query. */
const IN_ADDRESS = new RegExp(`${SECRET.replace(/[[\]]/g, '\\$&')}|${encodeURIComponent(SECRET)}`, 'g')

/**
 * What somebody has to write before it can be sent: each place where a secret stood, and a body that is not kept.
 * @returns {{ name: string, isBody?: boolean, fill: (repeat: any, value: string) => any }[]}
 */
export function missingOf(repeat) {
  const { path, body, headers } = repeat
  /** @type {ReturnType<typeof missingOf>} */
  const missing = Object.entries(headers)
    .filter(([, value]) => value === SECRET)
    .map(([name]) => ({
      name,
      fill: (given, value) => ({ ...given, headers: { ...given.headers, [name]: value } }),
    }))
  const [before] = path.split('?')
  for (const { 0: found, index: at } of path.matchAll(IN_ADDRESS)) {
    const parameter = at < before.length ? 'path' : /[?&]([^=&]*)=[^&]*$/.exec(path.slice(0, at))?.[1]
    // From the end to the beginning, so that places before it stay where they are.
    missing.unshift({
      name: parameter === 'path' ? 'path' : `query ${parameter ?? ''}`,
      fill: (given, value) => ({
        ...given,
        path: given.path.slice(0, at) + encodeURIComponent(value) + given.path.slice(at + found.length),
      }),
    })
  }
  if (body === CUT) missing.push({ name: 'body', isBody: true, fill: (given, value) => ({ ...given, body: value }) })
  else
    for (const place of placesIn(body, []))
      missing.push({
        name: ['body', ...place].join('.'),
        fill: (given, value) => ({ ...given, body: replacedAt(given.body, place, value) }),
      })
  return missing
}

/** Where in a body a secret stood: the names that lead there. */
function placesIn(value, at) {
  if (typeof value === 'string') return value.includes(SECRET) ? [at] : []
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, each]) => placesIn(each, [...at, name]))
}

/** @param {string[]} at */
function replacedAt(value, at, text) {
  const [name, ...rest] = at
  if (name === undefined) return value.replaceAll(SECRET, () => text)
  if (Array.isArray(value)) return value.map((each, n) => (String(n) === name ? replacedAt(each, rest, text) : each))
  return { ...value, [name]: replacedAt(value[name], rest, text) }
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
  return typeof parsed === 'object' && parsed !== null ? queryText(parsed) : ''
}

/** A command of a POSIX shell. @param repeat in which nothing is missing */
export function curlOf({ method, path, body, type, headers }, origin) {
  const how = method === 'GET' ? [] : method === 'HEAD' ? ['--head'] : ['-X', method]
  const parts = ['curl', ...how, shellWord(origin + path)]
  for (const [name, value] of Object.entries(headers)) parts.push('-H', shellWord(`${name}: ${value}`))
  if (body !== undefined) {
    if (type !== null) parts.push('-H', shellWord(`content-type: ${type}`))
    parts.push('--data-raw', shellWord(textOf(body)))
  }
  return parts.join(' ')
}

/** A body as it is sent. */
export const textOf = (body) => (typeof body === 'string' ? body : JSON.stringify(body))

/**
 * A test that boots the domains, and sends the request once more. It fails while the request fails as it did.
 * @param {string} testing what tests of the project import
 */
export function testOf(request, testing) {
  const { method, path, body: kept, type, headers, lacks } = repeatOf(request)
  const body = kept === CUT ? undefined : kept
  const { status, error, route } = request
  const isBroken = status === null || status === 0 || status >= 500
  const expected = isBroken ? 'does not fail' : `answers ${status}`
  const lines = [
    "import assert from 'node:assert/strict'",
    "import { test } from 'node:test'",
    `import { boot } from '${testing}'`,
    '',
    `test(${quoted(`${method} ${route === '' ? path : route} ${expected}`.slice(0, TITLE_MAX))}, async (t) => {`,
    '  const app = await boot(t)',
  ]
  if (lacks !== '') lines.push(`  // ${lacks}.`)
  lines.push(`  const answer = await app.request(${quoted(method)}, ${quoted(path)}${optionsOf(body, type, headers)})`)
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

function optionsOf(body, type, withheld) {
  const headers = typeof body === 'string' ? { 'content-type': type, ...withheld } : withheld
  const hasHeaders = Object.keys(headers).length > 0
  if (body === undefined && !hasHeaders) return ''
  return `, ${literal({ ...(body === undefined ? {} : { body }), ...(hasHeaders ? { headers } : {}) }, '  ')}`
}

const comment = (text) => text.replaceAll(/\s+/g, ' ').slice(0, 200)
