import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../../src/contracts/event-bus.ts'
import { byName, traceOf } from '../rooms/tracing/tree.ts'
import { type OtlpReceiver, otlpReceiver } from '../support/otlp/receiver.ts'
import { Fleet, type Replica } from '../support/replicas.ts'
import { describeOnPostgresAndRedis } from '../support/servers/both-of-suite.ts'
import { until } from '../support/until.ts'

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const NAME = 'two replicas, traced: one is asked, the other one works'
const CARD = '4111-1111-1111-1111'

describeOnPostgresAndRedis(NAME, ({ postgres, redis, owner }) => {
  let fleet: Fleet
  let receiver: OtlpReceiver
  let asked: Replica
  let working: Replica

  const order = async (kind: string): Promise<string> =>
    ((await asked.post(`/orders/${kind}`, { card: CARD })).body as { data: { event: string } }).data.event
  const recordAt = (replica: Replica, id: string): Promise<EventRecord> =>
    until(
      async () =>
        ((await replica.json('/system/traces/flat')).body as EventRecord[]).find((record) => record.id === id),
      `the record of ${id} at ${replica.id}`,
    )

  test('start', async () => {
    receiver = await otlpReceiver(owner)
    fleet = await Fleet.start(owner, {
      postgres,
      redis,
      env: {
        OTEL_ENABLED: 'true',
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
        OTEL_BSP_SCHEDULE_DELAY: '100',
      },
    })
    await fleet.sql('CREATE TABLE orders (id TEXT PRIMARY KEY, card TEXT NOT NULL)')
    ;[asked, working] = await Promise.all([
      fleet.replica('asked', { domains: [pathOf('../rooms/tracing/asking')] }),
      fleet.replica('working', { domains: [pathOf('../rooms/tracing/working')] }),
    ])
  })

  test('one request is one trace, and both name it', async () => {
    const id = await order('plain')
    const here = await recordAt(asked, id)
    const there = await recordAt(working, id)
    assert.match(here.trace_id!, /^[0-9a-f]{32}$/)
    assert.equal(there.trace_id, here.trace_id)
    const traceId = here.trace_id!
    assert.equal(
      await traceOf(receiver, traceId, 'logger.info'),
      `SERVER POST /orders/:kind
  INTERNAL shop.PlaceOrder.place
    CLIENT db.transaction
      CLIENT db.execute
    INTERNAL price the order
      CLIENT db.query
    CLIENT state.increment
    PRODUCER event_bus.publish
      CONSUMER process order.plain
        INTERNAL billing.BillOrder.bill
          PRODUCER event_bus.publish
            CONSUMER process order.billed
              INTERNAL billing.BillOrder.thank
                INTERNAL logger.info`,
    )
    const placeOf = (name: string): unknown[] => {
      const { resource } = byName(receiver, traceId)[name]!
      return [resource['heddle.replica'], resource['heddle.thread']]
    }
    assert.deepEqual(placeOf('POST /orders/:kind'), ['asked', 'primary'])
    assert.deepEqual(placeOf('shop.PlaceOrder.place'), ['asked', 'lane 0'])
    assert.deepEqual(placeOf('process order.plain'), ['working', 'primary'])
    assert.deepEqual(placeOf('billing.BillOrder.bill'), ['working', 'lane 0'])

    const { 'db.query': query, 'state.increment': state, 'process order.plain': consumer } = byName(receiver, traceId)
    assert.equal(query!.attributes['db.system.name'], 'postgresql')
    assert.equal(query!.attributes['server.port'], postgres.port)
    assert.equal(state!.attributes['db.system.name'], 'redis')
    assert.equal(consumer!.attributes['heddle.event.id'], id)
    assert.equal(consumer!.attributes['messaging.consumer.group.name'], 'billing.BillOrder.bill')
  })

  test('a dead letter is told in the trace, and its replay from the other replica belongs to it', async () => {
    const id = await order('hopeless')
    const traceId = (await recordAt(asked, id)).trace_id!
    await traceOf(receiver, traceId, 'process order.hopeless')
    const consumer = byName(receiver, traceId)['process order.hopeless']!
    assert.equal(consumer.status.code, 'ERROR')
    assert.deepEqual(
      consumer.events.map(({ name }) => name),
      ['retry', 'dead_letter'],
    )
    const letter = await until(async () => {
      const letters = (await asked.json('/system/dead-letters')).body as { id: string; event_id: string }[]
      return letters.find(({ event_id }) => event_id === id)
    }, 'the letter')
    await asked.post(`/system/dead-letters/${letter.id}/replay`, {})
    const again = (): boolean =>
      receiver.spans.filter((span) => span.traceId === traceId && span.name === 'process order.hopeless').length === 2
    await receiver.until(again, 'the delivery of the replay')
  })

  test('no value of a payload is anywhere, and no rule of the protocol is broken', () => {
    const text = JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    assert.ok(!text.includes(CARD))
    assert.deepEqual(receiver.faults, [])
  })
})
