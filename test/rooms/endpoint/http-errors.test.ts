import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { describeOnDatabases } from '../../support/databases.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/thrown', import.meta.url))]
const INTERNAL = { success: false, error: 'Internal server error' }

/** Messages of level ERROR about this path. */
const errorsOf = ({ logs }: Heddle, path: string) =>
  logs.filter(({ level, msg }) => level >= 50 && msg.startsWith(`${path} failed`)).map(({ msg }) => msg)

describeOnDatabases('an answer that is thrown', (database) => {
  const shared = shareService(async (owner) =>
    startHeddle(owner, { domains: DOMAINS, lanes: 1, env: await database.env(owner) }),
  )

  for (const prefix of database.name === 'SQLite' ? ['/w', '/p'] : []) {
    describe(prefix === '/w' ? 'in a lane' : 'on the primary', () => {
      test('is the failure envelope with its status, its code, its details and its headers', async () => {
        const heddle = shared()
        const { status, headers, body } = await heddle.json(`${prefix}/async/forbidden`)
        assert.equal(status, 403)
        assert.deepEqual(body, { success: false, error: 'Admins only', code: 'NOT_ADMIN', details: { role: 'guest' } })
        assert.equal(headers.get('x-reason'), 'role')
        assert.equal(headers.get('set-cookie'), 'seen=1')
        assert.match(headers.get('content-type')!, /^application\/json/)
        assert.deepEqual((await heddle.json(`${prefix}/async/plain`)).body, { success: false, error: 'Not Found' })
        const sync = await heddle.json(`${prefix}/sync`)
        assert.deepEqual([sync.status, sync.body], [410, { success: false, error: 'Gone for good' }])
        const token = { authorization: 'Bearer t' }
        assert.equal((await heddle.json(`${prefix}/validator`, { headers: token })).status, 402)
        assert.deepEqual(errorsOf(heddle, `${prefix}/async/:how`), [])
      })

      test('leaves out details that are no JSON', async () => {
        const { status, body } = await shared().json(`${prefix}/async/cycle`)
        assert.deepEqual([status, body], [409, { success: false, error: 'No' }])
      })

      test('keeps headers and cookies that are set already, and no body', async () => {
        const { status, headers, body } = await shared().json(`${prefix}/late`)
        assert.deepEqual([status, body.error], [403, 'Admins only'])
        assert.deepEqual([headers.get('x-limit'), headers.get('x-reason')], ['9', 'role'])
        assert.deepEqual(
          headers.getSetCookie().map((cookie) => cookie.split(';')[0]),
          ['cart=1', 'seen=1'],
        )
        assert.match(headers.get('content-type')!, /^application\/json/)
      })

      test('refuses a stream and a handshake', async () => {
        const heddle = shared()
        const token = { authorization: 'Bearer t' }
        const stream = await heddle.json(`${prefix}/stream`, { headers: token })
        assert.deepEqual([stream.status, stream.body.code], [403, 'NOT_ADMIN'])
        const handshake = await ask(heddle.port, 'GET', `${prefix}/socket`, { ...token, ...HANDSHAKE })
        assert.equal(handshake.status, 403)
        assert.equal(JSON.parse(handshake.body.toString()).error, 'Admins only')
      })

      test('of 500 and above reaches the client and the log', async () => {
        const heddle = shared()
        const { status, headers, body } = await heddle.json(`${prefix}/async/down`)
        assert.deepEqual([status, body], [503, { success: false, error: 'Payments are down' }])
        assert.equal(headers.get('retry-after'), '7')
        const line = heddle.logs.find(({ msg }) => msg === `${prefix}/async/:how failed: Payments are down`)
        assert.match(String(line?.cause), /^Error: refused\n.*cart-rules/)
      })

      test('with a status or a header that cannot be sent is a 500 with a log line', async () => {
        const heddle = shared()
        for (const how of ['status', 'header']) {
          const { status, body } = await heddle.json(`${prefix}/async/${how}`)
          assert.deepEqual([status, body], [500, INTERNAL])
        }
        const told = errorsOf(heddle, `${prefix}/async/:how`).join('\n')
        assert.match(told, /from 400 to 599, not 200/)
        assert.match(told, /the header x-a has characters/)
      })
    })
  }

  const post = async (path: string, key?: string) =>
    shared().json(path, { method: 'POST', headers: key === undefined ? {} : { 'idempotency-key': key } })

  test('rolls back the transaction that it leaves', async () => {
    for (const [path, key] of [
      ['/carts/a/transaction', undefined],
      ['/carts/b/commit', undefined],
      ['/carts/c/commit', 'c'],
    ] as const) {
      const { status, headers, body } = await post(path, key)
      assert.deepEqual([status, body], [409, { success: false, error: 'The cart is closed', code: 'CLOSED' }], path)
      assert.equal(headers.get('x-in-commit'), null)
    }
    assert.deepEqual((await shared().json('/carts')).body.carts, [])
    assert.deepEqual(errorsOf(shared(), '/carts/:id/commit'), [])
  })

  test('is stored for its Idempotency-Key below 500, and runs again from 500 on', async () => {
    const first = await post('/carts/a/status/409', 'stored')
    const again = await post('/carts/a/status/409', 'stored')
    assert.deepEqual([first.status, again.status, again.headers.get('idempotency-replayed')], [409, 409, 'true'])
    assert.deepEqual(again.body, first.body)
    assert.deepEqual(again.headers.getSetCookie(), ['a=b'])

    const failed = await post('/carts/a/status/502', 'failed')
    const rerun = await post('/carts/a/status/502', 'failed')
    assert.deepEqual([failed.status, rerun.status, rerun.headers.get('idempotency-replayed')], [502, 502, null])
    assert.deepEqual(failed.headers.getSetCookie(), ['a=b'])
    assert.notEqual(rerun.body.error, failed.body.error)
  })
})
