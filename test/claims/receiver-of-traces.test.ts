import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { median } from '../../bench/report.ts'
import { hello, nextTraceId, PARENT, ROOT, tracedBy, warnings } from '../rooms/tracing/exported.ts'
import { type Heddle, startHeddle } from '../support/heddle.ts'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp/receiver.ts'
import { suiteOwner } from '../support/shared-service.ts'
import { until } from '../support/until.ts'

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
