// A client that wants its connection closed is told so in the answer, whatever kind of answer that is, and the connection closes.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { parseHead, readHead, requestText } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/lasting', import.meta.url))]
const JSON_BODY = { 'content-type': 'application/json' }

interface Case {
  readonly what: string
  readonly bytes: (headers: Record<string, string>) => Buffer
  readonly status: number
  /** Its answer has an end, so the server closes the connection by itself after `connection: close` alone. */
  readonly closes: boolean
}

const get =
  (path: string, method = 'GET') =>
  (headers: Record<string, string>) =>
    requestText(method, path, headers)

const CASES: readonly Case[] = [
  { what: 'a plain answer', bytes: get('/hello'), status: 200, closes: true },
  { what: 'HEAD', bytes: get('/hello', 'HEAD'), status: 200, closes: true },
  { what: 'HEAD of a file', bytes: get('/large', 'HEAD'), status: 200, closes: true },
  { what: 'HEAD of a stream of events', bytes: get('/stream', 'HEAD'), status: 200, closes: true },
  { what: '204', bytes: get('/none'), status: 204, closes: true },
  { what: 'a long answer', bytes: get('/long'), status: 200, closes: true },
  { what: 'a stream of bytes', bytes: get('/pieces'), status: 200, closes: true },
  { what: 'a stream of bytes without an end', bytes: get('/body'), status: 200, closes: false },
  { what: 'a stream of events', bytes: get('/stream'), status: 200, closes: false },
  { what: 'a file', bytes: get('/file'), status: 200, closes: true },
  { what: '404', bytes: get('/nowhere'), status: 404, closes: true },
  { what: '405', bytes: get('/hello', 'DELETE'), status: 405, closes: true },
  { what: '400 for a path', bytes: get('/%zz'), status: 400, closes: true },
  { what: 'a preflight', bytes: get('/hello', 'OPTIONS'), status: 204, closes: true },
  { what: 'a refused handshake', bytes: get('/socket'), status: 426, closes: true },
  {
    what: '403 for another origin',
    bytes: (headers) => requestText('POST', '/said', { ...headers, origin: 'http://evil.example' }, '{}'),
    status: 403,
    closes: true,
  },
  {
    what: 'an answer to a body',
    bytes: (headers) => requestText('POST', '/said', { ...headers, ...JSON_BODY }, '{"a":1}'),
    status: 200,
    closes: true,
  },
  {
    what: '400 for a body',
    bytes: (headers) => requestText('POST', '/said', { ...headers, ...JSON_BODY }, '{'),
    status: 400,
    closes: true,
  },
  {
    what: '413',
    bytes: (headers) =>
      requestText('POST', '/said', { ...headers, 'content-length': '2000000' }, Buffer.alloc(2_000_000)),
    status: 413,
    closes: true,
  },
  {
    what: 'an answer to chunks',
    bytes: (headers) =>
      requestText(
        'POST',
        '/said',
        { ...headers, ...JSON_BODY, 'transfer-encoding': 'chunked' },
        '2\r\n{}\r\n0\r\n\r\n',
      ),
    status: 200,
    closes: false,
  },
]

/** The values of `connection` in the answer, in lower case; then the connection is read to its end where it has one. */
async function answerOf(port: number, { bytes, status, closes, what }: Case, connection: string): Promise<string[]> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(bytes({ connection }))
  const text = await readHead(socket)
  const head = parseHead(text.slice(0, text.indexOf('\r\n\r\n')))
  assert.equal(head.status, status, what)
  if (closes && /^close$/i.test(connection)) {
    socket.resume()
    if (!socket.readableEnded) await once(socket, 'end', { signal: AbortSignal.timeout(9_000) })
  }
  socket.destroy()
  const options = (head.headers.get('connection') ?? []).map((value) => value.toLowerCase())
  // What the client should ask for instead.
  return status === 426 ? options.filter((option) => option !== 'upgrade') : options
}

describe('a client that sends connection: close', () => {
  const service = shareService({ domains: DOMAINS, lanes: 1, env: { HTTP_CORS_ORIGINS: 'http://shop.example' } })

  for (const each of CASES) {
    it(`reads it in ${each.what}, once, and the connection closes`, async () => {
      for (const connection of ['close', 'Close', 'keep-alive, close', 'close, te', 'te,close'])
        assert.deepEqual(await answerOf(service().port, each, connection), ['close'], connection)
    })
  }

  it('does not read it where it has not asked for it', async () => {
    for (const each of CASES.filter(({ what }) => !/chunks|413|handshake|preflight|40[35]/.test(what)))
      for (const connection of ['keep-alive', 'te', 'closed, x-close'])
        assert.deepEqual(await answerOf(service().port, each, connection), [], `${each.what}: ${connection}`)
  })

  it('never finds a closed connection in the pool of its agent', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 2 })
    for (let n = 0; n < 40; n++) {
      const path = ['/hello', '/none', '/long', '/nowhere'][n % 4]
      const sent = request({ port: service().port, path, agent, headers: { connection: 'close' } }).end()
      const [answer] = (await once(sent, 'response')) as [IncomingMessage]
      answer.resume()
      await once(answer, 'end')
      assert.ok(answer.statusCode! > 0)
    }
    agent.destroy()
  })
})

it('an answer of a service that drains says connection: close, also where the body has a length or is a stream', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  // Held until the drain has begun: it waits for a body that is under way.
  const held = connect(heddle.port, '127.0.0.1')
  held.on('error', () => {})
  held.write(requestText('POST', '/said', { 'content-length': '10' }, '{'))
  const kinds = CASES.filter(({ what }) =>
    ['a file', 'a long answer', 'a stream of bytes', 'a plain answer'].includes(what),
  )
  const sockets = await Promise.all(
    kinds.map(async () => {
      const socket = connect(heddle.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(requestText('GET', '/none'))
      await readHead(socket)
      return socket
    }),
  )
  const stopped = heddle.stop()
  for (let isOpen = true; isOpen; ) {
    const probe = connect(heddle.port, '127.0.0.1')
    isOpen = await Promise.race([
      once(probe, 'connect').then(() => true),
      once(probe, 'close').then(() => false),
    ]).catch(() => false)
    probe.destroy()
  }
  for (const [n, { bytes, what }] of kinds.entries()) {
    sockets[n]!.write(bytes({}))
    const text = await readHead(sockets[n]!)
    const { headers } = parseHead(text.slice(0, text.indexOf('\r\n\r\n')))
    assert.deepEqual(
      (headers.get('connection') ?? []).map((value) => value.toLowerCase()),
      ['close'],
      what,
    )
    sockets[n]!.destroy()
  }
  held.destroy()
  assert.equal(await stopped, 0)
})
