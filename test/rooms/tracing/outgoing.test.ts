import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { type OtlpReceiver, otlpReceiver } from '../../support/otlp/receiver.ts'
import { freePort } from '../../support/port.ts'
import { suiteOwner } from '../../support/shared-service.ts'

const DOMAINS = [fileURLToPath(new URL('./calling', import.meta.url))]
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const VALID = `00-${TRACE_ID}-${PARENT_ID}-01`

interface Call {
  traceparent: string
  tracestate: string
}

describe('what a handler asks of others, traced', () => {
  const owner = suiteOwner()
  let heddle: Heddle
  let receiver: OtlpReceiver
  let other: Server
  let url: string
  /** What the other service was asked, since it was read last. */
  let heard: Call[] = []

  /** @param headers as lines, so that a name may come twice */
  async function call(way: string, body: object, headers: string[] = []): Promise<{ data: string[]; calls: Call[] }> {
    heard = []
    const lines = ['host', `127.0.0.1:${heddle.port}`, 'content-type', 'application/json', ...headers]
    const text = JSON.stringify(body)
    const sent = request(`${heddle.url}/${way}`, {
      method: 'POST',
      headers: [...lines, 'content-length', String(text.length)],
    })
    sent.end(text)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    let got = ''
    for await (const chunk of answer) got += chunk
    assert.equal(answer.statusCode, 200, got)
    return { data: JSON.parse(got).data, calls: heard }
  }
  const passedOn = async (...headers: string[]): Promise<Call> => (await call('fetch', { url }, headers)).calls[0]!
  const traceIdOf = ({ traceparent }: Call): string => /^00-([0-9a-f]{32})-[0-9a-f]{16}-0[01]$/.exec(traceparent)![1]!
  const spanIdOf = ({ traceparent }: Call): string => traceparent.slice(36, 52)
  const clientSpans = async (traceId: string, count = 1) =>
    receiver.until((spans) => {
      const own = spans.filter((span) => span.traceId === traceId && span.kind === 'CLIENT')
      return own.length >= count ? own : null
    }, `${count} CLIENT spans in ${traceId}`)

  test('starts', async () => {
    other = createServer((asked, answer) => {
      const values = (name: string): string => asked.headersDistinct[name]?.join('|') ?? ''
      heard.push({ traceparent: values('traceparent'), tracestate: values('tracestate') })
      if (asked.url === '/refused') answer.statusCode = 503
      if (asked.url === '/cut') {
        answer.writeHead(200, { 'content-length': 100 }).write('begun')
        setTimeout(() => answer.destroy(), 20)
      } else if (asked.url !== '/silent') answer.end('answered')
    })
    other.on('upgrade', (_asked, socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n')
    })
    await once(other.listen(0, '127.0.0.1'), 'listening')
    owner.after(async () => {
      other.closeAllConnections()
      other.close()
    })
    url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/asked?card=4111`
    receiver = await otlpReceiver(owner)
    heddle = await startHeddle(owner, {
      domains: DOMAINS,
      lanes: 1,
      env: {
        OTEL_ENABLED: 'true',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
        OTEL_BSP_SCHEDULE_DELAY: '100',
      },
    })
  })

  for (const [way, method] of [
    ['fetch', 'GET'],
    ['request', 'POST'],
  ] as const) {
    test(`${way}: the trace goes on, in a span of its own, which has no value of the query`, async () => {
      const { data, calls } = await call(way, { url }, ['traceparent', VALID, 'tracestate', 'congo=t61rcWkgMzE'])
      assert.deepEqual(data, ['answered'])
      assert.equal(calls.length, 1)
      assert.equal(traceIdOf(calls[0]!), TRACE_ID)
      assert.equal(calls[0]!.tracestate, 'congo=t61rcWkgMzE')
      const span = (await receiver.until((spans) => {
        const server = spans.some(({ name }) => name === `POST /${way}`)
        return server ? spans.find(({ spanId }) => spanId === spanIdOf(calls[0]!)) : null
      }, 'the span that the other one was told, and its request'))!
      assert.match(
        receiver.tree(TRACE_ID),
        new RegExp(`INTERNAL calling\\.CallOthers\\.${way}Others\\n +CLIENT ${method}`),
      )
      assert.deepEqual(span.attributes, {
        'http.request.method': method,
        'http.response.status_code': 200,
        'url.full': url.replace('card=4111', 'card=REDACTED'),
        'server.address': '127.0.0.1',
        'server.port': (other.address() as AddressInfo).port,
      })
      assert.deepEqual([span.name, span.status.code], [method, 'UNSET'])
    })

    test(`${way}: what fails is a span that says how`, async () => {
      const failures = [
        [new URL('/refused', url).href, '503'],
        [new URL('/cut', url).href, way === 'fetch' ? 'UND_ERR_SOCKET' : 'ECONNRESET'],
        [`http://127.0.0.1:${await freePort()}/`, 'ECONNREFUSED'],
      ]
      for (const [at, type] of failures) {
        const traceId = String(failures.findIndex(([one]) => one === at) + 1).padStart(32, way === 'fetch' ? 'a' : 'b')
        await call(way, { url: at }, ['traceparent', `00-${traceId}-${PARENT_ID}-01`])
        const [span] = await clientSpans(traceId)
        assert.deepEqual([span!.status.code, span!.attributes['error.type']], ['ERROR', type], at)
      }
    })

    test(`${way}: a handler that says itself where in a trace it is stays right`, async () => {
      const own = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`
      const { calls } = await call(way, { url, headers: { TraceParent: own } })
      assert.deepEqual(calls, [{ traceparent: own, tracestate: '' }])
    })
  }

  test('a request whose time is over has failed', async () => {
    const traceId = 'e'.repeat(32)
    const at = new URL('/silent', url).href
    const { data } = await call('fetch', { url: at, timeoutMs: 100 }, ['traceparent', `00-${traceId}-${PARENT_ID}-01`])
    assert.deepEqual(data, ['TimeoutError'])
    assert.equal((await clientSpans(traceId))[0]!.status.code, 'ERROR')
  })

  test('what becomes another protocol carries the trace, and its span ends', async () => {
    const traceId = 'f'.repeat(32)
    await call('upgrade', { url }, ['traceparent', `00-${traceId}-${PARENT_ID}-01`])
    assert.equal((await clientSpans(traceId))[0]!.name, 'GET')
  })

  test('each request has another parent, recorded or not', async () => {
    for (const flags of ['00', '01']) {
      const { calls } = await call('fetch', { url, times: 3 }, ['traceparent', `00-${TRACE_ID}-${PARENT_ID}-${flags}`])
      assert.deepEqual(new Set(calls.map(traceIdOf)), new Set([TRACE_ID]))
      assert.equal(new Set([PARENT_ID, ...calls.map(spanIdOf)]).size, 4)
      assert.ok(calls.every(({ traceparent }) => traceparent.endsWith(flags)))
    }
    const { calls } = await call('fetch', { url, times: 3 })
    assert.equal(new Set(calls.map(traceIdOf)).size, 1)
    assert.equal(new Set(calls.map(spanIdOf)).size, 3)
  })

  // The cases of W3C's own suite for Trace Context.
  test('a traceparent that is none begins a trace, one of a later version goes on', async () => {
    const rest = `${TRACE_ID}-${PARENT_ID}-01`
    const begun = [
      `00-${rest}.`,
      `00-${rest}-more`,
      `cc-${rest}.more`,
      `ff-${rest}`,
      `.0-${rest}`,
      `000-${rest}`,
      `0-${rest}`,
      `00-${'0'.repeat(32)}-${PARENT_ID}-01`,
      `00-${TRACE_ID.slice(1)}.-${PARENT_ID}-01`,
      `00-${TRACE_ID}0-${PARENT_ID}-01`,
      `00-${TRACE_ID.slice(1)}-${PARENT_ID}-01`,
      `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
      `00-${TRACE_ID}-${PARENT_ID}0-01`,
      `00-${TRACE_ID}-${PARENT_ID.slice(1)}-01`,
      `00-${TRACE_ID}-${PARENT_ID}-.0`,
      `00-${TRACE_ID}-${PARENT_ID}-001`,
      `00-${TRACE_ID}-${PARENT_ID}-1`,
      `00-${TRACE_ID.toUpperCase()}-${PARENT_ID}-01`,
    ]
    for (const traceparent of begun) {
      const passed = await passedOn('traceparent', traceparent, 'tracestate', 'foo=1')
      assert.notEqual(traceIdOf(passed), TRACE_ID, traceparent)
      assert.equal(passed.tracestate, '', traceparent)
    }
    assert.notEqual(traceIdOf(await passedOn('traceparent', VALID, 'traceparent', VALID)), TRACE_ID, 'two of them')
    for (const traceparent of [VALID, `cc-${rest}`, `cc-${rest}-more`, ` \t${VALID} \t`])
      assert.equal(traceIdOf(await passedOn('TraceParent', traceparent)), TRACE_ID, traceparent)
  })

  test('a tracestate goes on whole, or not at all', async () => {
    const state = async (...lines: string[]): Promise<string> => {
      const headers = lines.flatMap((line) => ['tracestate', line])
      const passed = await passedOn('traceparent', VALID, ...headers)
      assert.equal(traceIdOf(passed), TRACE_ID, lines.join())
      return passed.tracestate
    }
    const members = (count: number): string => Array.from({ length: count }, (_, n) => `m${n}=${n}`).join(',')
    const many = (count: number): string => Array.from({ length: count }, (_, n) => `k${n}=${'v'.repeat(96)}`).join(',')
    const whole: [string[], string][] = [
      [['foo=1,bar=2'], 'foo=1,bar=2'],
      [['foo=1', '', 'bar=2,', 'baz=3'], 'foo=1,bar=2,baz=3'],
      [['', 'foo=1'], 'foo=1'],
      [['foo=1 \t , \t bar=2, \t baz=3'], 'foo=1,bar=2,baz=3'],
      [['\tfoo= 1 2 \t'], 'foo= 1 2'],
      [[members(32)], members(32)],
      [['az09_-*/@az09_-*/=!"#$%&\'()*+-./:;<>?@[\\]^_`{|}~'], 'az09_-*/@az09_-*/=!"#$%&\'()*+-./:;<>?@[\\]^_`{|}~'],
      [['1foo=1,0=2,9_-*/=3,7x@y=4'], '1foo=1,0=2,9_-*/=3,7x@y=4'],
      [[`foo=1${' '.repeat(600)},\t, bar=2`], 'foo=1,bar=2'],
      [[`a=${'1'.repeat(256)}`, 'b=2', `c=${'3'.repeat(253)}`, 'd=4'], `a=${'1'.repeat(256)},b=2,d=4`],
      [[many(6)], many(5)],
      [['foo=1', `${'z'.repeat(256)}=1`], `foo=1,${'z'.repeat(256)}=1`],
      [['foo=1', `${'t'.repeat(241)}@${'v'.repeat(14)}=1`], `foo=1,${'t'.repeat(241)}@${'v'.repeat(14)}=1`],
    ]
    for (const [lines, expected] of whole) {
      assert.equal(await state(...lines), expected)
    }
    const none = [
      ['foo=1,foo=1'],
      ['foo=1', 'foo=2'],
      ['foo =1,bar=2'],
      ['FOO=1,bar=2'],
      ['foo.bar=1,bar=2'],
      ['foo@=1,bar=2'],
      ['@foo=1,bar=2'],
      ['foo@@bar=1,bar=2'],
      ['foo@bar@baz=1,bar=2'],
      [members(33)],
      ['foo=1', `${'z'.repeat(257)}=1`],
      ['foo=1', `${'t'.repeat(242)}@v=1`],
      ['foo=1', `t@${'v'.repeat(15)}=1`],
      ['foo=bar=baz,bar=2'],
      ['foo=,bar=3'],
      ['foo,bar=3'],
      [`1${'z'.repeat(256)}=1`],
      ['_foo=1'],
      ['foo@1bar=1'],
      [`foo=${'1'.repeat(257)}`],
      [`foo=1,${'x'.repeat(600)}`],
    ]
    for (const lines of none) assert.equal(await state(...lines), '', lines.join('|'))
    assert.equal((await passedOn('tracestate', 'foo=1')).tracestate, '', 'without a traceparent')
  })

  test('nothing that came in was a fault', () => assert.deepEqual(receiver.faults, []))
})
