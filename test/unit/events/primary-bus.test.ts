/** The primary as a thread that the hub delivers to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineMs } from '../../../src/core/schedule/clock.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { PrimaryBus } from '../../../src/primary/events/primary-bus.ts'
import { eventOf } from './fake-thread.ts'

test('it gives back what its limit no longer lets begin', () => {
  const given: number[] = []
  const handled: number[] = []
  const turns: (() => void)[] = []
  const hub = {
    clock: { turn: (run: () => void) => void turns.push(run) },
    unbegun: (ids: number[]) => void given.push(...ids),
    delivered: (id: number) => void handled.push(id),
  } as unknown as Hub
  const kernel = { settings: { eventBusMaxSubscriptions: 10, eventBusWaitForTools: true } } as never
  const bus = new PrimaryBus(kernel, hub, () => assert.fail(), {} as never)
  const owner = { name: 'shop.Sell', instance: {} }
  const { subscriberIndex: subscriber } = bus.events.add({
    owner,
    event: 'order.placed',
    handler: () => {},
    options: {},
    shares: [],
  } as never)
  for (const [id, beginBy] of [
    [1, 0],
    [2, machineMs() - 1],
    [3, machineMs() + 60_000],
  ] as const)
    bus.send(id, eventOf(`evt_${id}`, { beginBy, subscriber }))
  for (const run of turns) run()
  assert.deepEqual({ handled, given, inFlight: bus.deliveriesInFlight }, { handled: [1, 3], given: [2], inFlight: 0 })
})
