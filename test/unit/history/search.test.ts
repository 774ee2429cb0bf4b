import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

// The code of the page is JavaScript without types.
const require = createRequire(import.meta.url)
const assets = '../../../domains/system/assets/dashboard/'
const { parseSearch, withStatus } = require(`${assets}request-search.js`)
const { byKind, LookedAt } = require(`${assets}request-source.js`)
const { editorUrl, placeIn } = require(`${assets}request-editor.js`)

const NOW_MS = new Date(2026, 4, 7, 12, 0, 0).getTime()
const parametersOf = (query: string) => parseSearch(query, NOW_MS).parameters
const hintsOf = (query: string) => parseSearch(query, NOW_MS).hints

test('words become filters, and what is left is one text', () => {
  assert.deepEqual(parametersOf('status:5xx plugin:users.* route:/orders since:10m >200ms "card refused" user:anna'), {
    status: '5xx',
    plugin: 'users.*',
    route: '/orders',
    since: String(NOW_MS - 600_000),
    min_ms: '200',
    text: 'card refused',
    user: 'anna',
  })
  assert.deepEqual(parametersOf('SELECT missing FROM "orders'), { text: 'SELECT missing FROM orders' })
  assert.deepEqual(parametersOf('>1.5s kind:job method:post'), { min_ms: '1500', kind: 'job', method: 'post' })
  assert.deepEqual(parametersOf('route:"/a b" TypeError: x'), { route: '/a b', text: 'TypeError: x' })
  assert.equal(parametersOf('since:09:15').since, String(new Date(2026, 4, 7, 9, 15).getTime()))
  assert.equal(parametersOf('since:13:00').since, String(new Date(2026, 4, 6, 13, 0).getTime()))
  assert.deepEqual(hintsOf('status:404 since:2h "user:" a'), [])
})

test('a word that is not known, or has no such value, is left out, with a hint that says what to write', () => {
  assert.match(hintsOf('statsu:500')[0], /no filter statsu: Did you mean status:500\? .*"statsu:500"/)
  assert.match(hintsOf('colour:red')[0], /no filter colour: Filters are status: method: route: plugin: user:/)
  assert.match(hintsOf('since:yesterday')[0], /is no time: write since:90s/)
  assert.match(hintsOf('status:bad')[0], /There is no status:bad/)
  assert.match(hintsOf('plugin:')[0], /such as plugin:users\.\*/)
  assert.deepEqual(parametersOf('statsu:500 since:yesterday status:bad plugin: text'), { text: 'text' })
})

test('an id of a request, a job, an event or a trace is known as such', () => {
  for (const id of ['req_9E3T5DxU6V8w_g', 'job_0196', 'evt_0196', '4bf92f3577b34da6a3ce929d0e0e4736'])
    assert.equal(parseSearch(` ${id} `).id, id)
  for (const text of ['orders', 'req_1 more', '4bf92f']) assert.equal(parseSearch(text).id, null)
})

test('the status of a search is changed without the rest of it', () => {
  assert.equal(withStatus('route:/orders status:5xx text', '4xx'), 'status:4xx route:/orders text')
  assert.equal(withStatus('status:5xx text', ''), 'text')
})

test('a failure stays until one of its kind was looked at, and comes back when it happens again', () => {
  const kept = new Map<string, string>()
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => kept.set(key, text),
  }
  const failure = (at_ms: number, error: string) => ({
    kind: 'request',
    method: 'GET',
    plugin: 'a.B',
    route: '/x',
    status: 500,
    error,
    at_ms,
  })
  const rows = [failure(3, 'no row 17'), failure(2, 'timeout'), failure(1, 'no row 4')]
  assert.deepEqual(
    byKind(rows).map(({ row, times }: { row: { error: string }; times: number }) => [row.error, times]),
    [
      ['no row 17', 2],
      ['timeout', 1],
    ],
  )
  new LookedAt(storage).add([rows[0]])
  const later = new LookedAt(storage)
  assert.deepEqual(
    rows.map((row) => later.has(row)),
    [true, false, true],
  )
  assert.equal(later.has(failure(4, 'no row 5')), false)
})

test('a place in a stack becomes an address of the editor', () => {
  const place = placeIn('    at Shop.place (domains/shop/plugins/place order.ts:15:11)', '/home/anna/shop')
  assert.equal(place.path, '/home/anna/shop/domains/shop/plugins/place order.ts')
  const own = placeIn('    at Shop.place (domains/shop/place.ts:15:11)', '/home/anna/my shop')
  assert.equal(
    editorUrl(own, 'vscode://file/{path}:{line}:{column}'),
    'vscode://file/home/anna/my%20shop/domains/shop/place.ts:15:11',
  )
  const absolute = placeIn('at file:///srv/a%20b/c.ts:3', '/x')
  assert.equal(editorUrl(absolute, 'idea://open?file=/{path}&line={line}'), 'idea://open?file=/srv/a%20b/c.ts&line=3')
  assert.equal(placeIn('at node:internal/process.js:1:2', '/x'), null)
})
