import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestSlots } from '../../../src/primary/dispatch/request-slots.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'

const exchange = () => ({ route: null }) as unknown as Exchange

test('the answer to a request that was given up does not reach the next one in its slot', () => {
  const slots = new RequestSlots(1)
  const [first, second] = [exchange(), exchange()]
  const given = slots.take()
  slots.put(given, first, -1)
  assert.equal(slots.remove(given), first)
  const next = slots.take()
  slots.put(next, second, -1)
  assert.equal(given & 0xffff, next & 0xffff, 'it is the same slot')
  assert.deepEqual([slots.get(given), slots.remove(given)], [null, null])
  assert.equal(slots.remove(next), second)
})
