import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { RequestSpan, RequestStart } from '../../../src/contracts/tracing.ts'
import { deserializeSpan } from '../../../src/tracing/encoding/serialized-span.ts'
import type { SpanWriter } from '../../../src/tracing/encoding/span-writer.ts'
import type { QueuedSpan } from '../../../src/tracing/export-thread/span-queue.ts'
import type { SpanSource } from '../../../src/tracing/export-thread/span-source.ts'
import { RequestSpans } from '../../../src/tracing/primary/request-spans.ts'
import { TraceSampler } from '../../../src/tracing/spans/sampler.ts'
import { TRACE_ID } from '../../rooms/tracing/ended-span.ts'
import { pipe } from './span-pipe.ts'

const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01vendor=some/thing`

describe('the span of a request', () => {
  const START: RequestStart = {
    method: 'GET',
    path: '/hello/ada',
    query: 'pin=1234&flag&a=b=c',
    host: '[::1]:8080',
    userAgent: 'curl/8',
    requestId: 'r-1',
    route: '/hello/:name',
    plugin: 'examples.Hello',
  }
  const spansOf = (writer: SpanWriter) =>
    new RequestSpans(writer, new TraceSampler({ otelTracesSampler: 'always_on', otelTracesSamplerArg: 1 }), () => 1.5)

  test('tells of it by the HTTP conventions, whichever was before it', () => {
    const { writer, decoded } = pipe()
    const requests = spansOf(writer)
    const starts: [Partial<RequestStart>, number, number][] = [
      [{}, 200, 0],
      [{}, 200, 1],
      [{}, 503, 1],
      [{ userAgent: '', host: '' }, 0, -1],
      [{ method: 'BREW', route: '', plugin: '', query: '' }, 404, -1],
      [{}, 200, 0],
    ]
    for (const [more, status, lane] of starts) {
      const span = requests.begin('', '', () => ({ ...START, ...more })) as RequestSpan
      span.servedBy = lane
      span.end(status)
    }
    const { spans, faults } = decoded()
    assert.deepEqual(faults, [])
    const known = {
      'http.request.method': 'GET',
      'url.scheme': 'http',
      'network.protocol.version': '1.1',
      'http.route': '/hello/:name',
      'heddle.plugin': 'examples.Hello',
    }
    const client = { 'server.address': '::1', 'server.port': 8080, 'user_agent.original': 'curl/8' }
    const own = {
      'url.path': '/hello/ada',
      'heddle.request_id': 'r-1',
      'url.query': 'pin=REDACTED&REDACTED&a=REDACTED',
    }
    const served = (lane: number, status: number) => ({ 'heddle.lane': lane, 'http.response.status_code': status })
    assert.deepEqual(
      spans.map(({ attributes }) => attributes),
      [
        { ...known, ...served(0, 200), ...client, ...own },
        { ...known, ...served(1, 200), ...client, ...own },
        { ...known, ...served(1, 503), 'error.type': '503', ...client, ...own },
        { ...known, 'error.type': 'client_gone', ...own },
        {
          'http.request.method': '_OTHER',
          'http.request.method_original': 'BREW',
          'url.scheme': 'http',
          'network.protocol.version': '1.1',
          'http.response.status_code': 404,
          ...client,
          'url.path': '/hello/ada',
          'heddle.request_id': 'r-1',
        },
        { ...known, ...served(0, 200), ...client, ...own },
      ],
    )
    assert.deepEqual(
      spans.map(({ name, kind, status }) => `${kind} ${name} ${status.code}`),
      [
        'SERVER GET /hello/:name UNSET',
        'SERVER GET /hello/:name UNSET',
        'SERVER GET /hello/:name ERROR',
        'SERVER GET /hello/:name ERROR',
        'SERVER HTTP UNSET',
        'SERVER GET /hello/:name UNSET',
      ],
    )
  })

  test('is the same on the console', () => {
    for (const [method, status, lane] of [
      ['GET', 200, 0],
      ['BREW', 500, -1],
      ['GET', 0, 1],
    ] as const) {
      const [sent, printed] = [pipe(), pipe({ isForConsole: true })]
      for (const { writer } of [sent, printed]) {
        const span = spansOf(writer).begin(PARENT.slice(0, 55), '', () => ({ ...START, method })) as RequestSpan
        span.servedBy = lane
        span.end(status)
      }
      const [received] = sent.decoded().spans
      const [{ piece, from, to }] = printed.fetch() as [QueuedSpan<SpanSource>]
      const { parent, ...span } = deserializeSpan(piece.memory.subarray(from, to))
      assert.deepEqual([span.name, SpanKind[span.kind]], [received!.name, received!.kind])
      assert.deepEqual(span.attributes, received!.attributes)
      assert.deepEqual([SpanStatusCode[span.statusCode], parent], [received!.status.code, PARENT.slice(0, 55)])
    }
  })

  test('of ever new clients is right, however many there are', () => {
    const { writer, decoded } = pipe()
    const requests = spansOf(writer)
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 2500; n++) {
        const start = { ...START, userAgent: `client ${n}`, host: `h${n % 7}` }
        ;(requests.begin('', '', () => start) as RequestSpan).end(200)
      }
    }
    const { spans } = decoded()
    assert.equal(spans.length, 5000)
    for (const [n, { attributes }] of spans.entries()) {
      assert.equal(attributes['user_agent.original'], `client ${n % 2500}`)
      assert.equal(attributes['server.address'], `h${(n % 2500) % 7}`)
    }
  })
})
