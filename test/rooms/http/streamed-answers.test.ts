import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { get, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { shareExchange } from '../../support/exchange-service.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { isNodeListener } from '../../support/listener.ts'
import { until } from '../../support/until.ts'

/** What may be between a handler and a client that does not read: the window of the runtime, and the buffers of two sockets. */
const ON_THE_WAY_MAX_BYTES = 16 << 20
const BLOCK_BYTES = 50_000

describe('answers that are streamed', () => {
  const service = shareExchange()
  const text = async (path: string) => (await service().fetch(path)).text()
  const stateOf = async (key: string) => (await service().json(`/lane/asked-state?key=${key}`)).body
  const hasEnded = (key: string) => until(async () => (await stateOf(`ended-${key}`)) === true, `${key} has ended`)
  const folder = temporaryFolder({ after })
  before(async () => {
    await writeFile(join(folder, 'bill é.txt'), 'x'.repeat(150_000))
    await writeFile(join(folder, '.hidden'), 'secret')
  })

  for (const thread of ['/lane', '/primary']) {
    const unique = (name: string) => `${name}-${thread.slice(1)}`

    it(`leave as they are made: ${thread}`, async () => {
      const key = unique('gate')
      const answer = await service().fetch(`${thread}/gated/${key}`)
      assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
      const reader = answer.body!.getReader()
      assert.equal(Buffer.from((await reader.read()).value!).toString(), 'first ')
      // The generator waits for this: the first chunk was not kept for the second.
      await service().fetch(`/lane/set-state?key=open-${key}`)
      let rest = ''
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        rest += Buffer.from(next.value).toString()
      }
      assert.equal(rest, 'second é')
    })

    it(`answer a request of which no length was told, as the last of its connection where its end is not certain: ${thread}`, async () => {
      for (const [path, length] of [
        ['/kinds/large', 205_001],
        [`/file?path=${encodeURIComponent(join(folder, 'bill é.txt'))}`, 150_000],
      ] as const) {
        const sent = request({
          port: service().port,
          path: thread + path,
          headers: { 'transfer-encoding': 'chunked' },
        })
        sent.write('some')
        sent.end('thing')
        const [answer] = (await once(sent, 'response')) as [IncomingMessage]
        const bytes = Buffer.concat(await answer.toArray()).byteLength
        const isLast = answer.headers.connection === 'close'
        assert.deepEqual([answer.statusCode, bytes], [200, length])
        assert.ok(isLast || isNodeListener, 'the last of its connection')
      }
    })

    it(`that fail before the first chunk are 500, and later break off; the log names the line: ${thread}`, async () => {
      const first = await service().json(`${thread}/fails/first`)
      assert.deepEqual([first.status, first.body], [500, { success: false, error: 'Internal server error' }])
      for (const path of ['later', 'value']) {
        // The client of Node 26 does not even tell the head when the end has come with it.
        const answer = await service()
          .fetch(`${thread}/fails/${path}`)
          .catch(({ cause }) => assert.equal(cause.code, 'UND_ERR_SOCKET'))
        if (answer === undefined) continue
        assert.equal(answer.status, 200)
        await assert.rejects(answer.text())
      }
      for (const what of ['before the first chunk', 'after the first chunk', 'no JSON: function']) {
        const { stack } = await until(
          async () => service().logs.find(({ msg }) => msg.includes(what) && msg.startsWith(thread)),
          `the log of ${what}`,
        )
        if (what.startsWith('no')) continue
        assert.match(String(stack), /stream-routes\.ts:\d+/)
      }
    })

    it(`keep the pace of their client, and end when it leaves: ${thread}`, async () => {
      const key = unique('slow')
      const socket = connect(service().port, '127.0.0.1')
      await once(socket, 'connect')
      socket.write(`GET ${thread}/endless/${key} HTTP/1.1\r\nhost: test\r\n\r\n`)
      socket.pause()
      let seen = -1
      // It stands still when everything between it and the client is full.
      const blocks: number = await until(async () => {
        const now = Number(await stateOf(`blocks-${key}`))
        if (now > 0 && now === seen) return now
        seen = now
        await new Promise((resolve) => setTimeout(resolve, 100))
        return undefined
      }, 'the handler waits')
      assert.ok(blocks * BLOCK_BYTES < ON_THE_WAY_MAX_BYTES, `${blocks} blocks`)
      socket.resume()
      await until(async () => Number(await stateOf(`blocks-${key}`)) > blocks + 10, 'it goes on')
      socket.destroy()
      await hasEnded(key)
    })

    it(`that wait for something end when their client leaves: ${thread}`, async () => {
      for (const path of ['waiting', 'silent']) {
        const key = unique(path)
        const request = get(`${service().url}${thread}/${path}/${key}`)
        request.on('error', () => {})
        const [answer] = (await once(request, 'response')) as [IncomingMessage]
        await once(answer, 'data')
        answer.on('error', () => {})
        request.destroy()
        await hasEnded(key)
      }
    })
  }

  it('of events begin with the first of them, so that a handler may refuse', async () => {
    const events = (kind: string) => service().fetch(`/lane/events/${kind}`)
    const refused = await events('refused')
    const envelope = { success: false, error: 'There is no such kind', code: 'NO_KIND' }
    assert.deepEqual([refused.status, await refused.json()], [404, envelope])
    assert.equal((await events('broken')).status, 500)
    const sent = await events('sent')
    assert.deepEqual([sent.status, sent.headers.get('x-kind')], [200, 'sent'])
    assert.match(await sent.text(), /^: open\n\ndata: \{"kind":"sent"\}\n\n$/)
    assert.match(await (await events('late')).text(), /data: \{"kind":"late"\}\n\n$/)
    // Its client is told that it is connected all the same.
    const silent = await events('silent')
    assert.equal(silent.status, 200)
    await silent.body!.cancel()
  })

  it('are iterables of text, bytes and values, Readables and streams of the web', async () => {
    for (const [kind, status, type, text] of [
      ['text', 200, 'text/plain; charset=utf-8', '<p>'],
      ['bytes', 200, 'application/octet-stream', '\x00\xff\x01'],
      ['web', 200, 'application/octet-stream', 'of the web'],
      ['values', 200, 'application/x-ndjson; charset=utf-8', '{"n":1}\n[2]\nnull\n'],
      ['nothing', 200, 'text/plain; charset=utf-8', ''],
      ['typed', 203, 'text/csv', 'a,b\n1,2\n'],
      // A Readable of texts makes bytes of them only when it is told to.
      ['late', 200, 'text/plain; charset=utf-8', 'late'],
    ] as const) {
      const answer = await service().fetch(`/lane/kinds/${kind}`)
      const body = Buffer.from(await answer.arrayBuffer()).toString('latin1')
      assert.deepEqual([answer.status, answer.headers.get('content-type'), body], [status, type, text], kind)
    }
    assert.equal((await text('/lane/kinds/large')).length, 205_001)
  })

  it('answer HEAD with their head, and 204 with nothing, and end the stream', async () => {
    const head = await service().fetch('/lane/silent/head', { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'application/octet-stream'])
    await hasEnded('head')
    assert.equal((await service().fetch('/lane/no-content')).status, 204)
    await hasEnded('no-content')
  })

  it('are files, with ranges and 304', async () => {
    const file = `/lane/file?path=${encodeURIComponent(join(folder, 'bill é.txt'))}`
    const get = (query: string, headers: Record<string, string> = {}) => service().fetch(file + query, { headers })
    const whole = await get('&download=true')
    assert.equal((await whole.text()).length, 150_000)
    const { etag, ...headers } = Object.fromEntries(whole.headers) as Record<string, string>
    assert.partialDeepStrictEqual(headers, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '150000',
      'cache-control': 'no-cache',
      'content-disposition': `attachment; filename="bill _.txt"; filename*=UTF-8''bill%20%C3%A9.txt`,
    })
    assert.equal((await get('', { 'if-none-match': etag! })).status, 304)
    const part = await get('', { range: 'bytes=10-12' })
    assert.deepEqual([part.status, await part.text()], [206, 'xxx'])
    assert.equal((await get('', { range: 'bytes=150000-' })).status, 416)
    assert.equal((await get('&type=text/csv')).headers.get('content-type'), 'text/csv')
    assert.equal((await get('.gone')).status, 404)
    for (const [name, status] of [
      ['bill é.txt', 200],
      ['.hidden', 404],
      ['../../etc/passwd', 404],
      ['/etc/passwd', 404],
    ] as const) {
      const query = new URLSearchParams({ root: folder, path: name })
      assert.equal((await service().fetch(`/lane/file?${query}`)).status, status, name)
    }
  })
})
