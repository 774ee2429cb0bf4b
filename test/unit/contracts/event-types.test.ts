import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { DeliveryFailure, EventBus, EventContracts, Events, Payload, PayloadsOf } from '#heddle'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { ProcessDied } from '../../../src/primary/supervision/process-deaths.ts'

const contracts = {
  'types.order_placed': z.object({
    id: z.string(),
    quantity: z.number().default(1),
    lines: z.array(z.object({ item: z.string(), price: z.number().nullable() })),
    note: z.string().optional(),
  }),
  'types.dated': z.object({ at: z.date() }),
  'types.price_wanted': z.object({ item: z.string() }),
} satisfies EventContracts

declare module '#heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}

/** The compiler is the judge: a line marked `@ts-expect-error` that has none fails `npm run check:types`. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

const published: unknown[] = []
const bus: Pick<EventBus, 'publish' | 'request' | 'subscribe'> = {
  publish: async (event) => String(published.push(event)),
  request: async (event) => published.push(event) as never,
  subscribe: () => () => {},
}
const order = { id: 'o1', lines: [{ item: 'loom', price: null }] }

test('the payload of an event with a contract is checked by the compiler', async () => {
  await bus.publish('types.order_placed', order)
  await bus.publish('types.order_placed', { ...order, quantity: 2, note: 'soon' }, { key: 'o1' })
  // @ts-expect-error a number
  await bus.publish('types.order_placed', { ...order, id: 1 })
  // @ts-expect-error nested: a price
  await bus.publish('types.order_placed', { id: 'o1', lines: [{ item: 'loom' }] })
  // @ts-expect-error no lines
  await bus.publish('types.order_placed', { id: 'o1' })
  // @ts-expect-error a key that the contract does not know
  await bus.publish('types.order_placed', { ...order, colour: 'red' })
  // @ts-expect-error the contract of another domain counts here too
  await bus.publish('user.created', { id: 'u1', name: 'Ada' })
  await bus.publish('event.delivery.failed', { event: 'a', event_id: 'b', subscriber: 'c', error: 'd', attempts: 1 })
  await bus.request('types.price_wanted', { item: 'loom' })
  // @ts-expect-error no item
  await bus.request('types.price_wanted', {})
  assert.equal(published.length, 10)
})

test('a subscriber of an event with a contract gets the payload that it says', () => {
  bus.subscribe('types.order_placed', ({ id, quantity, lines, note }) => {
    same<[typeof id, typeof quantity, typeof note], [string, number | undefined, string | undefined]>()
    same<typeof lines, { item: string; price: number | null }[]>()
  })
  bus.subscribe('types.order_placed', ({ id }: { id: string }) => id, { retries: 1 })
  bus.subscribe('user.created', ({ id, name, email }) =>
    same<[typeof id, typeof name, typeof email], [string, string, string]>(),
  )
  // @ts-expect-error the id is a string
  bus.subscribe('types.order_placed', ({ id }: { id: number }) => id)
  // @ts-expect-error there is no such key
  bus.subscribe('types.order_placed', ({ colour }) => colour)
  // What is published as a Date arrives as its text.
  bus.subscribe('types.dated', ({ at }) => same<typeof at, string>())
})

test('an event without a contract takes any payload, and its subscriber names a type or has unknown values', async () => {
  const name: string = 'types.' + 'computed'
  await bus.publish('types.free', { anything: [1, 'two'] })
  await bus.publish(name, { anything: 1 })
  // @ts-expect-error no object
  await bus.publish('types.free', 'text')
  bus.subscribe('types.free', ({ id }: { id: number }) => id)
  bus.subscribe('types.free', ({ id }) => same<typeof id, unknown>())
  bus.subscribe(name, (data) => same<typeof data, Payload>())
  const { cents } = await bus.request<{ cents: number }>('types.free', {})
  same<typeof cents, number>()
})

test("the runtime's own events are declared as the runtime makes them", () => {
  same<Events['event.delivery.failed'], DeliveryFailure>()
  same<Events['runtime.lane.died'], BlackBox>()
  same<Events['runtime.process.died'], ProcessDied>()
})
