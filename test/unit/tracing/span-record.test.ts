import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { hrTimeOf } from '../../../src/tracing/span-record.ts'
import { recordOf, TRACE_CONTEXT, TRACE_ID } from '../../rooms/tracing/ended-span.ts'
import type { ReceivedSpan } from '../../support/otlp/span.ts'
import { pipe, RESOURCE } from './span-pipe.ts'

const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01vendor=some/thing`

const VALUES = {
  empty: '',
  ascii: 'GET /orders/:kind',
  'of 4096 characters': 'ä'.repeat(4096),
  umlauts: 'Grüße, 世界 🚀',
  nothing: 0,
  one: 1,
  minus: -7,
  'beyond 32 bits': 2 ** 40 + 1,
  'the largest safe': Number.MAX_SAFE_INTEGER,
  part: 0.1,
  yes: true,
  no: false,
  list: ['a', '', 'ü'],
  numbers: [1, -2, 3],
  'no items': [],
}

describe('a span that leaves its thread', () => {
  test('is read by the published definitions as it was written, field by field', () => {
    const { writer, decoded } = pipe()
    writer.write(() =>
      recordOf({
        parent: PARENT,
        context: `${TRACE_CONTEXT}vendor=some/thing`,
        isParentRemote: true,
        name: 'GET /ä',
        kind: SpanKind.SERVER,
        attributes: { ...VALUES, 'half a pair': 'a\ud800b' },
        events: [{ name: 'retry', time: [1_800_000_000, 123_500_000], attributes: { attempt: 2 }, dropped: 3 }],
        links: [{ context: PARENT, attributes: { why: 'cause' } }],
        status: { code: SpanStatusCode.ERROR, message: 'no' },
        dropped: [4, 300, 70_000],
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
    assert.deepEqual(attributes, { ...VALUES, 'half a pair': 'a\ufffdb' })
  })

  test('is what it was for the console, too', () => {
    const { writer, fetch } = pipe()
    writer.write(() => recordOf({ parent: PARENT, scope: { name: 'shop', version: '1.2.3' }, end: [1_800_000_001, 1] }))
    const [span] = fetch()
    assert.deepEqual(span!.spanContext(), { traceId: TRACE_ID, spanId: '00f067aa0ba902b7', traceFlags: 1 })
    assert.deepEqual([span!.parentSpanContext?.spanId, span!.parentSpanContext?.isRemote], ['b7ad6b7169203331', false])
    assert.equal(span!.parentSpanContext?.traceState?.serialize(), 'vendor=some/thing')
    assert.deepEqual([span!.duration, span!.status], [[0, 876_750_001], { code: 0 }])
    assert.deepEqual(span!.instrumentationScope, { name: 'shop', version: '1.2.3' })
  })

  test('that cannot be written is lost, and the next is not', () => {
    const { writer, decoded, reader } = pipe()
    const broken = recordOf({
      attributes: {
        get broken(): string {
          throw new Error('on purpose')
        },
      },
    })
    writer.write(() => broken)
    for (const name of ['first', 'second']) writer.write(() => recordOf({ name }))
    assert.deepEqual(
      decoded().spans.map(({ name }) => name),
      ['first', 'second'],
    )
    assert.equal(reader.takeLost(), 0, 'nobody knows what was lost before the first')
    writer.write(() => broken)
    writer.write(() => recordOf())
    decoded()
    assert.equal(reader.takeLost(), 1)
  })

  test('of several scopes are told apart', () => {
    const { writer, decoded } = pipe()
    const scopes = [undefined, { name: 'shop', version: '1.2.3' }, { name: 'shop' }]
    for (const scope of [...scopes, ...scopes]) writer.write(() => recordOf(scope && { scope }))
    assert.deepEqual(
      decoded().spans.map(({ scope }) => `${scope.name} ${scope.version}`),
      ['heddle ', 'heddle ', 'shop 1.2.3', 'shop 1.2.3', 'shop ', 'shop '],
    )
  })

  test('times are exact to the fraction that a number holds', () => {
    for (const ms of [0, 1, 0.000001, 4_294_967_295.999, 1_700_000_000_000.001, 1_893_456_000_000 - 2 ** -12]) {
      const [seconds, ns] = hrTimeOf(ms)
      const wanted = BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.round((ms - Math.floor(ms)) * 1e6))
      const got = BigInt(seconds) * 1_000_000_000n + BigInt(ns)
      assert.ok(got - wanted <= 1n && wanted - got <= 1n, `${ms}: ${got} is not ${wanted}`)
    }
  })
})

describe('the ring of a thread', () => {
  test('gives up its oldest when it is asked to, and says how many', () => {
    const { writer, reader, fetch } = pipe()
    let written = 0
    while (reader.fill < 0.5) writer.write(() => recordOf({ name: `span ${written++}` }))
    reader.skipTo(0.25)
    assert.ok(reader.fill <= 0.25)
    const left = fetch()
    assert.equal(reader.takeLost() + left.length, written)
    assert.ok(left.length > written / 5, `${left.length} of ${written}`)
    assert.equal(left.at(-1)!.name, `span ${written - 1}`)
  })

  test('loses the newest when it is full, and counts them', () => {
    const { writer, reader, decoded } = pipe()
    for (let n = 0; n < 200; n++) writer.write(() => recordOf({ attributes: { text: 'x'.repeat(4096), n } }))
    assert.equal(decoded().spans.length, 200)
    for (let n = 0; n < 2000; n++) writer.write(() => recordOf({ attributes: { text: 'x'.repeat(4096), n } }))
    const { spans } = decoded()
    assert.ok(spans.length < 2000)
    assert.equal(spans[0]!.attributes.n, 0)
    writer.write(() => recordOf())
    decoded()
    assert.equal(reader.takeLost(), 2000 - spans.length)
  })
})
