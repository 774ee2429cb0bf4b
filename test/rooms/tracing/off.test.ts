import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'
import { openWebSocket } from '../../support/web-socket.ts'

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
  await heddle.post(
    '/users',
    { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' },
    { traceparent },
  )
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

const UNSAMPLED = [fileURLToPath(new URL('./passing', import.meta.url))]

test('a request that is not sampled has a trace all the same, for those whom its handler asks', async (t) => {
  const heddle = await startHeddle(t, {
    domains: UNSAMPLED,
    lanes: 2,
    env: { OTEL_ENABLED: 'true', OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
  })
  const ask = async (headers: Record<string, string> = {}) =>
    ((await heddle.json('/pass-on', { headers })).body as { data: Record<string, string> }).data

  const { first, second, inEvent } = await ask()
  const [, traceId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-00$/.exec(first!)!
  assert.equal(second, first)
  assert.equal(inEvent!.slice(0, 35), `00-${traceId}`, 'the subscriber is in the same trace')
  assert.match(inEvent!, /-00$/)
  assert.notEqual((await ask()).first!.slice(0, 35), first!.slice(0, 35), 'each request has its own')

  const socket = await openWebSocket(heddle.port, '/listen')
  for (let n = 0; n < 2; n++) socket.send('tell')
  await socket.text(2)
  const told = socket.texts.map((text) => text.slice(0, 35))
  assert.equal(new Set(told).size, 1, 'all handlers of a socket are in one trace')

  const parent = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}`
  const continued = await ask({ traceparent: `${parent}-00` })
  assert.match(continued.first!, new RegExp(`^00-${'a1'.repeat(16)}-[0-9a-f]{16}-00$`))
  const sampled = await ask({ traceparent: `${parent}-01` })
  assert.match(sampled.inEvent!, new RegExp(`^00-${'a1'.repeat(16)}-[0-9a-f]{16}-01$`), "the client's decision holds")
})
