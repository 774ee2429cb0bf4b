import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { EventIndex } from '../../../src/primary/event-store/event-index.ts'
import { FollowedEvents } from '../../../src/primary/event-store/followed.ts'
import { SimulatedClock } from '../../simulation/time.ts'
import { hubOf } from '../events/fake-thread.ts'

test('FollowedEvents: an event is not called unknown before the store is open', async (t) => {
  const { hub } = hubOf(t)
  const clock = new SimulatedClock()
  let isOpening = true
  const followed = new FollowedEvents({
    hub,
    clock,
    database: () => null,
    isOpening: () => isOpening,
    index: {} as EventIndex,
    isCancelled: () => false,
  })
  let error: unknown = null
  void followed.followed('evt_1', '').catch((thrown) => {
    error = thrown
  })
  const step = async (): Promise<void> => {
    clock.step()
    await new Promise(setImmediate)
  }
  while (clock.steadyMs() < 10_000) await step()
  assert.equal(error, null)
  isOpening = false
  while (error === null) await step()
  assert.equal((error as unknown as HeddleError).code, 'EVENT_UNKNOWN')
})
