import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RequestSpan, RequestStart } from '../../../src/contracts/tracing.ts'
import { RequestSpans } from '../../../src/tracing/request-spans.ts'
import { TraceSampler } from '../../../src/tracing/sampler.ts'
import type { SpanWriter } from '../../../src/tracing/span-record.ts'
import { pipe } from './span-pipe.ts'

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
  const sampler = new TraceSampler({ otelTracesSampler: 'always_on', otelTracesSamplerArg: 1 })
  const spansOf = (writer: SpanWriter) => new RequestSpans({ writer, sampler, nowMs: () => 1.5 })

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
})
