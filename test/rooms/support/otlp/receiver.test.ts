import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api'
import { TraceState } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-node'
import { EXPORT, type RawRequest, type RawResponse } from '../../../support/otlp/definitions.ts'
import { type OtlpReceiver, otlpReceiver } from '../../../support/otlp/receiver.ts'

const REMOTE = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  traceFlags: TraceFlags.SAMPLED,
  isRemote: true,
  traceState: new TraceState('vendor=some/thing'),
}

/** The real SDK with the real exporter, which gives up after `timeoutMs`. */
function provider(t: TestContext, { endpoint }: OtlpReceiver, timeoutMs = 10_000) {
  const metadata = new Metadata()
  metadata.set('x-tenant', 'blue')
  const exporter = new OTLPTraceExporter({
    url: endpoint,
    metadata,
    timeoutMillis: timeoutMs,
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'receiver-test' }),
    spanProcessors: [
      new BatchSpanProcessor(exporter, { scheduledDelayMillis: 60_000, exportTimeoutMillis: timeoutMs }),
    ],
  })
  t.after(() => provider.shutdown().catch(() => {}))
  return { tracer: provider.getTracer('some-scope', '1.2.3'), flush: () => provider.forceFlush() }
}

test('what an exporter sends is had again, field by field', async (t) => {
  const receiver = await otlpReceiver(t)
  const { tracer, flush } = provider(t, receiver)
  const attributes = {
    text: 'ä',
    whole: -7,
    part: 0.5,
    large: 2 ** 60,
    yes: true,
    list: ['a', 'b'],
  } satisfies Attributes
  const root = tracer.startSpan(
    'GET /a',
    { kind: SpanKind.SERVER, attributes, startTime: [1_800_000_000, 123_456_789] },
    trace.setSpanContext(ROOT_CONTEXT, REMOTE),
  )
  const inside = trace.setSpan(ROOT_CONTEXT, root)
  const link = { context: { ...REMOTE, isRemote: true }, attributes: { why: 'cause' } }
  const late = tracer.startSpan(
    'late',
    { kind: SpanKind.PRODUCER, startTime: [1_800_000_000, 300_000_000], links: [link] },
    inside,
  )
  const early = tracer.startSpan('early', { startTime: [1_800_000_000, 200_000_000] }, inside)
  tracer
    .startSpan(
      'inner',
      { kind: SpanKind.CLIENT, startTime: [1_800_000_000, 210_000_000] },
      trace.setSpan(inside, early),
    )
    .end([1_800_000_000, 220_000_000])
  early.addEvent('retry', { attempt: 2 }, [1_800_000_000, 215_000_000])
  early.setStatus({ code: SpanStatusCode.ERROR, message: 'no luck' })
  for (const span of [early, late, root]) span.end([1_800_000_001, 0])
  await flush()

  const spans = await receiver.until((all) => (all.length === 4 ? all : undefined), 'four spans')
  const { startNs, endNs, ...server } = spans.find(({ kind }) => kind === 'SERVER')!
  assert.deepEqual([startNs, endNs], [1_800_000_000_123_456_789n, 1_800_000_001_000_000_000n])
  assert.deepEqual(
    { ...server, resource: server.resource['service.name'] },
    {
      traceId: REMOTE.traceId,
      spanId: root.spanContext().spanId,
      parentSpanId: REMOTE.spanId,
      traceState: 'vendor=some/thing',
      remoteParent: true,
      traceFlags: 1,
      name: 'GET /a',
      kind: 'SERVER',
      startMs: 1_800_000_000_123.456,
      endMs: 1_800_000_001_000,
      attributes: { ...attributes, large: server.attributes.large },
      events: [],
      links: [],
      status: { code: 'UNSET', message: '' },
      resource: 'receiver-test',
      scope: { name: 'some-scope', version: '1.2.3' },
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    },
  )
  assert.equal(Number(server.attributes.large), 2 ** 60)
  const child = spans.find(({ name }) => name === 'early')!
  assert.deepEqual(child.status, { code: 'ERROR', message: 'no luck' })
  assert.deepEqual(child.events, [
    { name: 'retry', timeMs: 1_800_000_000_215, attributes: { attempt: 2 }, droppedAttributesCount: 0 },
  ])
  assert.equal(child.remoteParent, false)
  assert.deepEqual(spans.find(({ name }) => name === 'late')!.links, [
    { traceId: REMOTE.traceId, spanId: REMOTE.spanId, traceState: 'vendor=some/thing', attributes: { why: 'cause' } },
  ])
  assert.equal(
    receiver.tree(REMOTE.traceId),
    [
      `SERVER GET /a (parent ${REMOTE.spanId} not received)`,
      '  INTERNAL early',
      '    CLIENT inner',
      '  PRODUCER late',
    ].join('\n'),
  )
  assert.deepEqual(receiver.faults, [])
  const [call] = receiver.requests
  assert.equal(call!.metadata['x-tenant'], 'blue')
  assert.equal(call!.spans, 4)
  assert.ok(call!.bytes > 400, `${call!.bytes} bytes`)
})

test('what breaks the rules of the protocol is told', async (t) => {
  const receiver = await otlpReceiver(t)
  const client = new Client(receiver.endpoint.replace('http://', ''), credentials.createInsecure())
  t.after(() => client.close())
  const key = { key: 'twice', value: { stringValue: 'a' } }
  const spanId = Buffer.alloc(8, 1)
  await send(client, [
    { name: 'ids', traceId: Buffer.alloc(16), spanId: Buffer.alloc(7, 1), parentSpanId: Buffer.alloc(8) },
    { name: 'own parent', spanId, parentSpanId: spanId },
    { name: 'times', startTimeUnixNano: '2000', endTimeUnixNano: '1999' },
    { name: 'keys', attributes: [key, key, { key: '', value: { boolValue: true } }] },
    { name: 'kind', kind: 9, status: { code: 'STATUS_CODE_OK', message: 'fine' } },
    { name: 'state', traceState: 'UPPER=1', flags: 0x100 },
    { name: '', events: [{ name: '', timeUnixNano: '0', attributes: [key, key] }] },
  ])
  const said = receiver.faults.map((fault) => fault.replace(/^span ("[^"]*") [0-9a-f]*/, '$1'))
  assert.deepEqual(said.toSorted(), [
    '"", event "": attribute twice twice',
    '"": an event without a name',
    '"": event "" has no time',
    '"": no name',
    '"ids": parent id is all zero',
    '"ids": span id of 7 bytes, not 8',
    '"ids": trace id is all zero',
    '"keys": an attribute without a key',
    '"keys": attribute twice twice',
    '"kind": STATUS_CODE_OK with the message "fine"',
    '"kind": kind 9',
    '"own parent": is its own parent',
    '"state": exported though it is not sampled',
    '"state": trace state has "UPPER=1"',
    '"times": ends 1 ns before it starts',
    'resource: no service.name',
  ])
})

/** A call of its own making, beside the exporter: its spans need only say what differs from a good one. */
function send(client: Client, spans: readonly (string | object)[], timeoutMs = 10_000): Promise<RawResponse> {
  const request = {
    resourceSpans: [{ scopeSpans: [{ spans: spans.map((span) => ({ ...good(), ...named(span) })) }] }],
  } as unknown as RawRequest
  return new Promise((resolve, reject) =>
    client.makeUnaryRequest(
      EXPORT.path,
      EXPORT.requestSerialize,
      EXPORT.responseDeserialize,
      request,
      { deadline: Date.now() + timeoutMs },
      (error, response) => (error === null ? resolve(response!) : reject(error)),
    ),
  )
}

const named = (span: string | object): object => (typeof span === 'string' ? { name: span } : span)

const good = (): object => ({
  traceId: Buffer.alloc(16, 1),
  spanId: Buffer.alloc(8, 2),
  kind: 'SPAN_KIND_INTERNAL',
  startTimeUnixNano: '1000',
  endTimeUnixNano: '2000',
})
