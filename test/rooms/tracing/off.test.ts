import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'

const DOMAINS = ['./looking', '../../../domains'].map((path) => fileURLToPath(new URL(path, import.meta.url)))

const loadedIn = async (heddle: Heddle, thread: string): Promise<string[]> =>
  ((await heddle.json(`/loaded/${thread}`)).body as { data: { loaded: string[] } }).data.loaded

/** To the requests that plugins send. */
const listensIn = async (heddle: Heddle, thread: string): Promise<boolean> =>
  ((await heddle.json(`/loaded/${thread}`)).body as { data: { listens: boolean } }).data.listens

test('while tracing is off not one module of the SDK is loaded, in no thread, and events name no trace', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1 })
  assert.deepEqual(await loadedIn(heddle, 'lane'), [])
  assert.deepEqual(await loadedIn(heddle, 'primary'), [])
  assert.equal(await listensIn(heddle, 'lane'), false)
  assert.equal(await listensIn(heddle, 'primary'), false)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await heddle.json('/users', {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent },
    body: JSON.stringify({ name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }),
  })
  const records = (await heddle.json('/system/traces/flat')).body as { trace_id: string | null }[]
  assert.ok(records.length > 0)
  assert.ok(records.every(({ trace_id }) => trace_id === null))
})

test('while it is on the lane makes spans and exports none: the exporter is in a thread of its own', async (t) => {
  const receiver = await otlpReceiver(t)
  const heddle = await startHeddle(t, {
    domains: DOMAINS,
    lanes: 1,
    env: { OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint },
  })
  for (const thread of ['lane', 'primary']) {
    const loaded = await loadedIn(heddle, thread)
    assert.ok(loaded.includes('@opentelemetry/sdk-trace-node'), thread)
    assert.equal(await listensIn(heddle, thread), true)
    assert.deepEqual(
      loaded.filter((name) => name.includes('otlp') || name.startsWith('@grpc/')),
      [],
      thread,
    )
  }
})
