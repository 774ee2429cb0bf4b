import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../../fixtures/mounted', import.meta.url)), SHIPPED]

describe('http.mount', () => {
  const service = shareService({ domains: DOMAINS, lanes: 1, env: { HISTORY_ENABLED: 'true', HISTORY_SAMPLE: '1' } })
  const ask = (path: string, init?: RequestInit) => service().fetch(path, init)
  const json = (path: string, init?: RequestInit) => service().json(path, init)
  const faultOf = (text: string) => until(async () => service().logs.find(({ msg }) => msg.includes(text)), text)
  const ended = async (what: string) =>
    until(async () => (await (await ask('/door/ended')).text()) === what, `${what} has ended`)

  /** A request that `fetch` cannot send. */
  async function send(path: string, method: string, headers: Record<string, string>, body: Buffer | string = '') {
    const sent = request({ port: service().port, path, method, headers })
    sent.on('error', () => {})
    sent.end(body)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, text: Buffer.concat(await answer.toArray()).toString() }
  }

  it('gives a fetch handler each request under its prefix, with the whole address, the caller and the headers', async () => {
    const { host } = new URL(service().url)
    const { body } = await json('/door/rooms/7?light=on', { headers: { 'x-caller': 'ada', 'x-name': 'Ada' } })
    assert.deepEqual(body, {
      ...{ method: 'GET', url: `http://${host}/door/rooms/7?light=on`, name: 'Ada' },
      ...{ user: { id: 'ada' }, route: '/door/*', ip: '127.0.0.1' },
    })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      assert.equal((await json('/door', { method })).body.method, method)
    const head = await ask('/door', { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
    for (const [what, length] of [
      ['unmade', '7'],
      ['moved', null],
    ] as const) {
      const { headers } = await ask(`/door/${what}`, { method: 'HEAD', redirect: 'manual' })
      assert.equal(headers.get('content-length'), length, 'of a body that was not made nobody says that it is empty')
    }
    assert.equal((await json('/door')).body.url, `http://${host}/door`)
    assert.equal((await json('/doors')).status, 404)
    assert.deepEqual((await json('/door/own')).body, { own: true }, 'a route of its own path')
    assert.equal((await json('/door/own', { method: 'POST' })).body.method, 'POST', 'and what it does not answer')
  })

  it('gives an object with `fetch` the path without the prefix where that is wished', async () => {
    const { host } = new URL(service().url)
    assert.equal((await json('/stripped/twice/a/b?c')).body.url, `http://${host}/a/b?c`)
    assert.equal((await json('/stripped/twice')).body.url, `http://${host}/`)
  })

  it('calls a method of a class with its instance', async () => {
    assert.equal(await (await ask('/class/x', { headers: { 'x-caller': 'ada' } })).text(), 'hello ada')
  })

  it('answers with status, headers, cookies and bytes of the Response, and what guards have set', async () => {
    const moved = await ask('/door/moved', { redirect: 'manual' })
    assert.deepEqual([moved.status, moved.headers.get('location')], [303, '/elsewhere'])
    assert.deepEqual(
      moved.headers.getSetCookie().map((cookie) => cookie.split(';')[0]),
      ['seen=yes', 'one=1', 'two=2'],
    )
    assert.equal((await ask('/door/empty')).status, 204)
    const bare = await ask('/door/bare')
    assert.deepEqual([...new Uint8Array(await bare.arrayBuffer())], [1, 2, 3])
    assert.equal(bare.headers.get('content-type'), 'application/octet-stream', 'never JSON that it is not')
    assert.equal((await ask('/door/closed')).status, 403, 'a guard')
  })

  it('is one route for who looks at the service, with the path that came', async () => {
    await ask('/door/rooms/8')
    const kept = await until(async () => {
      const { body } = await json('/system/requests?limit=100')
      return body.find(({ path }: { path: string }) => path === '/door/rooms/8')
    }, 'its record')
    assert.deepEqual([kept.method, kept.route, kept.plugin], ['GET', '/door/*', 'doors.OpenDoor'])
    const { body: documents } = await json('/system/openapi.json')
    assert.equal(documents.paths['/door/{rest}'].get['x-route'], '/door/*')
  })

  it('takes bodies whole where they are short, and while they come', async () => {
    const echo = async (body: string | ReadableStream) =>
      (await ask('/stripped/twice/echo', { method: 'POST', body, duplex: 'half' })).text()
    assert.equal(await echo('short'), 'short')
    const long = 'x'.repeat(3_000_000)
    assert.equal(await echo(long), long)
    const pieces = ReadableStream.from([Buffer.from('one '), Buffer.from('two')])
    assert.equal(await echo(pieces), 'one two')
    assert.equal((await send('/door/x', 'GET', { 'content-length': '13' }, 'a body of GET')).status, 200)
  })

  it('survives a handler that gives up the body of a request while it waits for its end', async () => {
    const sent = request({ port: service().port, path: '/door/cancels', method: 'POST' })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    sent.write('first')
    await ended('cancels')
    sent.end()
    const [answer] = await answered
    assert.equal(Buffer.concat(await answer.toArray()).toString(), 'given up')
  })

  it('answers 413 for a body beyond its bound, also where the handler makes an error of its own of that', async () => {
    assert.equal((await ask('/door/unread', { method: 'POST', body: 'x'.repeat(2_000_000) })).status, 413)
    const long = Buffer.alloc(2_000_000)
    for (const what of ['caught', 'length'])
      assert.equal((await send(`/door/${what}`, 'POST', { 'transfer-encoding': 'chunked' }, long)).status, 413)
    const gigabyte = { 'content-length': String(1e9) }
    assert.equal((await send('/stripped/twice/unread', 'POST', gigabyte)).status, 413)
    const unread = await ask('/stripped/twice/unread', { method: 'POST', body: 'x'.repeat(9_000_000) })
    assert.equal(await unread.text(), 'did not look')
  })

  it('answers 500 for what is no answer, and the log says what to do', async () => {
    for (const [what, text] of [
      ['throw', 'thrown on purpose'],
      ['nothing', 'A fetch handler returned undefined: return a Response'],
      ['object', 'A fetch handler returned object: return a Response'],
      ['text', 'pipe text through a TextEncoderStream'],
    ] as const) {
      assert.equal((await ask(`/door/${what}`)).status, 500, what)
      const { msg, identity } = await faultOf(text)
      assert.deepEqual([msg.startsWith('/door/* failed'), identity], [true, 'doors.OpenDoor'])
    }
    await ended('text')
    assert.equal((await ask('/door/header')).status, 500)
    await ended('header')
    assert.equal(await (await ask('/door/worn')).text(), 'once')
    assert.equal((await ask('/door/worn')).status, 500)
    await faultOf('The body of the Response was read already')
  })

  it('ends a stream of which a hook has made an answer without a body', async () => {
    assert.equal((await ask('/door/unchanged')).status, 304)
    await ended('unchanged')
  })

  it('answers 504 when the time is up, and a thousand headers', async () => {
    assert.equal((await ask('/hurried/never')).status, 504)
    await ended('never')
    const sent = request({ port: service().port, path: '/door/headers', maxHeaderSize: 1 << 20 })
    sent.maxHeadersCount = 0
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    assert.deepEqual([answer.statusCode, answer.headers['x-header-999']], [200, '999'])
    answer.resume()
  })

  it('sends what is made while it is made, at once also the head of an answer that says nothing, until the client leaves', async () => {
    for (const what of ['ticks', 'silent']) {
      const leaving = new AbortController()
      const answer = await ask(`/door/${what}`, { signal: leaving.signal })
      assert.equal(answer.headers.get('content-type'), 'text/event-stream')
      if (what === 'ticks') {
        const reader = answer.body!.getReader()
        let text = ''
        while (text.split('tick').length < 4) text += Buffer.from((await reader.read()).value!).toString()
      }
      leaving.abort()
      await ended(what)
    }
    const broken = await ask('/door/breaks')
    assert.equal(broken.status, 200)
    await assert.rejects(broken.text())
    await faultOf('broken on purpose')
  })

  it('refuses paths that a URL takes for others, which guards have not seen', async () => {
    for (const path of [
      ...['/door/%2e%2e/closed', '/door/./closed', '/door/x\\..\\closed', '/door/..'],
      ...['/door/closed#/x', '/door/x%65d', '/door/%43x', '/door/a%2Db', '/door/a%5fb', '/door/%39'],
    ])
      assert.equal((await send(path, 'GET', {})).status, 400, path)
    const others = '/door/%20%7E%2F%3A%40%5B%E4%B8%AD%2565'
    assert.equal(JSON.parse((await send(others, 'GET', {})).text).url.slice(-others.length), others)
  })

  it('keeps to the bytes of headers beyond ASCII, as every fetch handler does', async () => {
    const { text } = await send('/door/x', 'GET', { 'x-name': Buffer.from('a→b').toString('latin1') })
    assert.equal(Buffer.from(JSON.parse(text).name, 'latin1').toString(), 'a→b')
  })
})

describe('http.mount beside other origins and behind proxies', () => {
  const origin = 'https://shop.example'
  const service = shareService({
    domains: DOMAINS,
    lanes: 1,
    env: { HTTP_CORS_ORIGINS: origin, HTTP_TRUSTED_PROXIES: '127.0.0.1', HTTP_ALLOWED_HOSTS: '*' },
  })
  const urlOf = async (headers: Record<string, string>) => {
    const sent = request({ port: service().port, path: '/door/x', headers, setHost: false }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    const text = Buffer.concat(await answer.toArray()).toString()
    return answer.statusCode === 200 ? JSON.parse(text).url : answer.statusCode
  }

  it('refuses a host that is a path, too', async () => {
    for (const host of ['a/door/closed?', 'a?', 'a#', 'a\\closed?', 'a@b', 'a b', 'a:b'])
      assert.equal(await urlOf({ host }), 400, host)
    assert.equal(await urlOf({ host: 'shop.example:1' }), 'http://shop.example:1/door/x')
    // node:http takes no empty one.
    assert.ok(['http://localhost/door/x', 400].includes(await urlOf({ host: '' })))
  })

  it('has the scheme of the client that the first proxy names', async () => {
    for (const [forwarded, scheme] of [
      ['https', 'https'],
      ['HTTPS, http', 'https'],
      ['http,https', 'http'],
      ['https://a/door/closed?', 'http'],
      ['', 'http'],
    ] as const)
      assert.equal(await urlOf({ host: 'a', 'x-forwarded-proto': forwarded }), `${scheme}://a/door/x`, forwarded)
  })

  it('has its preflights answered by HTTP_CORS_ORIGINS', async () => {
    const headers = { origin, 'access-control-request-method': 'POST' }
    const preflight = await service().fetch('/door/x', { method: 'OPTIONS', headers })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers.get('access-control-allow-origin'), origin)
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /PATCH/)
    const plain = await service().json('/door/x', { method: 'OPTIONS', headers: { origin } })
    assert.equal(plain.body.method, 'OPTIONS')
  })

  it('leaves them, and pages of all origins, to a handler with `crossOrigin`', async () => {
    const headers = { origin: 'https://provider.example', 'sec-fetch-site': 'cross-site' }
    const preflight = { ...headers, 'access-control-request-method': 'POST' }
    const asked = await service().json('/open/x', { method: 'OPTIONS', headers: preflight })
    assert.deepEqual([asked.body.method, asked.headers.get('access-control-allow-origin')], ['OPTIONS', null])
    assert.equal((await service().json('/open/x', { method: 'POST', headers })).body.method, 'POST')
    assert.equal((await service().fetch('/door/x', { method: 'POST', headers })).status, 403)
  })
})
