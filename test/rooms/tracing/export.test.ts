import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { otlpReceiver } from '../../support/otlp/receiver.ts'
import { until } from '../../support/until.ts'
import { hello, nextTraceId, parentIn, ROOT, tracedBy, warnings } from './exported.ts'

const DOMAINS = ['../../../domains', '../../fixtures/deadly'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

test('SIGTERM sends what has ended and was not sent, also of a lane that has died; over TLS where the endpoint says https', async (t) => {
  const receiver = await otlpReceiver(t, { tls: true })
  const heddle = await startHeddle(t, {
    lanes: 1,
    domains: DOMAINS,
    env: tracedBy(receiver, {
      OTEL_BSP_SCHEDULE_DELAY: '600000',
      OTEL_EXPORTER_OTLP_CERTIFICATE: receiver.certificatePath!,
    }),
  })
  const ended = Array.from({ length: 20 }, nextTraceId)
  await Promise.all(ended.map((traceId) => hello(heddle, traceId)))
  const deadly = nextTraceId()
  assert.equal((await heddle.json('/harm/exit', { headers: { traceparent: parentIn(deadly) } })).status, 500)
  // Without it the drain waits for the next lane, which is to hear of the death, and on a busy machine that takes all of the drain's time.
  await until(async () => (await heddle.json('/hello/ada')).status === 200, 'a lane that serves again')
  assert.equal(receiver.requests.length, 0)
  assert.equal(await heddle.stop(), 0)
  for (const traceId of ended) {
    assert.match(
      receiver.tree(traceId),
      /^SERVER GET \/hello\/:name \(.*\)\n {2}INTERNAL [^\n]*$/,
      heddle.logs.at(-1)!.msg,
    )
  }
  const dead = receiver.spans.find(({ traceId, kind }) => traceId === deadly && kind === 'SERVER')!
  assert.deepEqual([dead.name, dead.status.code], ['GET /harm/:way', 'ERROR'])
  assert.equal(receiver.spans[0]!.resource['service.name'], 'service')
  assert.deepEqual(receiver.faults, [])
})

test('without a receiver spans are printed on the console', async (t) => {
  const { child, logs, errors } = await spawnHeddle(t, {
    lanes: 1,
    env: { OTEL_ENABLED: 'true', OTEL_BSP_SCHEDULE_DELAY: '50' },
  })
  const serving = await until(() => logs.find(({ msg }) => msg?.startsWith('Serving on ')), 'a process that serves')
  const traceId = nextTraceId()
  const url = `http://127.0.0.1:${serving.msg.split(':').at(-1)}/hello/ada`
  assert.equal((await fetch(url, { headers: { traceparent: parentIn(traceId) } })).status, 200)
  const printed = () => [...errors, ...logs.map((line) => JSON.stringify(line))].join('\n')
  await until(() => printed().includes(ROOT) && printed().includes(traceId), 'the span of a request on the console')
  child.kill('SIGTERM')
})

test('headers that cannot be sent are warned about without their values, and cost no more than the spans', async (t) => {
  const receiver = await otlpReceiver(t)
  const OTEL_EXPORTER_OTLP_HEADERS = 'x-fine=2,authorization=geheimes Wört'
  const heddle = await startHeddle(t, { lanes: 1, env: tracedBy(receiver, { OTEL_EXPORTER_OTLP_HEADERS }) })
  await hello(heddle)
  await until(() => warnings(heddle.logs, receiver).length > 0, 'a warning about the headers')
  assert.doesNotMatch(JSON.stringify(heddle.logs), /geheimes/)
  assert.equal(await heddle.stop(), 0)
})

test('a receiver that is away for a moment costs no span', async (t) => {
  const receiver = await otlpReceiver(t)
  const heddle = await startHeddle(t, { lanes: 1, env: tracedBy(receiver) })
  await receiver.stop()
  const first = nextTraceId()
  await hello(heddle, first)
  await until(() => warnings(heddle.logs, receiver).length > 0, 'the first try', 20_000)
  await receiver.start()
  await receiver.until(
    (spans) => spans.find(({ traceId, name }) => traceId === first && name === ROOT),
    'what had ended before',
  )
})

test('what clients send is cut, so that an export of many spans is not too large for its receiver', async (t) => {
  const receiver = await otlpReceiver(t)
  const heddle = await startHeddle(t, { lanes: 1, env: tracedBy(receiver, { OTEL_BSP_SCHEDULE_DELAY: '2000' }) })
  const traceIds = Array.from({ length: 300 }, nextTraceId)
  for (const traceId of traceIds) {
    await heddle.json('/nope', { headers: { traceparent: parentIn(traceId), 'user-agent': 'x'.repeat(12_000) } })
  }
  await receiver.until(
    (spans) => traceIds.every((id) => spans.some(({ traceId }) => traceId === id)),
    'all three hundred',
  )
  const { attributes } = receiver.spans.find(({ traceId }) => traceId === traceIds[0])!
  assert.equal(String(attributes['user_agent.original']).length, 1024)
})
