// Chunked bodies: a handler runs if and only if its client gets the handler's answer, wherever the bytes are split.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { describe, it } from 'node:test'
import { ask, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'

const heddle = shareHeddle()

const runsOf = async (key: string): Promise<number> =>
  Number(jsonOf(await ask(heddle.port, 'GET', `/p/state/${key}:runs`)).data ?? 0)

const CHUNKED = { 'transfer-encoding': 'chunked', 'content-type': 'application/octet-stream' }
const TRAILER = 'x-sum: 12345\r\n\r\n'

/** What stands behind the head, and whether every server has to answer it with 200. */
const BODIES: readonly (readonly [what: string, headers: Record<string, string>, body: string, isPlain: boolean])[] = [
  ['no trailer', {}, '3\r\nabc\r\n0\r\n\r\n', true],
  ['a trailer', {}, `3\r\nabc\r\n0\r\n${TRAILER}`, false],
  ['an empty body with a trailer', {}, `0\r\n${TRAILER}`, false],
  ['two trailers', {}, `3\r\nabc\r\n0\r\nx-a: b\r\n${TRAILER}`, false],
  ['a trailer of two letters', {}, '3\r\nabc\r\n0\r\na:b\r\n\r\n', false],
  ['an announced trailer', { trailer: 'x-sum' }, `3\r\nabc\r\n0\r\n${TRAILER}`, false],
  ['an extension of a chunk', {}, '3;a=b\r\nabc\r\n0\r\n\r\n', false],
  ['an extension of the last chunk', {}, '3\r\nabc\r\n0;a="b"\r\n\r\n', false],
]

describe('a chunked request', () => {
  for (const [what, headers, body, isPlain] of BODIES) {
    it(`runs its handler exactly when its client gets 200, split at every byte: ${what}`, async () => {
      const key = `ends-${what.replaceAll(' ', '-')}`
      const bytes = Buffer.concat([
        requestText('POST', `/w/count/${key}`, { ...CHUNKED, ...headers }),
        Buffer.from(body),
      ])
      const bodyAt = bytes.length - body.length
      let runs = 0
      // uWebSockets.js takes an extension for a part of the size, and waits for the rest of the body until it is too late.
      const step = what.includes('extension') ? body.length : 1
      for (let at = bodyAt; at <= bytes.length; at += step) {
        const connection = await RawConnection.open(heddle.port)
        await connection.send(bytes.subarray(0, at))
        // The service has read the first part by then.
        await ask(heddle.port, 'GET', '/p/echo')
        await connection.send(bytes.subarray(at))
        const response = await connection.response().catch(() => null)
        connection.drop()
        if (response?.status === 200) runs++
        else
          assert.ok(
            !isPlain && (response === null || [400, 408, 505].includes(response.status)),
            `${at}: ${response?.status}`,
          )
        assert.equal(await runsOf(key), runs, `split at ${at - bodyAt}: ${response?.status}`)
      }
    })
  }

  it('of Node with trailers runs no handler whose client gets another answer than its own', async () => {
    const agent = new Agent({ keepAlive: true })
    let answered = 0
    for (let n = 0; n < 10; n++) {
      const sent = request({ port: heddle.port, method: 'POST', path: '/w/count/ends-of-node', agent })
      sent.addTrailers({ 'x-sum': '1' })
      sent.end('abc')
      const answer = await once(sent, 'response').then(
        ([response]) => response as IncomingMessage,
        () => null,
      )
      answer?.resume()
      if (answer?.statusCode === 200) answered++
      assert.equal(await runsOf('ends-of-node'), answered)
    }
    agent.destroy()
  })
})

describe('what is not HTTP/1.1 as the listener reads it', () => {
  const HOST = 'host: localhost\r\n'
  for (const [what, bytes] of [
    ['another version', `GET /w/echo HTTP/1.0\r\n${HOST}\r\n`],
    ['no version', `GET /w/echo\r\n${HOST}\r\n`],
    ['a broken line', `GET  /w/echo extra HTTP/1.1\r\n${HOST}\r\n`],
    ['a header without a colon', `GET /w/echo HTTP/1.1\r\n${HOST}nothing\r\n\r\n`],
    ['a control character in a header', `GET /w/echo HTTP/1.1\r\n${HOST}x-a: \x01\r\n\r\n`],
    ['no host', 'GET /w/echo HTTP/1.1\r\n\r\n'],
    ['101 headers', `GET /w/echo HTTP/1.1\r\n${HOST}${'a: b\r\n'.repeat(101)}\r\n`],
    ['headers of 30,000 bytes', `GET /w/echo HTTP/1.1\r\n${HOST}x: ${'x'.repeat(30_000)}\r\n\r\n`],
    [
      'an extension of a chunk',
      `POST /w/say HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n3;a\r\nabc\r\n0\r\n\r\n`,
    ],
    ['a trailer', `POST /w/say HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n${TRAILER}`],
  ] as const) {
    it(`gets an envelope of ours, or the end, and no name and version of a server: ${what}`, async () => {
      const connection = await RawConnection.open(heddle.port)
      await connection.send(bytes)
      await connection.arrival(20_000)
      // As much as comes until it is closed, or soon.
      await connection.closed(1_000).catch(() => {})
      const text = connection.rest.toString('latin1')
      connection.drop()
      assert.doesNotMatch(text, /uwebsockets|<h1>|^server:/im)
      if (text === '' || text.startsWith('HTTP/1.1 200')) return
      assert.match(text, /^HTTP\/1\.1 (?:400|408|431|505)[ ]/)
      assert.match(text, /\r\nconnection: close\r\n/i)
      const envelope = JSON.parse(text.slice(text.indexOf('\r\n\r\n')))
      assert.equal(envelope.success, false)
      assert.equal(typeof envelope.error, 'string')
    })
  }
})
