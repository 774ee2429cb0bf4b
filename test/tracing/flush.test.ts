import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { loadSettings } from '../../src/core/config/load.ts'
import { RUNTIME_SCOPE } from '../../src/tracing/encoding/span-record.ts'
import { createSpanRing, SpanWriter } from '../../src/tracing/encoding/span-writer.ts'
import { Exporter } from '../../src/tracing/export-thread/exporter.ts'
import { otlpReceiver } from '../support/otlp/receiver.ts'

test('a flush that comes before the connection is open waits for it', async (t) => {
  const receiver = await otlpReceiver(t)
  const { settings } = loadSettings({ OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint })
  const ring = createSpanRing()
  new SpanWriter(ring, false).write({
    traceContext: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    parent: '',
    isParentRemote: false,
    name: 'a span',
    kind: SpanKind.INTERNAL,
    startMs: 1_800_000_000_123.25,
    endMs: 1_800_000_000_124.5,
    attributes: {},
    events: [],
    links: [],
    statusCode: SpanStatusCode.UNSET,
    statusMessage: '',
    scope: RUNTIME_SCOPE,
    droppedAttributes: 0,
    droppedEvents: 0,
    droppedLinks: 0,
  })
  const exporter = new Exporter(settings, () => {})
  exporter.add({ id: 1, ring, thread: 'primary' })
  void exporter.start()
  assert.equal(await exporter.flush(10_000), 0)
  assert.deepEqual(
    receiver.spans.map(({ name }) => name),
    ['a span'],
  )
})
