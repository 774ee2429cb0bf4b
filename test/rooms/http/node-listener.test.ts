import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DEVIATIONS, NODE_READS } from '../../support/listener.ts'
import {
  ask,
  assertFailure,
  assertOurs,
  headerOf,
  jsonOf,
  RawConnection,
  requestText,
} from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'
import { frameOf, OPCODE, openWebSocket } from '../../support/web-socket.ts'
import { BAD_CHUNKS } from '../hostile/shapes.ts'

/** What `HTTP_LISTENER=node` does in its own way. All else is in the tests beside this one, which run on either. */
const heddle = shareHeddle({ env: { HTTP_LISTENER: 'node' } })
const CLOSED_WITHIN_MS = 5_000

async function open(bytes: string | Uint8Array): Promise<RawConnection> {
  const connection = await RawConnection.open(heddle.port)
  await connection.send(bytes)
  return connection
}

it('does otherwise in tests that exist', () => {
  const tests = fileURLToPath(new URL('../..', import.meta.url))
  const names = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  const isOfTheContract = /^(?:claims|(?:unit|rooms)\/(?:http|hostile|sockets))\/[^/]+\.ts$/
  const files = names.filter((name) => isOfTheContract.test(name))
  const texts = files.map((name) => readFileSync(join(tests, name), 'utf8'))
  for (const name of Object.keys(DEVIATIONS)) {
    const isWritten = texts.some((text) => text.includes(`'${name}'`))
    assert.ok(isWritten, `no test is called ${name}`)
  }
  const shapes = new Set(BAD_CHUNKS.map(({ name }) => name))
  for (const names of Object.values(NODE_READS))
    for (const name of Object.keys(names)) assert.ok(shapes.has(name), name)
})

describe('the listener on node:http', () => {
  for (const [what, bytes, status, error] of [
    ['no HTTP at all', 'nonsense\r\n\r\n', 400, /^Malformed request: /],
    ['HTTP/1.0', 'GET /w/echo HTTP/1.0\r\n\r\n', 505, 'Only HTTP/1.1 is spoken here'],
    ['HTTP/2', 'GET /w/echo HTTP/2.0\r\nhost: test\r\n\r\n', 505, 'Only HTTP/1.1 is spoken here'],
    ['lines that end in LF alone', 'GET /w/echo HTTP/1.1\nhost: test\n\n', 400, /^Malformed request: Expected CRLF/],
    ['no host', 'GET /w/echo HTTP/1.1\r\n\r\n', 400, 'The header Host is missing'],
    ['no path', 'OPTIONS * HTTP/1.1\r\nhost: test\r\n\r\n', 400, 'The target of the request is not valid'],
    ['a proxy', 'CONNECT test:80 HTTP/1.1\r\nhost: test\r\n\r\n', 400, 'This is no proxy'],
    ['a method of its own', 'BREW /w/echo HTTP/1.1\r\nhost: test\r\n\r\n', 400, /^Malformed request: /],
    ['bytes beyond ASCII in the path', 'GET /w/\xe9 HTTP/1.1\r\nhost: test\r\n\r\n', 400, /^Malformed request: /],
    [
      'two lengths',
      'POST /w/echo HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nab',
      400,
      'The request is ambiguous: more than one content-length',
    ],
    [
      'a header of 30,000 bytes',
      `GET /w/echo HTTP/1.1\r\nhost: test\r\nx: ${'x'.repeat(30_000)}\r\n\r\n`,
      431,
      'The request header fields are too large',
    ],
    [
      '101 headers',
      `GET /w/echo HTTP/1.1\r\nhost: test\r\n${'x: y\r\n'.repeat(100)}\r\n`,
      431,
      'The request header fields are too large',
    ],
    [
      'a broken chunk',
      'POST /w/echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      400,
      /^Malformed request: /,
    ],
  ] as const) {
    it(`answers what it cannot read with an envelope of ours, and closes: ${what}`, async () => {
      const connection = await open(bytes)
      const response = await connection.response()
      assertOurs(response)
      assertFailure(response, status, error)
      assert.equal(headerOf(response, 'connection'), 'close')
      await connection.closed(CLOSED_WITHIN_MS)
    })
  }

  it('serves the absolute form, whose host counts', async () => {
    const ours = await open('GET http://test/w/echo/1?a=b HTTP/1.1\r\nhost: other\r\n\r\n')
    const response = await ours.response()
    assert.equal(response?.status, 200)
    assert.deepEqual(jsonOf(response!).data.data, { a: 'b', id: '1' })
    ours.drop()
    const foreign = await open('GET http://other/w/echo HTTP/1.1\r\nhost: test\r\n\r\n')
    assert.equal((await foreign.response())?.status, 421)
    foreign.drop()
  })

  it('goes on after a chunked body, and after a POST without one: the end of each is certain', async () => {
    const chunked = 'POST /w/echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n'
    const connection = await open(chunked)
    for (const next of [requestText('POST', '/w/echo'), requestText('GET', '/w/echo')]) {
      const response = await connection.response()
      assert.equal(response?.status, 200)
      assert.equal(headerOf(response!, 'connection'), undefined)
      await connection.send(next)
    }
    assert.equal((await connection.response())?.status, 200)
    connection.drop()
  })

  it('sends a long answer to its end, and closes then, when another request comes meanwhile', async () => {
    const connection = await open(requestText('GET', '/w/large/12000000'))
    await connection.arrival(CLOSED_WITHIN_MS)
    await connection.send(requestText('GET', '/w/echo'))
    assert.equal((await connection.response())?.body.byteLength, 12_000_000)
    await connection.closed(CLOSED_WITHIN_MS)
    assert.equal(connection.rest.byteLength, 0)
  })

  it('loses no byte of a header', async () => {
    const { headers } = jsonOf(await ask(heddle.port, 'GET', '/w/echo', { 'x-ends': '\xc3\xa9t\xc3\xa9' })).data
    assert.equal(headers['x-ends'], 'été')
  })

  it('leaves out an upgrade that it does not know, and serves the request with its body', async () => {
    const headers = {
      connection: 'Upgrade, HTTP2-Settings',
      upgrade: 'h2c',
      'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
    }
    const response = await ask(
      heddle.port,
      'POST',
      '/w/echo',
      { ...headers, 'content-type': 'application/json' },
      '{"a":1}',
    )
    assert.deepEqual(jsonOf(response).data.data, { a: 1 })
  })
})

const sockets = shareHeddle({
  domains: new URL('../sockets/domains', import.meta.url).pathname,
  env: { HTTP_LISTENER: 'node', HTTP_MAX_STREAMS_PER_ADDRESS: '2' },
})

describe('a WebSocket behind node:http', () => {
  it('gives its place back where ws refuses the handshake', async () => {
    for (let n = 0; n < 3; n++) {
      const refused = await openWebSocket(sockets.port, '/talk/a', { 'sec-websocket-protocol': 'a,a' })
      assert.equal(refused.status, 400)
      refused.tcp.destroy()
    }
    const client = await openWebSocket(sockets.port, '/talk/a')
    assert.equal(client.status, 101)
    await client.close()
  })

  it('is answered with 1002 when its close frame has a code that may not be sent', async () => {
    const client = await openWebSocket(sockets.port, '/talk/a')
    await client.text(1)
    client.tcp.write(frameOf(OPCODE.CLOSE, Buffer.of(1005 >> 8, 1005 & 0xff)))
    await client.ended()
    assert.deepEqual(client.closed, [1002, ''])
  })
})
