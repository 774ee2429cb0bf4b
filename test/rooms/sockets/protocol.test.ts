import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itHolds } from '../../support/listener.ts'
import { until } from '../../support/until.ts'
import { closeFrame, frameOf, OPCODE, openWebSocket, type RawWebSocket } from '../../support/web-socket.ts'
import { shareTalk, talk } from './support.ts'

/** One lane, so that every client hears what becomes of the others. */
const heddle = shareTalk({ lanes: 1, env: { HTTP_BODY_LIMIT: '100000' } })
/** How a client sees a close frame without a code. */
const NO_CODE = [1005, '']
/** Hears what plugins are told of sockets that have closed. */
let witness: RawWebSocket | undefined

const { TEXT, BINARY, CONTINUATION, PING, PONG } = OPCODE

/** What the plugin is told of a client whose connection has ended because of this. */
async function toldAfter(client: RawWebSocket, end: () => unknown): Promise<[code: number, reason: string]> {
  witness ??= await talk(heddle(), '/talk/witness')
  const count = witness.texts.length
  await end()
  await client.ended()
  const { left, reason, aborted } = JSON.parse(await witness.text(count + 1))
  assert.equal(aborted, true, 'the signal is aborted before `close` runs')
  return [left, reason]
}

test('a handshake is answered with its key, the request id and no extension', async () => {
  const client = await openWebSocket(heddle().port, '/talk/attic?q=7&_auth=mine', {
    'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits',
    'x-request-id': 'mine',
  })
  assert.equal(client.status, 101)
  assert.match(client.head, /^x-request-id: mine$/m)
  assert.match(client.head, /^x-content-type-options: nosniff$/m)
  assert.doesNotMatch(client.head, /sec-websocket-extensions|sec-websocket-protocol|uwebsockets/i)
  const { id, ...data } = JSON.parse(await client.text(1))
  assert.deepEqual(data, { room: 'attic', q: '7' })
  assert.match(id, /^ws_[0-9a-f]{32}$/)
  await client.close()
})

test('text comes back as text and bytes as bytes, whatever their length', async () => {
  const client = await talk(heddle())
  const lengths = [0, 1, 125, 126, 65_535, 65_536, 99_000]
  for (const length of lengths) client.send(Buffer.alloc(length, 0xff))
  for (const length of lengths) client.send('ü'.repeat(length >> 1))
  await until(() => client.frames.length === 1 + 2 * lengths.length, 'all have come back')
  assert.deepEqual(
    client.frames.slice(1).map(({ opcode, payload }) => [opcode, payload.byteLength]),
    [...lengths.map((length) => [BINARY, length]), ...lengths.map((length) => [TEXT, 2 * (length >> 1)])],
  )
  assert.ok(client.frames.at(-1)!.payload.equals(Buffer.from('ü'.repeat(49_500))))
  await client.close()
})

test('a message in pieces is one, a ping between them is answered at once, and a character may be cut', async () => {
  const client = await talk(heddle())
  const euro = Buffer.from('€')
  client.tcp.write(frameOf(TEXT, 'a ', false))
  client.tcp.write(frameOf(PING, 'still there?'))
  client.tcp.write(frameOf(CONTINUATION, euro.subarray(0, 1), false))
  client.tcp.write(frameOf(PONG, 'unasked'))
  client.tcp.write(frameOf(CONTINUATION, euro.subarray(1), true))
  assert.equal(await client.text(2), 'a €')
  const [, pong] = client.frames
  assert.deepEqual([pong!.opcode, pong!.payload.toString()], [PONG, 'still there?'])
  // One byte at a time.
  for (const byte of frameOf(TEXT, 'slow')) client.tcp.write(Buffer.of(byte))
  assert.equal(await client.text(3), 'slow')
  await client.close()
})

test('messages are handled one after another, in their order, and not before `open` has ended', async () => {
  const client = await openWebSocket(heddle().port, '/talk/a')
  client.send('wait 30')
  client.send('wait 1')
  client.send('now')
  await client.text(4)
  assert.deepEqual(client.texts.slice(1), ['wait 30', 'wait 1', 'now'])
  await client.close()
})

test('a close is answered with its code and reason, and the plugin is told', async () => {
  for (const [code, reason] of [
    [1000, ''],
    [1000, 'thank you'],
    [1001, ''],
    [1011, ''],
    [4000, ''],
    [4999, 'x'.repeat(123)],
  ] as const) {
    const client = await talk(heddle())
    assert.deepEqual(await toldAfter(client, () => client.close(code, reason)), [code, reason])
    assert.deepEqual(client.closed?.[0], code)
  }
  const silent = await talk(heddle())
  assert.deepEqual(await toldAfter(silent, () => silent.tcp.write(frameOf(OPCODE.CLOSE, ''))), [1005, ''])
  const gone = await talk(heddle())
  assert.deepEqual(await toldAfter(gone, () => gone.tcp.destroy()), [1006, ''])
})

const BROKEN: [what: string, bytes: Buffer, told: number][] = [
  ['text that is no UTF-8', frameOf(TEXT, Buffer.of(0xce, 0xba, 0xff)), 1007],
  ['text that ends within a character', frameOf(TEXT, Buffer.of(0xe2, 0x82)), 1007],
  ['a surrogate in UTF-8', frameOf(TEXT, Buffer.of(0xed, 0xa0, 0x80)), 1007],
  ['a reserved bit', frameOf(TEXT, 'a', true, 4), 1002],
  ['a reserved opcode', frameOf(3, 'a'), 1002],
  ['a reserved control opcode', frameOf(11, 'a'), 1002],
  ['a continuation of nothing', frameOf(CONTINUATION, 'a'), 1002],
  ['a ping in pieces', frameOf(PING, 'a', false), 1002],
  ['a ping of 126 bytes', frameOf(PING, 'a'.repeat(126)), 1002],
]
for (const [what, bytes, told] of BROKEN) {
  test(`${what} ends the connection, and the plugin is told ${told}`, async () => {
    const client = await talk(heddle())
    assert.deepEqual(await toldAfter(client, () => client.tcp.write(bytes)), [told, ''])
  })
}

// Stated limit: the library answers these itself, without the 1002 of RFC 6455, and has closed the connection before it tells us.
itHolds(
  test,
  'a close that must not be sent is answered by one without a code and the end; the plugin is told 1002',
  async () => {
    // Those from 3000 to 3999 may be sent, and the library takes them for malformed.
    const closes = [0, 999, 1004, 1005, 1006, 1015, 3000, 5000].map((code) => closeFrame(code))
    for (const close of [...closes, frameOf(OPCODE.CLOSE, Buffer.of(3, 232, 0xff))]) {
      const client = await talk(heddle())
      const told = await toldAfter(client, () => client.tcp.write(close))
      assert.deepEqual([client.closed, told], [NO_CODE, [1002, '']])
    }
    const client = await talk(heddle())
    const told = await toldAfter(client, () => client.tcp.write(frameOf(OPCODE.CLOSE, Buffer.of(3))))
    assert.deepEqual([client.closed, told], [NO_CODE, [1005, '']])
  },
)

// Stated limit: the library takes the first four bytes of such a frame for its mask, and waits for as many more.
test('a frame without a mask is never handled as it was sent', async () => {
  const client = await talk(heddle())
  client.tcp.write(Buffer.concat([Buffer.of(0x81, 5), Buffer.from('hello')]))
  client.tcp.write(Buffer.concat([Buffer.of(0x81, 5), Buffer.from('hello')]))
  await until(() => client.closed !== null || client.texts.length > 1 || client.tcp.destroyed, 'an echo or the end')
  assert.equal(client.texts.includes('hello'), false)
  client.tcp.destroy()
})

test('a message beyond the limit is closed with 1009, one far beyond is cut off', async () => {
  const client = await talk(heddle())
  const told = await toldAfter(client, () => client.send('x'.repeat(100_001)))
  assert.deepEqual([told, client.closed], Array(2).fill([1009, 'message too large']))
  const huge = await talk(heddle())
  assert.deepEqual(await toldAfter(huge, () => huge.send('x'.repeat(300_000))), [1009, ''])
})

test('what is no handshake is answered as a request', async () => {
  const answers: [headers: Record<string, string | null>, status: number][] = [
    [{ upgrade: null, connection: null }, 426],
    [{ upgrade: 'h2c' }, 426],
    [{ connection: 'keep-alive' }, 426],
    [{ 'sec-websocket-version': '8' }, 426],
    [{ 'sec-websocket-version': null }, 426],
    [{ 'sec-websocket-key': null }, 400],
    [{ 'sec-websocket-key': 'short' }, 400],
    [{ 'sec-websocket-key': '!'.repeat(24) }, 400],
    [{ connection: 'keep-alive, Upgrade', upgrade: 'WebSocket' }, 101],
  ]
  for (const [headers, status] of answers) {
    const client = await openWebSocket(heddle().port, '/talk/a', headers)
    assert.equal(client.status, status, JSON.stringify(headers))
    if (status === 426) assert.match(client.head, /^upgrade: websocket\r$/m)
    if (status !== 101) assert.match(client.head, /"success":false/)
    client.tcp.destroy()
  }
  const ambiguous = await openWebSocket(heddle().port, '/talk/a', { 'content-length': '2, 3' })
  assert.equal(ambiguous.status, 400)
  assert.match(ambiguous.head, /content-length is no number/)
  ambiguous.tcp.destroy()
  const { status, headers, body } = await heddle().json('/talk/a')
  assert.deepEqual(body, { success: false, error: 'This path speaks WebSocket, version 13' })
  assert.deepEqual([status, headers.get('upgrade'), headers.get('sec-websocket-version')], [426, 'websocket', '13'])
  assert.equal((await heddle().fetch('/talk/a', { method: 'HEAD' })).status, 426)
  const post = await heddle().fetch('/talk/a', { method: 'POST' })
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD'])
  // And other paths know nothing of WebSockets.
  assert.equal((await openWebSocket(heddle().port, '/system/health/live')).status, 200)
  assert.equal((await openWebSocket(heddle().port, '/nowhere')).status, 404)
})

test('the token is checked before the handshake: from the header, or from the subprotocol, never from the query', async () => {
  const open = (headers: Record<string, string>, path = '/members') => openWebSocket(heddle().port, path, headers)
  const refused: [Promise<RawWebSocket>, string][] = [
    [open({}), 'Missing authorization token'],
    [open({}, '/members?access_token=good&token=good'), 'Missing authorization token'],
    [open({ 'sec-websocket-protocol': 'bearer' }), 'Missing authorization token'],
    [open({ 'sec-websocket-protocol': 'bearer, bad' }), 'Invalid or expired token'],
    [open({ authorization: 'Bearer bad' }), 'Invalid or expired token'],
  ]
  for (const [opening, error] of refused) {
    const client = await opening
    assert.equal(client.status, 401)
    assert.match(client.head, /^www-authenticate: Bearer\r$/m)
    assert.ok(client.head.endsWith(JSON.stringify({ success: false, error })), client.head)
    client.tcp.destroy()
  }
  const native = await open({ authorization: 'Bearer good' })
  assert.doesNotMatch(native.head, /sec-websocket-protocol/i)
  const browser = await open({ 'sec-websocket-protocol': 'bearer, good' })
  assert.match(browser.head, /^Sec-WebSocket-Protocol: bearer$/m)
  for (const client of [native, browser]) {
    assert.deepEqual(JSON.parse(await client.text(1))._auth, { sub: 'ada' })
    await client.close()
  }
})

test('a handler that throws closes its socket with 1011; the log has the reason and the request id', async () => {
  const client = await openWebSocket(heddle().port, '/talk/a', { 'x-request-id': 'thrower' })
  client.send('throw')
  client.send('never handled')
  await client.ended()
  assert.deepEqual(client.closed, [1011, 'internal error'])
  assert.equal(client.texts.length, 1)
  const line = await until(() => heddle().logs.find(({ request_id }) => request_id === 'thrower'), 'the log')
  assert.deepEqual([line.msg, line.identity], ['/talk/:room failed: said so', 'talk.TalkToClients'])
  assert.match(String(line.stack), /talk-to-clients\.ts/)
})

test('a plugin closes with a code and a reason of its own', async () => {
  const client = await talk(heddle())
  const told = await toldAfter(client, () => {
    client.send('bye')
    client.send('dropped')
  })
  assert.deepEqual([client.closed, told], Array(2).fill([4001, 'bye']))
  const refused = await openWebSocket(heddle().port, '/doors')
  await refused.ended()
  assert.deepEqual(refused.closed, [1008, 'not today'])
})

test('what a message publishes has no parent, and the request id of the handshake', async () => {
  const client = await openWebSocket(heddle().port, '/talk/a', { 'x-request-id': 'publisher' })
  client.send('publish')
  const { heard } = JSON.parse(await client.text(2))
  assert.deepEqual(heard, { parent_id: null, request_id: 'publisher', emitter: 'talk.TalkToClients' })
  await client.close()
})

test('a plugin of the primary has WebSockets too', async () => {
  const client = await openWebSocket(heddle().port, '/primary')
  assert.equal(await client.text(1), 'hello')
  client.send('one')
  client.send('x'.repeat(90_000))
  assert.equal(await client.text(2), 'one')
  assert.equal((await client.text(3)).length, 90_000)
  client.send('throw')
  await client.ended()
  assert.deepEqual(client.closed, [1011, 'internal error'])
  await until(() => heddle().logs.some(({ msg }) => msg === '/primary failed: said so in the primary'), 'the log')
})
