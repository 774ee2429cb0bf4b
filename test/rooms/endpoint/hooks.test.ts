import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const HOOKED = fileURLToPath(new URL('../../fixtures/hooked', import.meta.url))
const INTERNAL = { success: false, error: 'Internal server error' }

const errorsOf = ({ logs }: Heddle) => logs.filter(({ level }) => level >= 50).map(({ msg }) => msg)

describe('hooks of routes', () => {
  const shared = shareService((owner) => startHeddle(owner, { domains: [HOOKED, SHIPPED], lanes: 1 }))
  const as = (customer: string, more: Record<string, string> = {}) => ({ headers: { 'x-customer': customer, ...more } })
  const get = (path: string, init: RequestInit = as('bob')) => shared().json(path, init)

  test('run from the application to the route, and back after the handler', async () => {
    const { status, headers, body } = await get('/shop/7')
    assert.equal(status, 200)
    assert.deepEqual(body.data, { customer: 'bob', basket: ['book'], id: '7' })
    assert.equal(headers.get('x-steps'), 'app,domain,plugin,route 7,plugin after,domain 200,app 200')
    // A plugin without hooks of its own, in a domain without any.
    assert.equal((await get('/greet')).headers.get('x-steps'), 'app,app 200')
  })

  test('of a guard that throws end the request before its input is read', async () => {
    const post = (init: RequestInit) => get('/shop/admin', { method: 'POST', body: '{"price":"x"}', ...init })
    const json = { 'content-type': 'application/json' }
    const stranger = await post({ headers: json })
    assert.deepEqual(
      [stranger.status, stranger.body],
      [401, { success: false, error: 'Who are you?', code: 'STRANGER' }],
    )
    assert.equal(stranger.headers.get('x-steps'), 'app,domain,plugin after,domain 401,app 401')
    assert.deepEqual((await post(as('bob', json))).body, { success: false, error: 'Admins only' })
    const malformed = await post(as('ada', json))
    assert.deepEqual([malformed.status, malformed.body.details[0].path], [422, 'price'])
    assert.match(malformed.headers.get('x-steps')!, /domain 422,app 422$/)
    assert.equal((await post({ ...as('ada', json), body: '{"price":1}' })).status, 200)
  })

  test('of a guard that answers end the request', async () => {
    const closed = await get('/shop/7', as('bob', { 'x-stop': 'app' }))
    assert.deepEqual([closed.status, closed.body.error], [400, 'Closed by the application'])
    const moved = await shared().fetch('/shop/7', { ...as('moved'), redirect: 'manual' })
    assert.deepEqual([moved.status, moved.headers.get('location')], [302, '/elsewhere'])
  })

  test('a guard that returns no object is a fault, and lets nobody in', async () => {
    const { status, body } = await get('/shop/7', as('odd'))
    assert.deepEqual([status, body], [500, INTERNAL])
    assert.ok(errorsOf(shared()).some((msg) => msg.includes('It returned true: return nothing to go on')))
  })

  test('an after hook may replace the answer', async () => {
    const { status, body } = await get('/shop/7', as('bob', { 'x-wrap': 'yes' }))
    assert.equal(status, 200)
    assert.equal(body.wrapped.data.customer, 'bob')
    const refused = await get('/shop/7', { headers: { 'x-wrap': 'yes' } })
    assert.deepEqual([refused.status, refused.body.wrapped.code], [401, 'STRANGER'])
  })

  test('an onError hook may turn an error into an answer, or into another error', async () => {
    const before = errorsOf(shared()).length
    const { status, headers, body } = await get('/shop/fail/Out of stock')
    assert.deepEqual([status, body], [409, { success: false, error: 'Out of stock', by: 'app' }])
    assert.match(headers.get('x-steps')!, /domain 409,app 409$/)
    const turned = await get('/shop/fail/Turned')
    assert.deepEqual([turned.status, turned.body.error], [418, 'A teapot'])
    assert.equal(errorsOf(shared()).length, before)
    // The status of an unknown error stays 500, and it is logged.
    const text = await get('/shop/fail/text')
    assert.deepEqual([text.status, text.body], [500, { success: false, error: 'by the plugin' }])
    const other = await get('/shop/fail/anything')
    assert.deepEqual([other.status, other.body], [500, INTERNAL])
    assert.deepEqual(errorsOf(shared()).slice(before), [
      '/shop/fail/:how failed: a text',
      '/shop/fail/:how failed: anything',
    ])
  })

  test('a hook that fails is logged with its place', async () => {
    assert.deepEqual((await get('/shop/7', as('broken'))).body, INTERNAL)
    const after = await get('/shop/7', as('bob', { 'x-wrap': 'throw' }))
    assert.deepEqual([after.status, after.body], [500, INTERNAL])
    const told = errorsOf(shared()).join('\n')
    assert.match(told, /\/shop\/:id in its before hook \(.*shop\/domain\.ts:\d+\) failed: The customers are gone/)
    assert.match(told, /\/shop\/:id in its after hook \(.*shop\/domain\.ts:\d+\) failed: The after hook is broken/)
  })

  test('a hook that does not end is answered with 504 and logged with its place', async () => {
    const { status, body } = await get('/shop/late')
    assert.deepEqual([status, body.error], [504, 'The handler did not answer in time'])
    await until(() => errorsOf(shared()).some((msg) => msg.startsWith('/shop/late')), 'the line')
    const line = errorsOf(shared()).find((msg) => msg.startsWith('/shop/late'))!
    assert.match(line, /^\/shop\/late in its guard \(.*plugins\/sell\.ts:\d+\) failed: It had not ended/)
    // A client that leaves is no fault of the hook.
    const gone = new AbortController()
    const left = get('/shop/7', { ...as('bob', { 'x-hang': 'app' }), signal: gone.signal })
    setTimeout(() => gone.abort(), 50)
    await assert.rejects(left)
    assert.equal((await get('/greet')).status, 200)
    assert.ok(!errorsOf(shared()).some((msg) => msg.includes('app.ts')))
  })

  test('guard streams, WebSockets, folders and plugins of the primary', async () => {
    for (const path of [
      '/shop/stream',
      '/shop/files/price-list.txt',
      '/shop/primary',
      '/shop/primary-files/price-list.txt',
    ])
      assert.equal((await get(path, {})).status, 401, path)
    const stream = await (await shared().fetch('/shop/stream', as('bob'))).text()
    assert.match(stream, /data: \{"customer":\{"name":"bob","isAdmin":false\},"basket":\["book"\]\}/)
    for (const path of ['/shop/files/price-list.txt', '/shop/primary-files/price-list.txt'])
      assert.equal(await (await shared().fetch(path, as('bob'))).text(), 'secret\n', path)
    const primary = await get('/shop/primary')
    assert.deepEqual([primary.body.data, primary.headers.get('x-steps')], ['bob', 'app,domain,domain 200,app 200'])
    assert.deepEqual((await get('/shop/primary-guarded')).body, INTERNAL)
    const told = errorsOf(shared()).find((msg) => msg.startsWith('/shop/primary-guarded'))
    assert.match(told!, / in its guard \(.*plugins\/sell-on-primary\.ts:\d+\) failed: The guard is broken/)
    const refused = await ask(shared().port, 'GET', '/shop/socket', HANDSHAKE)
    assert.deepEqual([refused.status, JSON.parse(refused.body.toString()).code], [401, 'STRANGER'])
  })

  test('of the application are not for the operators domain', async () => {
    const { status, headers } = await get('/system/status', { headers: { 'x-stop': 'app' } })
    assert.deepEqual([status, headers.get('x-steps')], [200, null])
  })

  test('what they make of an answer is stored for its Idempotency-Key', async () => {
    const sell = (id: string, key: string, wrap = 'yes') =>
      get(`/shop/sales/${id}`, { method: 'POST', ...as('bob', { 'idempotency-key': key, 'x-wrap': wrap }) })
    for (const id of ['committed', 'plain', 'none']) {
      const first = await sell(id, id)
      const again = await sell(id, id)
      assert.deepEqual([again.status, again.body], [first.status, first.body], id)
      assert.ok('wrapped' in first.body, id)
      assert.equal(again.headers.get('idempotency-replayed'), 'true', id)
    }
    const failed = await sell('plain', 'failed', 'throw')
    const rerun = await sell('plain', 'failed', 'throw')
    assert.deepEqual([failed.status, rerun.status, rerun.headers.get('idempotency-replayed')], [500, 500, null])
  })

  test('show what they throw in the API documents', async () => {
    const { paths } = (await get('/system/openapi.json')).body
    const { responses } = paths['/shop/admin'].post
    assert.match(responses['401'].description, /^The request is from a stranger\./)
    assert.match(responses['403'].description, /^Admins only\./)
    assert.match(paths['/shop/primary'].get.responses['401'].description, /from a stranger/)
    assert.equal(paths['/greet'].get.responses['401'], undefined)
  })
})

test('hooks are reloaded with the lanes', { timeout: 60_000 }, async (t) => {
  const hook = (by: string) =>
    `export default ({ http }) => http.after((answer, context) => context.setHeader('x-by', '${by}'))`
  const folder = await folderOf(t, {
    'app.ts': hook('app'),
    'a/plugins/show.ts':
      "export default class Show { constructor({ http }) { http.addEndpoint('/a', 'GET', () => ({})) } }",
  })
  const heddle = await startHeddle(t, { domains: [folder], lanes: 1 })
  const by = async () => (await heddle.json('/a')).headers.get('x-by')
  assert.equal(await by(), 'app')
  await writeFile(join(folder, 'app.ts'), hook('newer app'))
  heddle.process.kill('SIGHUP')
  await until(async () => (await by()) === 'newer app', 'the new hook')
})

test('plugins whose domain.ts does not boot are dead', { timeout: 60_000 }, async (t) => {
  const plugin = (path: string) =>
    `export default class Show { constructor({ http }) { http.addEndpoint('${path}', 'GET', () => ({ path: '${path}' })) } }`
  const folder = await folderOf(t, {
    'a/domain.ts': "export default () => { throw new Error('No key') }",
    'a/plugins/show.ts': plugin('/a'),
    'b/domain.ts': 'export default class Shop {}',
    'b/plugins/show.ts': plugin('/b'),
    'c/domain.ts': "export default ({ http }) => http.addEndpoint('/c', 'GET', () => ({}))",
    'c/plugins/show.ts': plugin('/c'),
    'd/plugins/show.ts': plugin('/d'),
  })
  const heddle = await startHeddle(t, { domains: [folder, SHIPPED], lanes: 1 })
  const { plugins } = (await heddle.json('/system/status')).body
  assert.equal(plugins['a.domain'].status, 'DEAD')
  assert.match(plugins['a.domain'].error, /No key/)
  assert.match(plugins['a.Show'].error, /a\/domain\.ts did not boot/)
  assert.match(plugins['b.domain'].error, /must have a function as its default export/)
  assert.match(plugins['c.domain'].error, /domain\.ts registers hooks alone/)
  for (const path of ['/a', '/b', '/c']) assert.equal((await heddle.json(path)).status, 404, path)
  assert.equal((await heddle.json('/d')).status, 200)
})
