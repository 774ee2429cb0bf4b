import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { RecordingProcessor } from '../../../src/tracing/spans/recording-processor.ts'
import { RuntimeSpan } from '../../../src/tracing/spans/runtime-span.ts'
import { TRACE_CONTEXT, TRACE_ID } from '../../rooms/tracing/ended-span.ts'
import type { ReceivedSpan } from '../../support/otlp/span.ts'
import { pipe } from './span-pipe.ts'

const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01vendor=some/thing`

describe("a runtime's span in the hands of a plugin", () => {
  /** Does the same to a span of the SDK and to one of ours. @returns what comes out of both */
  function both(use: (span: Span) => void, areShared: boolean): [theirs: ReceivedSpan, ours: ReceivedSpan] {
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
        areShared,
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
    nothing: () => {},
    'a new name': (span) => {
      span.updateName('renamed')
    },
    'all that comes after its end': (span) => {
      span.end()
      span.setAttribute('late', 1).addEvent('late').updateName('late').setStatus({ code: SpanStatusCode.ERROR })
      assert.equal(span.isRecording(), false)
    },
  }
  const FORMS = { 'attributes of its own': false, 'attributes that it shares': true }
  for (const [[what, use], [form, areShared]] of Object.entries(USES).flatMap((each) =>
    Object.entries(FORMS).map((of) => [each, of] as const),
  )) {
    test(`with ${form}, ${what}: like one of the SDK`, () => {
      const [theirs, ours] = both((span) => {
        assert.equal(span.isRecording(), true)
        use(span)
        span.end()
        span.end()
      }, areShared)
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
    }, true)
    assert.equal(ours.endMs, 2_000_000_001_500)
    const { 'exception.stacktrace': stack, ...exception } = ours.events[0]!.attributes
    assert.deepEqual(exception, { 'exception.type': 'TypeError', 'exception.message': 'on purpose' })
    assert.match(String(stack), /^TypeError: on purpose\n {4}at /)
  })
})
