import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { createRecordRing, RecordWriter } from '../../../src/recording/ring.ts'
import { Exporter } from '../../../src/tracing/exporter.ts'
import { SPAN_RING_BYTES, type SpanRecord } from '../../../src/tracing/span-record.ts'
import { startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'
import { recordOf } from './ended-span.ts'

async function filled(t: Parameters<typeof otlpReceiver>[0], env: Record<string, string> = {}) {
  const receiver = await otlpReceiver(t)
  const { settings } = loadSettings({ OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, ...env })
  const ring = createRecordRing(SPAN_RING_BYTES)
  const writer = new RecordWriter<SpanRecord>(ring)
  const exporter = new Exporter(settings, () => {})
  exporter.add({ id: 1, ring, thread: 'primary' })
  return { receiver, writer, exporter }
}

test('a flush goes on as long as the receiver takes batch after batch, however long all of them take', async (t) => {
  const { receiver, writer, exporter } = await filled(t, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' })
  receiver.behave({ delayMs: 900 })
  for (let n = 0; n < 4; n++) writer.write(() => recordOf())
  exporter.start()
  assert.equal(await exporter.flush(30_000), 0)
  assert.equal(receiver.spans.length, 4)
})

test('a flush gives a receiver up that does not answer, and counts what is left', async (t) => {
  const { receiver, writer, exporter } = await filled(t, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2' })
  receiver.behave('hang')
  for (let n = 0; n < 5; n++) writer.write(() => recordOf())
  exporter.start()
  const begunMs = performance.now()
  assert.equal(await exporter.flush(60_000), 3)
  assert.ok(performance.now() - begunMs < 50_000)
})

test('a flush whose thread gets no core waits for it: that is not the time of the receiver', async (t) => {
  const { receiver, writer, exporter } = await filled(t, { OTEL_BSP_SCHEDULE_DELAY: '50' })
  writer.write(() => recordOf())
  exporter.start()
  await receiver.until(() => receiver.requests.length > 0, 'the first export, whose connection the next one takes')
  receiver.behave({ delayMs: 200 })
  writer.write(() => recordOf())
  const flushed = exporter.flush(30_000)
  setTimeout(() => {
    const untilMs = performance.now() + 3500
    while (performance.now() < untilMs);
  })
  assert.equal(await flushed, 0)
  assert.equal(receiver.spans.length, 2)
})

test('a drain takes the time that it has for spans which a slow receiver takes', async (t) => {
  const receiver = await otlpReceiver(t)
  const heddle = await startHeddle(t, {
    lanes: 1,
    env: {
      OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
      SHUTDOWN_TIMEOUT_MS: '30000',
    },
  })
  receiver.behave({ delayMs: 900 })
  for (let n = 0; n < 4; n++) await heddle.json('/hello/ada')
  assert.equal(await heddle.stop(), 0)
  assert.equal(receiver.spans.length, 8, heddle.logs.at(-1)!.msg)
})

test('spans are exported as they come once the process is about to end', async (t) => {
  const { receiver, writer, exporter } = await filled(t, { OTEL_BSP_SCHEDULE_DELAY: '600000' })
  exporter.start()
  exporter.hurry()
  writer.write(() => recordOf())
  await receiver.until((spans) => spans.length === 1, 'a span that would wait for others')
  assert.equal(await exporter.flush(30_000), 0)
})

test('a flush that comes before the connection is open waits for it', async (t) => {
  const { receiver, writer, exporter } = await filled(t)
  writer.write(() => recordOf())
  exporter.start()
  assert.equal(await exporter.flush(10_000), 0)
  assert.deepEqual(
    receiver.spans.map(({ name }) => name),
    ['a span'],
  )
})
