import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { post, startWith } from '../../support/started-service.ts'

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
