import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  NodeTracerProvider,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import type { RequestSpan, RequestStart } from '../../src/contracts/tracing.ts'
import { randomHex } from '../../src/core/causality/ids.ts'
import { deserializeSpan } from '../../src/tracing/encoding/serialized-span.ts'
import { type RecordAttributes, RUNTIME_SCOPE } from '../../src/tracing/encoding/span-record.ts'
import { createSpanRing, SpanWriter } from '../../src/tracing/encoding/span-writer.ts'
import { readableSpan } from '../../src/tracing/export-thread/console-exporter.ts'
import { exportRequest } from '../../src/tracing/export-thread/export-request.ts'
import type { QueuedSpan } from '../../src/tracing/export-thread/span-queue.ts'
import { SpanSource } from '../../src/tracing/export-thread/span-source.ts'
import { RequestSpans } from '../../src/tracing/primary/request-spans.ts'
import { RecordingProcessor } from '../../src/tracing/spans/recording-processor.ts'
import { RuntimeSpan } from '../../src/tracing/spans/runtime-span.ts'
import { TraceSampler } from '../../src/tracing/spans/sampler.ts'
import { remoteContext } from '../../src/tracing/spans/scope.ts'
import { EXPORT } from '../support/otlp/definitions.ts'
import { type Decoded, decodeRequest, type ReceivedSpan } from '../support/otlp/span.ts'
import { recordOf, TRACE_CONTEXT, TRACE_ID } from './ended-span.ts'

const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01vendor=some/thing`
const RESOURCE = { 'service.name': 'shop', 'heddle.lane': 3 }

/** A thread that leaves spans, and the one that exports them: what comes out is read by the published definitions. */
function pipe({ isForConsole = false } = {}) {
  const ring = createSpanRing()
  const writer = new SpanWriter(ring, isForConsole)
  const source = new SpanSource(ring, RESOURCE)
  const fetch = (): QueuedSpan<SpanSource>[] => {
    const batch: QueuedSpan<SpanSource>[] = []
    while (source.fetch(100, (span) => batch.push(span)) > 0);
    return batch
  }
  const decoded = (batch = fetch()): Decoded =>
    decodeRequest(EXPORT.requestDeserialize(Buffer.from(exportRequest(batch))))
  return { writer, source, fetch, decoded }
}

const VALUES: Record<string, unknown> = {
  empty: '',
  ascii: 'GET /orders/:kind',
  'of 127 bytes': 'x'.repeat(127),
  'of 128 bytes': 'x'.repeat(128),
  'of 4096 characters': 'ä'.repeat(4096),
  umlauts: 'Grüße, 世界 🚀',
  'half a pair': 'a\ud800b',
  nothing: 0,
  'minus zero': -0,
  one: 1,
  minus: -7,
  'beyond 32 bits': 2 ** 40 + 1,
  'the largest safe': Number.MAX_SAFE_INTEGER,
  'beyond 53 bits': 2 ** 60,
  'the smallest': -(2 ** 63),
  'beyond 64 bits': 2 ** 70,
  part: 0.1,
  infinite: Number.NEGATIVE_INFINITY,
  yes: true,
  no: false,
  list: ['a', '', 'ü'],
  numbers: [1, -2, 0.5],
  'no items': [],
  map: { inner: { deep: [true] }, text: 'b' },
  bytes: Buffer.from([0, 255, 7]),
}

describe('a span as bytes', () => {
  test('is read by the published definitions as it was written, field by field', () => {
    const { writer, decoded } = pipe()
    writer.write(
      recordOf({
        parent: PARENT,
        traceContext: `${TRACE_CONTEXT}vendor=some/thing`,
        isParentRemote: true,
        name: 'GET /ä',
        kind: SpanKind.SERVER,
        attributes: VALUES as RecordAttributes,
        events: [{ name: 'retry', atMs: 1_800_000_000_123.5, attributes: { attempt: 2 }, droppedAttributes: 3 }],
        links: [{ traceContext: PARENT, attributes: { why: 'cause' }, droppedAttributes: 0 }],
        statusCode: SpanStatusCode.ERROR,
        statusMessage: 'no',
        droppedAttributes: 4,
        droppedEvents: 300,
        droppedLinks: 70_000,
      }),
    )
    const { spans, faults } = decoded()
    assert.deepEqual(faults, [])
    const { attributes, ...span } = spans[0]!
    assert.deepEqual(span, {
      traceId: TRACE_ID,
      spanId: '00f067aa0ba902b7',
      parentSpanId: 'b7ad6b7169203331',
      traceState: 'vendor=some/thing',
      remoteParent: true,
      traceFlags: 1,
      name: 'GET /ä',
      kind: 'SERVER',
      startMs: 1_800_000_000_123.25,
      endMs: 1_800_000_000_124.5,
      startNs: 1_800_000_000_123_250_000n,
      endNs: 1_800_000_000_124_500_000n,
      events: [{ name: 'retry', timeMs: 1_800_000_000_123.5, attributes: { attempt: 2 }, droppedAttributesCount: 3 }],
      links: [
        {
          traceId: TRACE_ID,
          spanId: 'b7ad6b7169203331',
          traceState: 'vendor=some/thing',
          attributes: { why: 'cause' },
        },
      ],
      status: { code: 'ERROR', message: 'no' },
      resource: RESOURCE,
      scope: { name: 'heddle', version: '' },
      droppedAttributesCount: 4,
      droppedEventsCount: 300,
      droppedLinksCount: 70_000,
    } satisfies Omit<ReceivedSpan, 'attributes'>)
    assert.deepEqual(attributes, {
      ...VALUES,
      'half a pair': 'a\ufffdb',
      'minus zero': 0,
      'beyond 53 bits': 2n ** 60n,
      'the smallest': -(2n ** 63n),
    })
  })

  test('a list within a list within a list is cut off somewhere, and what has no value is left out', () => {
    const { writer, decoded } = pipe()
    const endless: unknown[] = []
    endless.push(endless)
    writer.write(
      recordOf({ attributes: { endless, none: undefined, nil: null, far: 1 } as unknown as RecordAttributes }),
    )
    const { spans } = decoded()
    assert.deepEqual(Object.keys(spans[0]!.attributes), ['endless', 'far'])
  })

  test('long texts are cut', () => {
    const { writer, decoded } = pipe()
    writer.write(
      recordOf({
        name: 'n'.repeat(5000),
        statusMessage: 'm'.repeat(5000),
        statusCode: 2,
        attributes: { t: 't'.repeat(9000) },
      }),
    )
    const { name, status, attributes } = decoded().spans[0]!
    assert.deepEqual([name.length, status.message.length, String(attributes.t).length], [1024, 1024, 4096])
  })

  test('one that cannot be encoded is lost, and the next is not', () => {
    const { writer, decoded, source } = pipe()
    writer.write(
      recordOf({
        attributes: {
          get broken(): string {
            throw new Error('on purpose')
          },
        },
      }),
    )
    for (const name of ['first', 'second']) writer.write(recordOf({ name }))
    assert.deepEqual(
      decoded().spans.map(({ name }) => name),
      ['first', 'second'],
    )
    assert.equal(source.takeLost(), 0, 'nobody knows what was lost before the first')
    writer.lose()
    writer.write(recordOf())
    decoded()
    assert.equal(source.takeLost(), 1)
  })

  test('spans of several scopes are told apart', () => {
    const { writer, decoded } = pipe()
    const scopes = [RUNTIME_SCOPE, { name: 'shop', version: '1.2.3' }, { name: 'shop', version: '' }]
    for (const scope of [...scopes, ...scopes]) writer.write(recordOf({ scope }))
    assert.deepEqual(
      decoded().spans.map(({ scope }) => `${scope.name} ${scope.version}`),
      ['heddle ', 'heddle ', 'shop 1.2.3', 'shop 1.2.3', 'shop ', 'shop '],
    )
  })

  test('times are exact to the fraction that a number holds', () => {
    const { writer, decoded } = pipe()
    const times = [
      0,
      1,
      0.000001,
      4_294_967_295.999,
      4_294_967_296,
      1_700_000_000_000.001,
      1_893_456_000_000 - 2 ** -12,
    ]
    for (const startMs of times) writer.write(recordOf({ startMs, endMs: startMs }))
    const wanted = times.map(
      (ms) => BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.round((ms - Math.floor(ms)) * 1e6)),
    )
    assert.deepEqual(
      decoded().spans.map(({ startNs }) => startNs),
      wanted,
    )
  })

  test('the console is told the same', () => {
    const { writer, fetch } = pipe({ isForConsole: true })
    writer.write(
      recordOf({
        parent: PARENT,
        isParentRemote: true,
        scope: { name: 'shop', version: '1.2.3' },
        attributes: VALUES as RecordAttributes,
        events: [{ name: 'retry', atMs: 1_800_000_000_123.5, attributes: { attempt: 2 }, droppedAttributes: 3 }],
        links: [{ traceContext: PARENT, attributes: { why: 'cause' }, droppedAttributes: 1 }],
        statusCode: SpanStatusCode.ERROR,
        statusMessage: 'no',
      }),
    )
    const { memory, from, to } = fetch()[0]!
    const resource = resourceFromAttributes(RESOURCE)
    const span = readableSpan(deserializeSpan(memory.subarray(from, to)), resource)
    assert.deepEqual(span.spanContext(), { traceId: TRACE_ID, spanId: '00f067aa0ba902b7', traceFlags: 1 })
    assert.deepEqual([span.parentSpanContext?.spanId, span.parentSpanContext?.isRemote], ['b7ad6b7169203331', true])
    assert.deepEqual([span.name, span.kind, span.status], ['a span', SpanKind.INTERNAL, { code: 2, message: 'no' }])
    assert.deepEqual(
      [span.startTime, span.endTime],
      [
        [1_800_000_000, 123_250_000],
        [1_800_000_000, 124_500_000],
      ],
    )
    assert.deepEqual(span.events, [
      { name: 'retry', time: [1_800_000_000, 123_500_000], attributes: { attempt: 2 }, droppedAttributesCount: 3 },
    ])
    assert.equal(span.links[0]!.context.traceState?.serialize(), 'vendor=some/thing')
    assert.deepEqual([span.links[0]!.attributes, span.links[0]!.droppedAttributesCount], [{ why: 'cause' }, 1])
    assert.deepEqual(span.instrumentationScope, { name: 'shop', version: '1.2.3' })
    const { bytes, ...others } = VALUES
    const { bytes: readBytes, ...read } = span.attributes as Record<string, unknown>
    assert.deepEqual(Buffer.from(readBytes as Uint8Array), bytes)
    assert.deepEqual(read, others)
  })
})

describe('where spans wait', () => {
  test('a ring that fills up gives up its oldest when it is asked to, and says how many', () => {
    const { writer, source, fetch, decoded } = pipe()
    let written = 0
    while (!source.isOverfull) writer.write(recordOf({ name: `span ${written++}` }))
    source.makeRoom()
    assert.equal(source.isOverfull, false)
    const left = fetch()
    const lost = source.takeLost()
    assert.equal(lost + left.length, written)
    assert.ok(left.length > written / 4, `${left.length} of ${written}`)
    assert.equal(decoded(left.slice(-1)).spans[0]!.name, `span ${written - 1}`)
  })

  test('a full ring loses the newest, and counts them', () => {
    const { writer, source, decoded } = pipe()
    for (let n = 0; n < 200; n++) writer.write(recordOf({ attributes: { text: 'x'.repeat(4096), n } }))
    const size = decoded().spans.length
    assert.equal(size, 200)
    for (let n = 0; n < 2000; n++) writer.write(recordOf({ attributes: { text: 'x'.repeat(4096), n } }))
    const { spans } = decoded()
    assert.ok(spans.length < 2000)
    assert.equal(spans[0]!.attributes.n, 0)
    writer.write(recordOf())
    decoded()
    assert.equal(source.takeLost(), 2000 - spans.length)
  })
})

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
      const [{ memory, from, to }] = printed.fetch() as [QueuedSpan<SpanSource>]
      const { parent, ...span } = deserializeSpan(memory.subarray(from, to))
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

describe('the sampler', () => {
  const ROOTS: Record<string, (ratio: number) => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  }
  for (const [name, root] of Object.entries(ROOTS)) {
    for (const prefix of ['', 'parentbased_'] as const) {
      test(`${prefix}${name} decides as the SDK's does`, () => {
        for (const ratio of [0, 0.01, 0.5, 0.99, 1]) {
          const theirs = prefix === '' ? root(ratio) : new ParentBasedSampler({ root: root(ratio) })
          const ours = new TraceSampler({
            otelTracesSampler: `${prefix}${name}` as 'always_on',
            otelTracesSamplerArg: ratio,
          })
          for (let n = 0; n < 500; n++) {
            const traceId = randomHex(16)
            for (const parent of ['', `00-${traceId}-b7ad6b7169203331-01`, `00-${traceId}-b7ad6b7169203331-02`]) {
              const { decision } = theirs.shouldSample(remoteContext(parent), traceId, 'x', SpanKind.SERVER, {}, [])
              assert.equal(
                ours.samples(parent, traceId),
                decision === SamplingDecision.RECORD_AND_SAMPLED,
                `${ratio} of ${traceId} under "${parent}"`,
              )
            }
          }
        }
      })
    }
  }
})

describe("a runtime's span in the hands of a plugin", () => {
  /** Does the same to a span of the SDK and to one of ours. @returns what comes out of both */
  function both(use: (span: Span) => void): [theirs: ReceivedSpan, ours: ReceivedSpan] {
    const { writer, decoded } = pipe()
    const nowMs = () => Date.now()
    const provider = new NodeTracerProvider({
      spanProcessors: [new RecordingProcessor(writer, nowMs)],
      spanLimits: { attributeValueLengthLimit: 4096 },
    })
    const parent = trace.setSpanContext(ROOT_CONTEXT, {
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
      traceFlags: TraceFlags.SAMPLED,
    })
    const attributes = { 'heddle.plugin': 'shop' }
    use(provider.getTracer('heddle').startSpan('handler', { attributes }, parent))
    use(
      new RuntimeSpan(writer, nowMs, {
        traceContext: TRACE_CONTEXT,
        parent: PARENT.slice(0, 55),
        around: null,
        name: 'handler',
        kind: SpanKind.INTERNAL,
        attributes,
      }),
    )
    assert.deepEqual(attributes, { 'heddle.plugin': 'shop' }, 'what all share is left alone')
    const { spans, faults } = decoded()
    assert.deepEqual(faults, [])
    return spans as [ReceivedSpan, ReceivedSpan]
  }

  const USES: Record<string, (span: Span) => void> = {
    'attributes of all kinds': (span) => {
      span.setAttribute('a', 1).setAttribute('', 'none').setAttribute('a', 2)
      span.setAttributes({
        list: ['x', 'y'],
        yes: true,
        none: undefined,
        odd: { nested: 1 } as never,
        mixed: ['a', 1] as never,
      })
      span.setAttribute('heddle.plugin', 'renamed')
    },
    'more attributes than it may have': (span) => {
      for (let n = 0; n < 140; n++) span.setAttribute(`key ${n}`, n)
      span.setAttribute('key 3', 'again')
    },
    'events, with and without times and attributes': (span) => {
      span.addEvent('plain').addEvent('with', { size: 3, bad: Symbol('x') as never })
      span.addEvent('then', [Math.floor(Date.now() / 1000), 5]).addEvent('both', { a: 1 }, new Date())
    },
    'more events than it may have': (span) => {
      for (let n = 0; n < 130; n++) span.addEvent(`event ${n}`)
    },
    'links, of which one points nowhere': (span) => {
      const context = { traceId: TRACE_ID, spanId: '00f067aa0ba902b7', traceFlags: TraceFlags.SAMPLED }
      span
        .addLink({ context, attributes: { why: 'cause' } })
        .addLinks([{ context }, { context: { ...context, traceId: 'x' } }])
    },
    'a status that turned out fine': (span) => {
      span.setStatus({ code: SpanStatusCode.ERROR, message: 'no' })
      span.setStatus({ code: SpanStatusCode.OK, message: 'ignored' })
      span.setStatus({ code: SpanStatusCode.ERROR, message: 'too late' })
    },
    'an error without words': (span) => {
      span.setStatus({ code: SpanStatusCode.ERROR, message: 7 as never }).setStatus({ code: SpanStatusCode.UNSET })
    },
    'a new name': (span) => {
      span.updateName('renamed')
    },
    'all that comes after its end': (span) => {
      span.end()
      span.setAttribute('late', 1).addEvent('late').updateName('late').setStatus({ code: SpanStatusCode.ERROR })
      assert.equal(span.isRecording(), false)
    },
  }
  for (const [what, use] of Object.entries(USES)) {
    test(`${what}: like one of the SDK`, () => {
      const [theirs, ours] = both((span) => {
        assert.equal(span.isRecording(), true)
        use(span)
        span.end()
        span.end()
      })
      const comparable = ({ name, status, attributes, links, events, ...span }: ReceivedSpan) => ({
        name,
        status,
        attributes,
        links,
        events: events.map((event) => ({
          ...event,
          timeMs: what.includes('more') ? 0 : Math.round(event.timeMs / 1e7),
        })),
        dropped: [span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount],
        traceId: span.traceId,
        parentSpanId: span.parentSpanId,
      })
      assert.deepEqual(comparable(ours), comparable(theirs))
    })
  }

  test('an end of its own, and an exception', () => {
    const [, ours] = both((span) => {
      span.recordException(new TypeError('on purpose'))
      span.end([2_000_000_001, 500_000_000])
    })
    assert.equal(ours.endMs, 2_000_000_001_500)
    const { 'exception.stacktrace': stack, ...exception } = ours.events[0]!.attributes
    assert.deepEqual(exception, { 'exception.type': 'TypeError', 'exception.message': 'on purpose' })
    assert.match(String(stack), /^TypeError: on purpose\n {4}at /)
  })
})
