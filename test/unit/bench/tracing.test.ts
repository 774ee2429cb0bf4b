import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { isMet } from '../../../bench/bench-case.ts'
import { rowOf } from '../../../bench/cases/tracing.ts'
import type { LoadResult } from '../../../bench/load/plan.ts'
import { countSpans, startDiscardReceiver } from '../../../bench/tracing/receiver.ts'
import { EXPORT, type RawRequest } from '../../support/otlp/definitions.ts'

test('spans are counted without decoding them, over several resources and scopes', () => {
  const span = {
    traceId: Buffer.alloc(16, 1),
    name: 'x'.repeat(300),
    flags: 0x101,
    startTimeUnixNano: '1',
    attributes: [{ key: 'k', value: { stringValue: 'v' } }],
    events: [{ name: 'e' }, { name: 'f' }],
  }
  const scope = { scope: { name: 's' }, schemaUrl: 'u', spans: [span, span] }
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'n' } }] }
  const request = {
    resourceSpans: [{ resource, scopeSpans: [scope, scope, { spans: [] }] }, { scopeSpans: [scope] }],
  } as unknown as RawRequest
  const message = EXPORT.requestSerialize(request)
  assert.equal(countSpans(message), 6)
  assert.equal(countSpans(new Uint8Array()), 0)
  assert.throws(() => countSpans(message.subarray(0, message.length - 1)), /breaks off/)
})

test('the receiver of the benchmark takes all that an exporter sends, and says at its end how much', async (t) => {
  const receiver = await startDiscardReceiver()
  t.after(() => void receiver.stop())
  const exporter = new OTLPTraceExporter({ url: receiver.endpoint })
  const provider = new BasicTracerProvider({
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 2000, maxExportBatchSize: 400 })],
  })
  const tracer = provider.getTracer('bench')
  for (let index = 0; index < 1000; index++) tracer.startSpan('span').end()
  await provider.shutdown()
  const counts = receiver.stop()
  assert.deepEqual([counts.exports, counts.spans], [3, 1000])
  assert.ok(counts.bytes > 30_000 && counts.cpuMs > 0, JSON.stringify(counts))
})

test('a round of which no span arrived voids the row', () => {
  const sampling = { label: 'all sampled', env: {}, atLeast: 0.6 }
  const result = (okPerSec: number, serverCpuUsPerRequest: number) =>
    ({
      okPerSec,
      serverCpuUsPerRequest,
      ok: 90,
      okWithWarmup: 100,
      non2xx: 0,
      errors: 0,
      otherCores: 0,
    }) as unknown as LoadResult
  const rounds = { off: [result(1000, 10)], all: [result(700, 14)] }
  const counts = { exports: 1, spans: 300, bytes: 1, cpuMs: 1 }
  const row = rowOf('all', sampling, rounds, [counts])
  assert.deepEqual([row.ratio, row.faults, isMet(row)], [0.7, [], true])
  assert.match(row.note!, /14\.00 \/ 10\.00 µs, 1\.40 ×; 3\.00 spans per request arrived/)
  assert.equal(isMet(rowOf('all', sampling, rounds, [{ ...counts, spans: 0 }])), false)
})
