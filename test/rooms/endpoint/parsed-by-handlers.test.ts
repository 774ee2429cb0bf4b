import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'

const PLUGIN = `
export default class Door {
  constructor({ http }) {
    http.mount('/mounted', async (request) => Response.json({ got: JSON.parse(await request.text()) }))
    http.post('/raw', { rawBody: true }, (_data, { rawBody }) => ({ got: JSON.parse(rawBody) }))
    http.post('/streamed', { body: 'stream' }, async (_data, { body }) => ({ got: JSON.parse(await body.bytes()) }))
    http.post('/untyped', (_data, { body }) => ({ got: JSON.parse(body) }))
    http.delete('/gone', () => ({ gone: true }))
    http.addWebSocket('/socket', { message: (socket, message) => socket.send({ got: JSON.parse(message) }) })
  }
}
`

/** Who parses a body does not ask for them. */
const TYPES = [
  'application/ld+json; profile="x"',
  'text/plain;charset=UTF-8',
  'text/json',
  'application/x-ndjson',
  'application/octet-stream',
  'nonsense',
]

test('JSON that handlers parse by themselves has no key that could reach a prototype', {
  timeout: 90_000,
}, async (t) => {
  const { json, port } = await startHeddle(t, {
    domains: [await folderOf(t, { 'door/plugins/door.ts': PLUGIN })],
    lanes: 1,
  })
  const post = (path: string, body: string, type = 'application/json') =>
    json(path, { method: 'POST', body, headers: { 'content-type': type } })
  const filler = 'x'.repeat(200_000)
  const doors = ['/mounted', '/raw', '/streamed']
  for (const path of doors) {
    for (const fill of ['', filler]) {
      for (const text of [
        `{"fill":"${fill}","a":[{"__proto__":{"admin":true}}]}`,
        `{"fill":"${fill}","\\u0063onstructor":1}`,
      ]) {
        const { status, body } = await post(path, text)
        assert.equal(status, 400, path)
        assert.match(body.error, /^The body has the forbidden key (?:__proto__|constructor)$/)
        for (const type of TYPES) assert.equal((await post(path, text, type)).status, 400, `${path} ${type}`)
        assert.equal((await post(path, `\ufeff\r\n\t ${text}`, 'text/plain')).status, 400, path)
      }
      const harmless = { fill, a: '"__proto__":1', b: ['constructor'] }
      assert.deepEqual((await post(path, JSON.stringify(harmless))).body.got, harmless, path)
    }
  }

  const proto = '{"a":{"__proto__":{"admin":true}}}'
  for (const type of TYPES.slice(1)) assert.equal((await post('/untyped', proto, type)).status, 400, type)
  assert.deepEqual((await post('/untyped', '{"a":"__proto__"}', 'text/plain')).body.got, { a: '__proto__' })
  const script = 'export default { "constructor": 1 }'
  assert.equal(
    (await post('/streamed', script, 'text/javascript')).status,
    500,
    'its handler got it, and found no JSON',
  )

  const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`)
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
  const answer = new Promise((resolve) =>
    socket.addEventListener('message', ({ data }) => resolve(data), { once: true }),
  )
  socket.send('{"a":"__proto__"}')
  assert.equal(await answer, '{"got":{"a":"__proto__"}}')
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.addEventListener('close', resolve, { once: true }),
  )
  socket.send('{"__proto__":{"admin":true}}')
  const { code, reason } = await closed
  assert.deepEqual([code, reason], [1008, 'the message has the forbidden key __proto__'])

  const gone = await json('/gone', {
    method: 'DELETE',
    headers: { 'content-type': 'application/json', 'content-length': '0' },
  })
  assert.deepEqual([gone.status, gone.body], [200, { gone: true }])
})
