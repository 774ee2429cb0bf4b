import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import { makeEventId, timeOrderedId } from '../../../src/core/causality/ids.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { post, startWith } from '../../support/started-service.ts'

test('an event id is evt_ and a UUIDv7 without dashes', () => {
  for (let n = 0; n < 1000; n++) {
    const id = makeEventId()
    assert.match(id, /^evt_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
  }
})

test('the first 48 bits are the time', () => {
  const beforeMs = Date.now()
  const ms = Number.parseInt(timeOrderedId().slice(0, 12), 16)
  // Ids made in a burst before may have borrowed some milliseconds.
  assert.ok(ms >= beforeMs && ms <= Date.now() + 1000, `${ms} is not now`)
})

test('ids of one thread rise strictly, also more than 4096 in one millisecond', () => {
  let last = ''
  for (let n = 0; n < 200_000; n++) {
    const id = timeOrderedId()
    assert.ok(id > last, `${id} does not follow ${last}`)
    last = id
  }
})

test('ids rise although the clock goes back', (t) => {
  t.after(() => mock.timers.reset())
  const before = timeOrderedId()
  mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 })
  let last = before
  for (let n = 0; n < 10_000; n++) {
    const id = timeOrderedId()
    assert.ok(id > last)
    last = id
  }
})

test('the random part differs', () => {
  const tails = new Set(Array.from({ length: 5000 }, () => timeOrderedId().slice(16)))
  assert.equal(tails.size, 5000)
})

test('the trace is chronological although threads hand in their events late', async (t) => {
  const heddle = await startWith(t, 'observed', { lanes: 2, beside: SYSTEM_ROUTES })
  const published: { id: string }[] = await Promise.all([
    post(heddle, '/publish-and-block'),
    post(heddle, '/nap'),
    ...Array.from({ length: 10 }, () => post(heddle, '/primary/publish', { event: 'probe.between', payload: {} })),
  ])
  const { body } = await heddle.json('/system/traces/flat')
  const times = (body as EventRecord[]).map(({ timestamp }) => timestamp)
  assert.equal(times.length, published.length)
  assert.deepEqual(times, times.toSorted())
})
