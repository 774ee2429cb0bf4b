import assert from 'node:assert/strict'
import { before, describe, it, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { median } from '../../../bench/statistics.ts'
import { type Heddle, type LogLine, spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { type OtlpReceiver, otlpReceiver } from '../../support/otlp/receiver.ts'
import { suiteOwner } from '../../support/replicas.ts'
import { until } from '../../support/until.ts'

const WARNING = 40
/** Of an export that is not answered. A busy machine needs some time for the first one, which must not be given up. */
const EXPORT_TIMEOUT_MS = 3000
/** What a request takes in the middle, at most: had it waited for such an export it would take longer. */
const AT_ONCE_MS = EXPORT_TIMEOUT_MS / 2
/** Of so few requests the middle one says nothing on a busy machine. */
const FEW = 10
/** Long enough for several exports to fail. */
const GONE_MS = 800
/** Of which the exporter may use three. */
const STOPPED_MS = 9_000
const ROOT = 'GET /hello/:name'
const PARENT = 'b7ad6b7169203331'
const DOMAINS = ['../../../domains', '../../fixtures/deadly'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

const tracedBy = ({ endpoint }: OtlpReceiver, more: Record<string, string> = {}) => ({
  OTEL_ENABLED: 'true',
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_BSP_SCHEDULE_DELAY: '50',
  ...more,
})

/** A trace of our own making, so that its spans can be told from others. */
let traces = 0
const nextTraceId = (): string => (++traces).toString(16).padStart(32, 'a')

const parentIn = (traceId: string): string => `00-${traceId}-${PARENT}-01`

/** @returns how long it took, in milliseconds */
async function hello(heddle: Heddle, traceId = nextTraceId()): Promise<number> {
  const beganMs = performance.now()
  const { status } = await heddle.json('/hello/ada', { headers: { traceparent: parentIn(traceId) } })
  assert.equal(status, 200)
  return performance.now() - beganMs
}

const warnings = (logs: readonly LogLine[], { endpoint }: OtlpReceiver): LogLine[] =>
  logs.filter(({ level, ...line }) => level >= WARNING && JSON.stringify(line).includes(new URL(endpoint).host))

describe('a receiver of traces', () => {
  const owner = suiteOwner()
  let receiver: OtlpReceiver
  let heddle: Heddle

  before(async () => {
    receiver = await otlpReceiver(owner)
    heddle = await startHeddle(owner, {
      lanes: 1,
      env: tracedBy(receiver, {
        OTEL_SERVICE_NAME: 'shop',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
        OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue,authorization=Bearer%20secret-word',
        OTEL_BSP_EXPORT_TIMEOUT: String(EXPORT_TIMEOUT_MS),
        REPLICA_ID: 'replica-7',
      }),
    })
  })

  /** Requests, one after the other, until something holds. None of them waits for the receiver. */
  async function requestsUntil(holds: () => boolean, what: string): Promise<void> {
    const tookMs: number[] = []
    await until(
      async () => {
        tookMs.push(await hello(heddle))
        return holds()
      },
      what,
      20_000,
    )
    assert.ok(tookMs.length < FEW || median(tookMs)! < AT_ONCE_MS, `requests took ${tookMs.map(Math.round)} ms`)
  }

  /** Until the receiver has been called so many times more. */
  function requestsFor(calls: number): Promise<void> {
    const enough = receiver.requests.length + calls
    return requestsUntil(() => receiver.requests.length >= enough, `${calls} more exports`)
  }

  it('is told the headers, the name of the service and which process speaks', async () => {
    const traceId = nextTraceId()
    await hello(heddle, traceId)
    const root = await receiver.until(
      (spans) => spans.find((span) => span.traceId === traceId && span.kind === 'SERVER'),
      'the span of a request',
    )
    assert.equal(root.name, ROOT)
    assert.deepEqual([root.traceId, root.parentSpanId, root.remoteParent], [traceId, PARENT, true])
    const { metadata } = receiver.requests[0]!
    assert.deepEqual([metadata['x-tenant'], metadata.authorization], ['blue', 'Bearer secret-word'])
    assert.equal(root.resource['service.name'], 'shop')
    assert.equal(root.resource['service.instance.id'], 'replica-7')
    assert.equal(root.resource['deployment.environment.name'], 'staging')
    assert.deepEqual(warnings(heddle.logs, receiver), [])
    assert.doesNotMatch(JSON.stringify(heddle.logs), /secret-word/)
  })

  it('that refuses, denies, hangs, is slow or takes a part costs no request its time, and one warning', async () => {
    receiver.behave('refuse')
    await requestsFor(5)
    const [warning, ...more] = await until(() => {
      const found = warnings(heddle.logs, receiver)
      return found.length > 0 ? found : undefined
    }, 'a warning that names the receiver')
    assert.deepEqual(more, [], 'one for all')
    assert.ok(warning)
    for (const behaviour of ['deny', 'hang', { delayMs: 200 }, 'partial'] as const) {
      receiver.behave(behaviour)
      await requestsFor(3)
    }
    const said = warnings(heddle.logs, receiver)
    assert.ok(said.length <= 2, JSON.stringify(said, null, 1))
  })

  it('that takes one export and denies the next is not warned about each time', async () => {
    receiver.behave('accept')
    await requestsFor(2)
    const before = warnings(heddle.logs, receiver).length
    for (const behaviour of ['deny', 'accept', 'deny', 'accept', 'deny', 'accept', 'deny', 'accept'] as const) {
      receiver.behave(behaviour)
      await requestsFor(2)
    }
    const more = warnings(heddle.logs, receiver).slice(before)
    assert.ok(more.length <= 1, JSON.stringify(more, null, 1))
  })

  it('that is gone costs no request its time, and gets what happens once it is back', async () => {
    receiver.behave('accept')
    await receiver.stop()
    const backMs = performance.now() + GONE_MS
    await requestsUntil(() => performance.now() > backMs, 'some time without a receiver')
    await receiver.start()
    const taken = receiver.spans.length
    await requestsUntil(() => receiver.spans.length > taken, 'spans for the receiver that is back')
    assert.ok(warnings(heddle.logs, receiver).length <= 3)
    assert.deepEqual(receiver.faults, [])
  })

  it('that hangs does not keep the process from ending', async () => {
    receiver.behave('hang')
    await requestsFor(1)
    const beganMs = performance.now()
    assert.equal(await heddle.stop(), 0)
    assert.ok(performance.now() - beganMs < STOPPED_MS)
  })
})

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
