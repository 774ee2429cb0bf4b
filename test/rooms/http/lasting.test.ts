import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, assertFailure, headerOf, readHead, requestText } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const LASTING = fileURLToPath(new URL('../../fixtures/lasting', import.meta.url))

const share = (env: Record<string, string>): (() => Heddle) =>
  shareService((owner) =>
    startHeddle(owner, {
      domains: [LASTING],
      lanes: 1,
      env: { LANE_MAX_INFLIGHT: '2', ...env },
    }),
  )

/** Opens one answer that lasts, and reads no further than its head. */
async function open(port: number, path: string, from = ''): Promise<{ connection: Socket; status: number }> {
  const connection = connect(port, '127.0.0.1')
  connection.on('error', () => {})
  const headers = { ...(path === '/socket' ? HANDSHAKE : {}), ...(from === '' ? {} : { 'x-forwarded-for': from }) }
  connection.write(requestText('GET', path, headers))
  return { connection, status: Number((await readHead(connection)).slice(9, 12)) }
}

describe('answers that last', () => {
  describe('in lanes', () => {
    const service = share({})

    for (const path of ['/stream', '/socket', '/body', '/large']) {
      it(`hold no place of a request: ${path}`, async () => {
        const { port } = service()
        const opened = []
        for (let n = 0; n < 20; n++) opened.push(await open(port, path))
        assert.deepEqual([...new Set(opened.map(({ status }) => status))], [path === '/socket' ? 101 : 200])
        const both = await Promise.all([ask(port, 'GET', '/hello'), ask(port, 'GET', '/hello')])
        assert.deepEqual(
          both.map(({ status }) => status),
          [200, 200],
        )
        for (const { connection } of opened) connection.destroy()
      })
    }
  })

  describe('have bounds', () => {
    const service = share({
      HTTP_MAX_STREAMS: '5',
      HTTP_MAX_STREAMS_PER_ADDRESS: '3',
      HTTP_MAX_STREAMS_PER_ROUTE: '2',
      HTTP_TRUSTED_PROXIES: '127.0.0.1',
    })

    it('of their own, for the process, for each visitor and for each route, with 503 on such routes alone', async () => {
      const heddle = service()
      const { port } = heddle
      const opened: Socket[] = []
      const statusOf = async (path: string, from: string): Promise<number> => {
        const { connection, status } = await open(port, path, from)
        if (status < 300) opened.push(connection)
        else connection.destroy()
        return status
      }
      // One network, in several spellings.
      assert.equal(await statusOf('/stream', '2001:db8:0:1::1'), 200)
      assert.equal(await statusOf('/socket', '2001:0DB8:0:1:0:0:0:2'), 101)
      assert.equal(await statusOf('/body', '[2001:db8::1:0:0:0:3]:4711'), 200)
      for (const path of ['/stream', '/socket', '/body', '/large']) {
        const headers = { 'x-forwarded-for': '2001:db8:0:1::9', ...(path === '/socket' ? HANDSHAKE : {}) }
        const refused = await ask(port, 'GET', path, headers)
        assertFailure(refused, 503, 'Too many streams are open')
        assert.match(headerOf(refused, 'retry-after')!, /^\d+$/)
      }
      assert.equal((await ask(port, 'GET', '/hello', { 'x-forwarded-for': '2001:db8:0:1::9' })).status, 200)

      assert.equal(await statusOf('/stream', '192.0.2.1'), 200)
      assert.equal(await statusOf('/stream', '192.0.2.2'), 503)
      assert.equal(await statusOf('/large', '192.0.2.2'), 200)
      assert.equal(await statusOf('/body', '192.0.2.3'), 503)
      assert.equal((await ask(port, 'GET', '/hello')).status, 200)
      const told = heddle.logs.filter(({ msg }) => msg.startsWith('Streams are refused')).map(({ msg }) => msg)
      assert.deepEqual(told, [
        'Streams are refused: one address has 3 (HTTP_MAX_STREAMS_PER_ADDRESS)',
        'Streams are refused: GET /stream has 2 (HTTP_MAX_STREAMS_PER_ROUTE)',
        'Streams are refused: all clients together have 5 (HTTP_MAX_STREAMS)',
      ])

      for (const connection of opened.splice(0)) connection.destroy()
      for (const path of ['/stream', '/socket', '/large'])
        await until(async () => (await statusOf(path, '2001:db8:0:1::1')) < 300, `room again for ${path}`)
      for (const connection of opened) connection.destroy()
    })
  })
})
