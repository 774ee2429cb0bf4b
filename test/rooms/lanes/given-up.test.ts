import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestSlots } from '../../../src/primary/dispatch/request-slots.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { NATIVE } from './native.ts'

const exchange = { route: null } as unknown as Exchange
const HOUR_MS = 3_600_000

function place(slots: RequestSlots): number {
  const id = slots.take()
  slots.put(id, exchange, -1)
  return id
}

test('a request that was given up keeps its place until its handler has settled', () => {
  const slots = new RequestSlots(2)
  const first = place(slots)
  assert.equal(slots.giveUp(first), exchange)
  assert.deepEqual([slots.count, slots.free], [0, 1])
  assert.equal(slots.get(first), null)
  assert.equal(slots.giveUp(first), null)
  // The late answer.
  assert.equal(slots.remove(first), null)
  assert.equal(slots.free, 2)
  assert.equal(slots.remove(first), null)
  assert.equal(slots.free, 2)
})

test('a stream that was given up keeps none', () => {
  const slots = new RequestSlots(1)
  const stream = place(slots)
  slots.beginStream(stream)
  slots.giveUp(stream)
  assert.equal(slots.free, 1)
})

test('a lane is worn out when handlers that were given up long ago hold half of its places', () => {
  const slots = new RequestSlots(2)
  slots.giveUp(place(slots))
  assert.equal(slots.isWornOut(Date.now()), false)
  assert.equal(slots.isWornOut(Date.now() + HOUR_MS), true)
})

test('clients that leave early pile up no work: what their handlers hold is refused to others until they have settled', async (t) => {
  const heddle = await startHeddle(t, { domains: NATIVE, lanes: 1, env: { LANE_MAX_INFLIGHT: '2' } })
  const leave = () => heddle.fetch('/wait?ms=3000', { signal: AbortSignal.timeout(300) }).catch(() => null)
  const good = async () => (await heddle.fetch('/good')).status
  await until(async () => {
    await Promise.all([leave(), leave()])
    return (await good()) === 503
  }, 'no place is left')
  await until(async () => (await good()) === 200, 'they have settled')
  assert.equal(await heddle.stop(), 0)
})
