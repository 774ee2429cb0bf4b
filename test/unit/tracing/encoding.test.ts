import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { deserializeSpan } from '../../../src/tracing/encoding/serialized-span.ts'
import { type RecordAttributes, RUNTIME_SCOPE } from '../../../src/tracing/encoding/span-record.ts'
import { readableSpan } from '../../../src/tracing/export-thread/console-exporter.ts'
import { release, SpanMemory } from '../../../src/tracing/export-thread/span-memory.ts'
import { SpanQueue } from '../../../src/tracing/export-thread/span-queue.ts'
import type { SpanSource } from '../../../src/tracing/export-thread/span-source.ts'
import { recordOf, TRACE_CONTEXT, TRACE_ID } from '../../rooms/tracing/ended-span.ts'
import type { ReceivedSpan } from '../../support/otlp/span.ts'
import { pipe, RESOURCE } from './span-pipe.ts'

const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01vendor=some/thing`

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
    const { piece, from, to } = fetch()[0]!
    const resource = resourceFromAttributes(RESOURCE)
    const span = readableSpan(deserializeSpan(piece.memory.subarray(from, to)), resource)
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
  test('the memory of spans that are gone is used again, and that of others is not', () => {
    const memory = new SpanMemory()
    const take = (length: number) => memory.take(length).piece
    const [first, second, third] = [take(200_000), take(50_000), take(200_000)]
    assert.equal(first, second)
    assert.notEqual(first, third)
    release({ piece: first })
    const fourth = take(200_000)
    assert.ok(fourth !== first && fourth !== third, 'one of the first is still there')
    release({ piece: second })
    assert.equal(take(200_000), first)
    const large = take(1_000_000)
    assert.equal(large.memory.length, 1_000_000)
    release({ piece: large })
    assert.equal(take(900_000), large)
  })

  test('spans come out as they went in, while others are dropped and their memory is used again', () => {
    const { writer, fetch, decoded } = pipe()
    const queue = new SpanQueue<SpanSource>(1000)
    for (let round = 0; round < 20; round++) {
      for (let n = 0; n < 700; n++) writer.write(recordOf({ name: `span ${round} ${n}`, attributes: { n } }))
      for (const span of fetch()) queue.push(span)
      const batch = queue.shift(300, 1 << 20)
      const names = decoded(batch).spans.map(({ name }) => name)
      const from = round * 700 + 700 - Math.min(1000, round * 400 + 700)
      const wanted = Array.from({ length: 300 }, (_, n) => `span ${Math.floor((from + n) / 700)} ${(from + n) % 700}`)
      assert.deepEqual(names, wanted)
      for (const span of batch) release(span)
    }
  })

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
