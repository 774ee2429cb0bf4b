import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Consumer, Delivery } from '../../../src/primary/events/consumer.ts'
import { HUB_MAX_PENDING_BYTES, QueueBudget } from '../../../src/primary/events/queue-budget.ts'

const consumer = { pending: 0, pendingBytes: 0 }
const sized = (bytes: number) =>
  ({ event: { payload: { length: bytes }, requester: null, source: null }, consumer }) as unknown as Delivery

/** That many consumers with nothing pending. */
const idle = (count: number): Consumer[] =>
  Array.from(
    { length: count },
    () => ({ group: 'idle', pending: 0, pendingBytes: 0, queue: { inFlight: 0 } }) as Consumer,
  )
const behind = (pending: number, pendingBytes = 0): Consumer =>
  ({ group: 'slow', pending: pending + 3, pendingBytes, queue: { inFlight: 3 } }) as Consumer

function filled(deliveries: number, max = 100): QueueBudget {
  const budget = new QueueBudget(max)
  for (let n = 0; n < deliveries; n++) budget.take(sized(0))
  return budget
}

test('the queue is crowded beyond three quarters of its deliveries, and no more when it has drained to there', () => {
  const budget = filled(75)
  assert.equal(budget.isCrowded, false)
  budget.take(sized(0))
  assert.equal(budget.isCrowded, true)
  budget.release(sized(0))
  assert.equal(budget.isCrowded, false)
  assert.equal(budget.pending, 75)
})

test('it is crowded beyond three quarters of its bytes too', () => {
  const budget = new QueueBudget(100)
  budget.take(sized(HUB_MAX_PENDING_BYTES * 0.75))
  assert.equal(budget.isCrowded, false)
  budget.take(sized(1))
  assert.equal(budget.isCrowded, true)
  budget.release(sized(1))
  assert.equal(budget.isCrowded, false)
})

test('events without a cause may fill nine tenths, the others all of it', () => {
  const budget = filled(90)
  assert.throws(() => budget.check(idle(1), 0, true), {
    code: 'EVENT_BUS_FULL',
    message: 'The event queue is full: 90 deliveries wait',
  })
  budget.check(idle(10), 0, false)
  assert.throws(() => budget.check(idle(11), 0, false), { code: 'EVENT_BUS_FULL' })
  filled(89).check(idle(1), 0, true)
})

test('the same shares hold for bytes', () => {
  const budget = new QueueBudget(1000)
  budget.take(sized(HUB_MAX_PENDING_BYTES * 0.875))
  const most = HUB_MAX_PENDING_BYTES * 0.125
  budget.check(idle(2), most / 2, false)
  assert.throws(() => budget.check(idle(2), most / 2 + 1, false), {
    code: 'EVENT_BUS_FULL',
    message: /its payloads take/,
  })
  assert.throws(() => budget.check(idle(1), most / 2, true), { code: 'EVENT_BUS_FULL' })
})

test('what a subscriber handles counts against it beyond an eighth of the queue', () => {
  const handling = (count: number) =>
    ({ group: 'slow', pending: count, pendingBytes: 0, queue: { inFlight: count } }) as Consumer
  filled(56).check([handling(56)], 0, false)
  assert.throws(() => filled(57).check([handling(57)], 0, false), {
    code: 'EVENT_BUS_FULL',
    message: /^slow is too far behind: 57 deliveries wait or are being handled/,
  })
  filled(57).check(idle(1), 0, false)
})

test('a queue of one takes one', () => {
  const budget = new QueueBudget(1)
  budget.check(idle(1), 0, true)
  budget.check(idle(1), 0, false)
  budget.take(sized(0))
  assert.equal(budget.isCrowded, true)
  assert.throws(() => budget.check(idle(1), 0, false), { code: 'EVENT_BUS_FULL' })
})

test('a subscriber may have as many deliveries as are free, so that an idle one always finds room', () => {
  const budget = filled(50)
  budget.check([behind(49)], 0, false)
  assert.throws(() => budget.check([behind(50)], 0, false), {
    code: 'EVENT_BUS_FULL',
    message:
      'slow is too far behind: 53 deliveries wait or are being handled, and the rest of the queue is for other subscribers',
  })
  assert.throws(() => budget.check([...idle(1), behind(50)], 0, false), { code: 'EVENT_BUS_FULL' })
  budget.check(idle(1), 0, true)
})

test('the same holds for bytes, and an event without a payload needs none', () => {
  const budget = new QueueBudget(100)
  budget.take(sized(HUB_MAX_PENDING_BYTES / 2))
  budget.check([behind(1, HUB_MAX_PENDING_BYTES / 2 - 1)], 1, false)
  assert.throws(() => budget.check([behind(1, HUB_MAX_PENDING_BYTES / 2)], 1, false), {
    code: 'EVENT_BUS_FULL',
    message: /^slow is too far behind: \d+ bytes wait/,
  })
  budget.check([behind(1, HUB_MAX_PENDING_BYTES / 2)], 0, false)
})

test('what waits behind dead letters has a bound in number and in bytes, below what one subscriber may have', () => {
  const budget = new QueueBudget(20)
  budget.checkHeld({ deliveries: 4, bytes: 0 }, 1, 0)
  assert.throws(() => budget.checkHeld({ deliveries: 4, bytes: 0 }, 2, 0), { code: 'EVENT_BUS_FULL' })
  budget.checkHeld({ deliveries: 0, bytes: HUB_MAX_PENDING_BYTES / 4 - 10 }, 1, 10)
  assert.throws(() => budget.checkHeld({ deliveries: 0, bytes: HUB_MAX_PENDING_BYTES / 4 - 10 }, 1, 11), {
    code: 'EVENT_BUS_FULL',
  })
})
