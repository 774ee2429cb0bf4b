// An answer that is thrown is the failure envelope with its status, and undoes the transaction that it leaves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from '#heddle/testing'
import CloseCarts from '../../fixtures/thrown/shop/plugins/close-carts.ts'
import { ask } from '../../support/raw-client.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const SHOP = new URL('../../fixtures/thrown/shop', import.meta.url)

test('an answer that is thrown', async (t) => {
  const app = await plugin(t, CloseCarts, { domain: SHOP })
  const { logs, port } = app
  const errorsOf = (path: string) =>
    logs.filter(({ level, message }) => level === 'ERROR' && message.startsWith(`${path} failed`))

  await t.test('is the failure envelope with its status, its code, its details and its headers', async () => {
    const { status, headers, body } = await app.get('/async/forbidden')
    assert.equal(status, 403)
    assert.deepEqual(body, { success: false, error: 'Admins only', code: 'NOT_ADMIN', details: { role: 'guest' } })
    assert.deepEqual([headers.get('x-reason'), headers.get('set-cookie')], ['role', 'seen=1'])
    assert.match(headers.get('content-type')!, /^application\/json/)
    assert.deepEqual((await app.get('/async/plain')).body, { success: false, error: 'Not Found' })
    const sync = await app.get('/sync')
    assert.deepEqual([sync.status, sync.body.error], [410, 'Gone for good'])
    assert.equal((await app.get('/validator', { token: 't' })).status, 402)
    const cycle = await app.get('/async/cycle')
    assert.deepEqual(
      [cycle.status, cycle.body],
      [409, { success: false, error: 'No' }],
      'without details that are no JSON',
    )
    assert.deepEqual(errorsOf('/async/:how'), [])
  })

  await t.test('keeps headers and cookies that are set already, and no body', async () => {
    const { status, headers, body } = await app.get('/late')
    assert.deepEqual([status, body.error], [403, 'Admins only'])
    assert.deepEqual([headers.get('x-limit'), headers.get('x-reason')], ['9', 'role'])
    assert.deepEqual(
      headers.getSetCookie().map((cookie) => cookie.split(';')[0]),
      ['cart=1', 'seen=1'],
    )
    assert.match(headers.get('content-type')!, /^application\/json/)
  })

  await t.test('refuses a stream and a handshake', async () => {
    const stream = await app.get('/stream', { token: 't' })
    assert.deepEqual([stream.status, stream.body.code], [403, 'NOT_ADMIN'])
    const handshake = await ask(port, 'GET', '/socket', { authorization: 'Bearer t', ...HANDSHAKE })
    assert.deepEqual([handshake.status, JSON.parse(handshake.body.toString()).error], [403, 'Admins only'])
  })

  await t.test('of 500 and above reaches the client and the log', async () => {
    const { status, headers, body } = await app.get('/async/down')
    assert.deepEqual([status, body], [503, { success: false, error: 'Payments are down' }])
    assert.equal(headers.get('retry-after'), '7')
    const [line] = errorsOf('/async/:how')
    assert.equal(line!.message, '/async/:how failed: Payments are down')
    assert.match(String(line!.fields.cause), /^Error: refused\n.*refusals/)
  })

  await t.test('with a status or a header that cannot be sent is a 500 with a log line', async () => {
    for (const how of ['status', 'header']) {
      const { status, body } = await app.get(`/async/${how}`)
      assert.deepEqual([status, body], [500, { success: false, error: 'Internal server error' }])
    }
    const told = errorsOf('/async/:how').map(({ message }) => message)
    assert.match(told.join('\n'), /from 400 to 599, not 200[\s\S]*the header x-a has characters/)
  })

  const post = (path: string, key?: string) =>
    app.post(path, undefined, { headers: key === undefined ? {} : { 'idempotency-key': key } })

  await t.test('rolls back the transaction that it leaves', async () => {
    for (const [path, key] of [
      ['/carts/a/transaction', undefined],
      ['/carts/b/commit', undefined],
      ['/carts/c/commit', 'c'],
    ] as const) {
      const { status, headers, body } = await post(path, key)
      assert.deepEqual([status, body], [409, { success: false, error: 'The cart is closed', code: 'CLOSED' }], path)
      assert.equal(headers.get('x-in-commit'), null)
    }
    assert.deepEqual((await app.get('/carts')).body.carts, [])
    assert.deepEqual(errorsOf('/carts/:id/commit'), [])
  })

  await t.test('is stored for its Idempotency-Key below 500, and runs again from 500 on', async () => {
    const first = await post('/carts/a/status/409', 'stored')
    const again = await post('/carts/a/status/409', 'stored')
    assert.deepEqual([first.status, again.status, again.headers.get('idempotency-replayed')], [409, 409, 'true'])
    assert.deepEqual([again.body, again.headers.getSetCookie()], [first.body, ['a=b']])

    const failed = await post('/carts/a/status/502', 'failed')
    const rerun = await post('/carts/a/status/502', 'failed')
    assert.deepEqual([failed.status, rerun.status, rerun.headers.get('idempotency-replayed')], [502, 502, null])
    assert.deepEqual(failed.headers.getSetCookie(), ['a=b'])
    assert.notEqual(rerun.body.error, failed.body.error)
  })
})
