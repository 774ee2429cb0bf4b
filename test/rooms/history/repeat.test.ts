import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PageModules } from '../../support/page-modules.ts'

const { curlOf, missingOf, repeatOf, testOf } = new PageModules('dashboard').load('request-copies')

interface Missing {
  name: string
  fill: (repeat: object, value: string) => object
}

const ORIGIN = 'http://localhost:8000'
const request = (path: string, part: object) => ({
  method: 'POST',
  path,
  route: path,
  status: 201,
  error: null,
  parts: [{ type: 'work', kind: 'request', ...part }],
})
const json = (value: unknown) => ({ text: JSON.stringify(value), type: 'application/json' })

/** What is asked for, and the command when each was answered with its number. */
function askedFor(given: object): [string[], string] {
  const repeat = repeatOf(given)
  const missing: Missing[] = missingOf(repeat)
  const filled = missing.reduce((all, { fill }, n) => fill(all, `v'${n}`), repeat)
  return [missing.map(({ name }) => name), curlOf(filled, ORIGIN)]
}

test('each secret that was not kept is asked for, by where it stood', () => {
  const [names, curl] = askedFor(
    request('/reset/[secret]/now', {
      query: json({ page: '2', api_key: '[secret]', token: '[secret]' }),
      body: json({ user: 'ada', password: '[secret]', deep: [{ note: 'it is [secret], yes' }] }),
      withheld: ['authorization', 'cookie'],
    }),
  )
  assert.deepEqual(names, [
    'query token',
    'query api_key',
    'path',
    'authorization',
    'cookie',
    'body.password',
    'body.deep.0.note',
  ])
  assert.equal(
    curl,
    `curl -X POST '${ORIGIN}/reset/v'\\''2/now?page=2&api_key=v'\\''1&token=v'\\''0' -H 'authorization: v'\\''3' -H 'cookie: v'\\''4' ` +
      `-H 'content-type: application/json' --data-raw '{"user":"ada","password":"v'\\''5","deep":[{"note":"it is v'\\''6, yes"}]}'`,
  )
})

test('a body that is not kept is asked for as a whole, a form by what is missing in it, and where nothing is missing nobody is asked', () => {
  const [lost, whole] = askedFor(request('/upload', { body: { text: '', type: 'image/png', bytes: 9 } }))
  assert.deepEqual(lost, ['body'])
  assert.match(whole, /-H 'content-type: image\/png' --data-raw 'v'\\''0'$/)
  const [text] = askedFor(request('/note', { body: { text: 'user=ada&passcode=[secret]', type: 'text/plain' } }))
  assert.deepEqual(text, ['body'])
  const [none, plain] = askedFor(request('/orders', { body: json({ item: 'loom' }) }))
  assert.deepEqual(none, [])
  assert.ok(!plain.includes('secret'), plain)
  assert.deepEqual(askedFor(request('/orders/1/cancel', {})), [[], `curl -X POST '${ORIGIN}/orders/1/cancel'`])
})

test('what is copied as a test says what is missing', () => {
  const text: string = testOf(
    request('/login', { body: json({ password: '[secret]' }), withheld: ['authorization'] }),
    'x',
  )
  assert.match(text, /\/\/ Its secrets were not kept: write them instead of \[secret\]\./)
  assert.match(text, /headers: \{ authorization: '\[secret\]' \}/)
})
