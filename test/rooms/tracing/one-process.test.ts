import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { type OtlpReceiver, otlpReceiver } from '../../support/otlp/receiver.ts'
import { suiteOwner } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { byName, traceOf } from './tree.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const DOMAINS = [pathOf('./asking'), pathOf('./working'), SHIPPED]
const CARD = '4111-1111-1111-1111'

describe('one process, traced', () => {
  const owner = suiteOwner()
  let receiver: OtlpReceiver
  let heddle: Heddle

  const post = async (kind: string, headers: Record<string, string> = {}) =>
    (await heddle.post(`/orders/${kind}?pin=s3cret-pin`, { card: CARD }, headers)).body as {
      data: { id: string; event: string }
    }
  const recordOf = async (id: string): Promise<EventRecord> =>
    until(
      async () => ((await heddle.json('/system/traces/flat')).body as EventRecord[]).find((record) => record.id === id),
      `the record of ${id}`,
    )
  const traceIdOf = async (id: string): Promise<string> => (await recordOf(id)).trace_id!

  test('starts', async () => {
    receiver = await otlpReceiver(owner)
    heddle = await startHeddle(owner, {
      domains: DOMAINS,
      lanes: 2,
      env: {
        OTEL_ENABLED: 'true',
        OTEL_SERVICE_NAME: 'shop',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
        OTEL_BSP_SCHEDULE_DELAY: '100',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
        REPLICA_ID: 'shop-1',
      },
    })
  })

  test('a request is one trace, through its lane, its tools, its events and their subscribers', async () => {
    const { data } = await post('plain')
    const traceId = await traceIdOf(data.event)
    assert.equal(
      await traceOf(receiver, traceId, 'logger.info'),
      `SERVER POST /orders/:kind
  INTERNAL shop.PlaceOrder.place
    CLIENT db.transaction
      CLIENT db.execute
    INTERNAL price the order
      CLIENT db.query
    INTERNAL state.increment
    PRODUCER event_bus.publish
      CONSUMER process order.plain
        INTERNAL billing.BillOrder.bill
          PRODUCER event_bus.publish
            CONSUMER process order.billed
              INTERNAL billing.BillOrder.thank
                INTERNAL logger.info`,
    )
    assert.deepEqual(receiver.faults, [])

    const spans = byName(receiver, traceId)
    const server = spans['POST /orders/:kind']!
    const lane = server.attributes['heddle.lane']
    assert.ok(lane === 0 || lane === 1)
    assert.deepEqual(
      { ...server.attributes, 'heddle.lane': 0, 'heddle.request_id': '', 'server.port': 0, 'user_agent.original': '' },
      {
        'http.request.method': 'POST',
        'http.response.status_code': 200,
        'http.route': '/orders/:kind',
        'url.path': '/orders/plain',
        'url.query': 'pin=REDACTED',
        'url.scheme': 'http',
        'network.protocol.version': '1.1',
        'server.address': '127.0.0.1',
        'server.port': 0,
        'user_agent.original': '',
        'heddle.plugin': 'shop.PlaceOrder',
        'heddle.request_id': '',
        'heddle.lane': 0,
      },
    )
    assert.deepEqual(server.status, { code: 'UNSET', message: '' })
    assert.equal(server.resource['heddle.thread'], 'primary')

    const handler = spans['shop.PlaceOrder.place']!
    assert.equal(handler.attributes['code.function.name'], 'shop.PlaceOrder.place')
    const { 'service.name': service, 'service.instance.id': instance, 'heddle.replica': replica } = handler.resource
    assert.deepEqual([service, instance, replica], ['shop', 'shop-1', 'shop-1'])
    assert.equal(handler.resource['heddle.lane'], lane)
    assert.equal(handler.resource['deployment.environment.name'], 'test')

    const query = spans['db.query']!
    assert.equal(query.attributes['db.system.name'], 'sqlite')
    assert.equal(query.attributes['db.query.text'], 'SELECT id, ? AS text FROM orders WHERE card = $1')
    assert.equal(query.attributes['db.operation.name'], 'SELECT')
    assert.deepEqual(spans['price the order']!.scope, { name: 'shop', version: '' })
    assert.equal(typeof spans['price the order']!.attributes['shop.orders'], 'number')

    const consumer = spans['process order.plain']!
    assert.deepEqual(consumer.attributes, {
      'messaging.system': 'heddle',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'order.plain',
      'messaging.message.id': data.event,
      'messaging.consumer.group.name': 'billing.BillOrder.bill',
      'heddle.event.id': data.event,
      'heddle.request_id': server.attributes['heddle.request_id'],
    })
    const producer = receiver.spans.find(({ spanId }) => spanId === consumer.parentSpanId)!
    assert.deepEqual(producer.attributes, {
      'heddle.tool': 'event_bus',
      'heddle.tool.method': 'publish',
      'messaging.system': 'heddle',
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'order.plain',
      'messaging.message.id': data.event,
      'heddle.event.id': data.event,
    })
  })

  test('every span lies within the one around it, though they come from several threads', async () => {
    const { data } = await post('plain')
    const traceId = await traceIdOf(data.event)
    await traceOf(receiver, traceId, 'logger.info')
    const own = receiver.spans.filter((span) => span.traceId === traceId)
    const byId = new Map(own.map((span) => [span.spanId, span]))
    for (const span of own) {
      const parent = byId.get(span.parentSpanId)
      if (parent === undefined) continue
      assert.ok(span.startNs >= parent.startNs, `${span.name} begins before ${parent.name}`)
      // A message is handled when its publisher may have gone on.
      if (span.kind !== 'CONSUMER') assert.ok(span.endNs <= parent.endNs, `${span.name} ends after ${parent.name}`)
    }
  })

  test('a client that is traced goes on in its own trace, with its tracestate', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await post('unwanted', { traceparent, tracestate: 'congo=t61rcWkgMzE' })
    const trace = '0af7651916cd43dd8448eb211c80319c'
    await receiver.until(
      (spans) => spans.find((span) => span.traceId === trace && span.kind === 'SERVER'),
      'the server',
    )
    const own = await receiver.until((spans) => {
      const found = spans.filter((span) => span.traceId === trace)
      return found.length === 8 ? found : null
    }, 'all eight spans')
    const server = own.find(({ kind }) => kind === 'SERVER')!
    assert.equal(server.parentSpanId, 'b7ad6b7169203331')
    for (const span of own) assert.equal(span.traceState, 'congo=t61rcWkgMzE', span.name)
  })

  test('a trace that its client does not record is not recorded here either, and its events name none', async () => {
    const traceparent = '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
    const { data } = await post('plain', { traceparent })
    assert.equal((await recordOf(data.event)).trace_id, null)
    const after = await post('plain')
    await traceOf(receiver, await traceIdOf(after.data.event), 'logger.info')
    assert.deepEqual(
      receiver.spans.filter(({ traceId }) => traceId === '1af7651916cd43dd8448eb211c80319c'),
      [],
    )
  })

  test('retries are events of the one span of their delivery, each attempt a span below it', async () => {
    const { data } = await post('shaky')
    const traceId = await traceIdOf(data.event)
    const tree = await traceOf(receiver, traceId, 'logger.info')
    assert.match(
      tree,
      /\n {6}CONSUMER process order\.shaky\n {8}INTERNAL billing\.BillOrder\.billLater\n {8}INTERNAL billing\.BillOrder\.billLater\n {10}PRODUCER/,
    )
    const consumer = byName(receiver, traceId)['process order.shaky']!
    assert.equal(consumer.status.code, 'UNSET')
    assert.deepEqual(
      consumer.events.map(({ name }) => name),
      ['retry'],
    )
    assert.equal(consumer.events[0]!.attributes['heddle.event.attempt'], 2)
    const attempts = receiver.spans.filter(
      (span) => span.traceId === traceId && span.name === 'billing.BillOrder.billLater',
    )
    assert.deepEqual(
      attempts.map(({ attributes, status }) => [attributes['heddle.event.attempt'], status.code]).sort(),
      [
        [1, 'ERROR'],
        [2, 'UNSET'],
      ],
    )
    const [exception] = attempts.find(({ status }) => status.code === 'ERROR')!.events
    assert.equal(exception?.name, 'exception')
    assert.equal(exception.attributes['exception.message'], 'the till is jammed')
    assert.match(String(exception.attributes['exception.stacktrace']), /bill-order\.ts/)
  })

  test('a dead letter is an error of its delivery, what is published about it stands below, and so does its replay', async () => {
    const { data } = await post('hopeless')
    const traceId = await traceIdOf(data.event)
    await traceOf(receiver, traceId, 'process order.hopeless')
    const consumer = byName(receiver, traceId)['process order.hopeless']!
    assert.equal(consumer.status.code, 'ERROR')
    assert.deepEqual(
      consumer.events.map(({ name }) => name),
      ['retry', 'dead_letter'],
    )
    const told = await receiver.until(
      (spans) =>
        spans.find(
          (span) => span.traceId === traceId && span.parentSpanId === consumer.spanId && span.kind === 'PRODUCER',
        ),
      'the publication of the failure',
    )
    assert.equal(told.attributes['messaging.destination.name'], 'event.delivery.failed')

    const letters = (await heddle.json('/system/dead-letters')).body as { id: string; event_id: string }[]
    const letter = letters.find(({ event_id }) => event_id === data.event)!
    await heddle.json(`/system/dead-letters/${letter.id}/replay`, { method: 'POST' })
    await receiver.until(
      (spans) =>
        spans.filter((span) => span.traceId === traceId && span.name === 'process order.hopeless').length === 2,
      'the delivery of the replay in the same trace',
    )
  })

  test('what fails carries its exception: the call, the handler, and the request', async () => {
    const { status } = await heddle.json('/orders/statement')
    assert.equal(status, 500)
    const call = await receiver.until(
      (spans) => spans.find((span) => span.name === 'db.query' && span.status.code === 'ERROR'),
      'the call',
    )
    // Not its own words: they may quote a parameter.
    assert.equal(call.status.message, 'Database error: syntax')
    assert.match(
      String(call.events[0]!.attributes['exception.stacktrace']),
      /^DbError: Database error: syntax\n {4}at /,
    )
    assert.equal(call.attributes['error.type'], 'syntax')
    await traceOf(receiver, call.traceId, 'GET /orders/:kind')
    const { 'shop.PlaceOrder.fail': handler, 'GET /orders/:kind': server } = byName(receiver, call.traceId)
    assert.equal(handler!.status.code, 'ERROR')
    assert.equal(handler!.events[0]!.name, 'exception')
    assert.deepEqual([server!.status.code, server!.attributes['error.type']], ['ERROR', '500'])
  })

  test('an error that cannot be read is one all the same, and costs no lane', async () => {
    assert.equal((await heddle.json('/orders/unreadable')).status, 500)
    const server = await receiver.until(
      (spans) => spans.find(({ attributes }) => attributes['url.path'] === '/orders/unreadable'),
      'the request',
    )
    await traceOf(receiver, server.traceId, 'shop.PlaceOrder.fail')
    const handler = byName(receiver, server.traceId)['shop.PlaceOrder.fail']!
    // Its stack cannot be read, its message can.
    assert.equal(handler.status.message, 'unreadable')
  })

  test('an event that is published outside of all traces begins one for all of its subscribers', async () => {
    const records = async () => (await heddle.json('/system/traces/flat')).body as EventRecord[]
    const record = await until(async () => (await records()).find(({ event }) => event === 'order.loose'), 'the event')
    const isWhole = (): boolean =>
      receiver.spans.filter(({ traceId, kind }) => traceId === record.trace_id && kind === 'CONSUMER').length === 2
    await receiver.until(isWhole, 'both deliveries in the trace that the record names')
    const producer = receiver.spans.find(({ traceId, kind }) => traceId === record.trace_id && kind === 'PRODUCER')!
    assert.deepEqual([producer.name, producer.parentSpanId], ['event_bus.publish', ''])
  })

  test('times that a plugin gives are its times', async () => {
    await heddle.json('/orders/timed')
    const span = await receiver.until((spans) => spans.find(({ name }) => name === 'measured elsewhere'), 'the span')
    assert.ok(Math.abs(span.endMs - span.startMs - 30) < 0.01, `${span.endMs - span.startMs} ms`)
  })

  test('what the client does wrong is no error of the server', async () => {
    assert.equal((await heddle.json('/orders/client')).status, 404)
    assert.equal((await heddle.json('/no/such/path')).status, 404)
    const unknown = await receiver.until(
      (spans) => spans.find(({ name }) => name === 'GET'),
      'a request without a route',
    )
    assert.equal(unknown.status.code, 'UNSET')
    assert.equal(unknown.attributes['http.response.status_code'], 404)
    assert.equal(unknown.attributes['http.route'], undefined)
  })

  test('spans that a lane has ended outlive it', async () => {
    // Perhaps without an answer: the lane that dies may be the one that was asked.
    await post('deadly')
    const records = async () => (await heddle.json('/system/traces/flat')).body as EventRecord[]
    const traceId = (
      await until(async () => (await records()).find(({ event }) => event === 'order.deadly'), 'its record')
    ).trace_id!
    // Ended, and a microsecond later the thread with it.
    const dying = await receiver.until((spans) => {
      const logs = spans.filter((span) => span.traceId === traceId && span.name === 'logger.info')
      return logs.length >= 1 ? logs : null
    }, 'the span of the call before the end')
    assert.ok(dying.length >= 1)
    const consumer = await receiver.until(
      (spans) => spans.find((span) => span.traceId === traceId && span.name === 'process order.deadly'),
      'the delivery, given up',
    )
    assert.deepEqual(
      consumer.events.map(({ name }) => name),
      ['thread_death', 'thread_death', 'thread_death', 'dead_letter'],
    )
  })

  test('no value of a payload is anywhere', () => {
    const text = JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    assert.ok(text.length > 10_000)
    assert.ok(!text.includes(CARD))
    assert.ok(!text.includes('s3cret-pin'))
    assert.deepEqual(receiver.faults, [])
  })
})
