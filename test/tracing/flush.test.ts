import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadSettings } from '../../src/core/config/load.ts'
import { createSpanRing, SpanWriter } from '../../src/tracing/encoding/span-writer.ts'
import { Exporter } from '../../src/tracing/export-thread/exporter.ts'
import { otlpReceiver } from '../support/otlp/receiver.ts'
import { recordOf } from './ended-span.ts'

test('a flush that comes before the connection is open waits for it', async (t) => {
  const receiver = await otlpReceiver(t)
  const { settings } = loadSettings({ OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint })
  const ring = createSpanRing()
  new SpanWriter(ring, false).write(recordOf())
  const exporter = new Exporter(settings, () => {})
  exporter.add({ id: 1, ring, thread: 'primary' })
  void exporter.start()
  assert.equal(await exporter.flush(10_000), 0)
  assert.deepEqual(
    receiver.spans.map(({ name }) => name),
    ['a span'],
  )
})
