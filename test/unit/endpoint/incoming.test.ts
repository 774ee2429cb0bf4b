import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { RequestContext } from '../../../src/runtime/endpoint/context.ts'
import { replyOfThrown } from '../../../src/runtime/endpoint/reply.ts'
import { RequestFrame } from '../../../src/transport/frames/request-frame.ts'

const HEADERS: [name: string, value: string][] = [
  ['host', '127.0.0.1'],
  ['x-first', 'accept'],
  ['accept', 'text/html'],
  ['cookie', 'a=1'],
  ['empty', ''],
  ['accept', 'text/plain'],
  ['cookie', 'b=2'],
  ['x-last', 'ä'],
]

function incoming(end = ''): RequestFrame {
  const before = ['req_1', '/path', 'query', '00-trace'] as const
  const text = before.join('') + HEADERS.map(([name, value]) => `${name}\r${value}\r`).join('') + end
  const [id, path, query, trace] = before.map(({ length }) => length) as [number, number, number, number]
  return new RequestFrame(0, 0, id, 0, path, query, trace, text, null)
}

test('a header that is read alone is what it is among all', () => {
  const names = [...new Set(HEADERS.map(([name]) => name)), 'missing', 'las', 'text/html', '']
  const all = incoming().headers
  const read = (from: RequestFrame): unknown => names.map((name) => from.header(name))
  const wanted = names.map((name) => all[name])
  assert.deepEqual(read(incoming()), wanted)
  assert.deepEqual([all.accept, all.cookie, all.empty, all['x-last']], ['text/html, text/plain', 'a=1; b=2', '', 'ä'])
  const both = incoming()
  assert.equal(both.headers.host, '127.0.0.1')
  assert.deepEqual(read(both), wanted)
})

test('a text of headers that ends too early is read to its end, and not again', () => {
  for (const end of ['x-cut', 'x-cut\r', 'x-cut\rvalue']) {
    assert.deepEqual([incoming(end).header('missing'), incoming(end).header('x-last')], [undefined, 'ä'], end)
  }
})

/** Only an HttpError reads it. */
const UNREAD = {} as RequestContext

test('an error whose details are no JSON is answered without them', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  for (const details of [1n, cycle]) {
    const { reply } = replyOfThrown(new HeddleError('HTTP_BAD_REQUEST', 'no', { details }), UNREAD)
    assert.equal(reply.status, 400)
    assert.deepEqual(JSON.parse(reply.body as string), { success: false, error: 'no' })
  }
})
