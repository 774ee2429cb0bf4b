import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ROOT_CONTEXT, type Span, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { DbError } from '../../../src/core/errors/catalogue.ts'
import { SpanScope } from '../../../src/tracing/scope.ts'
import { ATTRIBUTE_MAX_LENGTH } from '../../../src/tracing/span-record.ts'
import { Recording } from '../../../src/tracing/thread-tracing.ts'
import { TRACE_ID } from '../../rooms/tracing/ended-span.ts'
import type { ReceivedSpan } from '../../support/otlp/span.ts'
import { pipe } from './span-pipe.ts'

/** By how much the clock of all threads is ahead of this thread's. Milliseconds. */
const AHEAD_MS = 5000

describe('a span in the hands of a plugin', () => {
  /** @returns what comes out of it */
  function made(use: (span: Span) => void, scope = 'shop', startTime?: [number, number]): ReceivedSpan {
    const { writer, decoded } = pipe()
    const nowMs = () => performance.timeOrigin + performance.now() + AHEAD_MS
    const provider = new NodeTracerProvider({
      spanProcessors: [new Recording(writer, nowMs)],
      spanLimits: { attributeValueLengthLimit: ATTRIBUTE_MAX_LENGTH },
    })
    const parent = { traceId: TRACE_ID, spanId: 'b7ad6b7169203331', traceFlags: TraceFlags.SAMPLED }
    const context = trace.setSpanContext(ROOT_CONTEXT, parent)
    const span = provider.getTracer(scope).startSpan('work', startTime === undefined ? {} : { startTime }, context)
    use(span)
    span.end()
    const { spans, faults } = decoded()
    assert.deepEqual(faults, [])
    assert.deepEqual([spans[0]!.parentSpanId, spans[0]!.scope.name], [parent.spanId, scope])
    return spans[0]!
  }

  test('has the attributes of all kinds that it was given', () => {
    const { attributes } = made((span) => {
      span.setAttribute('a', 1).setAttribute('', 'none').setAttribute('a', 2)
      span.setAttributes({ list: ['x', 'y'], yes: true, none: undefined, odd: { nested: 1 } as never })
      span.setAttributes({ endless: Number.NEGATIVE_INFINITY, numbers: [1, Number.NaN] })
    })
    assert.deepEqual(attributes, { a: 2, list: ['x', 'y'], yes: true, endless: '-Infinity', numbers: ['1', 'NaN'] })
  })

  test('has no more attributes and events than it may, and says how many were dropped', () => {
    const { attributes, events, droppedAttributesCount, droppedEventsCount } = made((span) => {
      for (let n = 0; n < 140; n++) span.setAttribute(`key ${n}`, n).addEvent(`event ${n}`)
    })
    assert.deepEqual([Object.keys(attributes).length, droppedAttributesCount], [128, 12])
    assert.deepEqual([events.length, droppedEventsCount, events[0]!.name], [128, 12, 'event 12'])
  })

  test('has texts that are cut', () => {
    const { name, status, attributes, events } = made((span) => {
      span.updateName('n'.repeat(5000)).setStatus({ code: SpanStatusCode.ERROR, message: 'm'.repeat(5000) })
      span.setAttribute('k'.repeat(5000), 't'.repeat(9000)).addEvent('e'.repeat(5000), { t: 't'.repeat(9000) })
    })
    const [[key, value]] = Object.entries(attributes) as [[string, string]]
    assert.deepEqual([name.length, status.message.length, key.length, value.length], [1024, 1024, 1024, 4096])
    assert.deepEqual([events[0]!.name.length, String(events[0]!.attributes.t).length], [1024, 4096])
  })

  test('begins and ends by the clock of all threads', () => {
    const beganMs = Date.now()
    const { startMs, endMs } = made(() => {})
    assert.ok(startMs >= beganMs + AHEAD_MS - 1 && startMs <= Date.now() + AHEAD_MS + 1, `${startMs - beganMs}`)
    assert.ok(endMs >= startMs && endMs - startMs < 1000)
  })

  test('has the times that a plugin gives', () => {
    const { startNs, endMs } = made((span) => span.end([2_000_000_001, 500_000_000]), 'shop', [2_000_000_000, 5])
    assert.deepEqual([startNs, endMs], [2_000_000_000_000_000_005n, 2_000_000_001_500])
  })

  test('shows the exception of a plugin, and of a database only its kind', () => {
    const { events } = made((span) => {
      span.recordException(new TypeError('on purpose'))
      span.recordException(new DbError('syntax', 'near "4111"'))
    }, 'heddle')
    const [own, ofDatabase] = events.map(({ attributes }) => attributes)
    const { 'exception.stacktrace': stack, ...exception } = own!
    assert.deepEqual(exception, { 'exception.type': 'TypeError', 'exception.message': 'on purpose' })
    assert.match(String(stack), /^TypeError: on purpose\n {4}at /)
    assert.equal(ofDatabase!['exception.message'], 'Database error: syntax')
  })

  test('that has failed stays as it is', () => {
    const { status, attributes, events } = made((span) => {
      const scope = new SpanScope(span, ROOT_CONTEXT)
      scope.fail(new RangeError('too far'))
      scope.fail(new Error('again'))
      span.setAttribute('late', 1).addEvent('late').updateName('late').setStatus({ code: SpanStatusCode.OK })
    })
    assert.deepEqual(status, { code: 'ERROR', message: 'too far' })
    assert.deepEqual(attributes, { 'error.type': 'RangeError' })
    assert.deepEqual(
      events.map(({ name }) => name),
      ['exception'],
    )
  })
})
