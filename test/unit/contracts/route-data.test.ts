import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { DeliveryFailure, EventBus, EventContracts, Events, Payload, PayloadsOf } from '#heddle'
import type { Claims } from '../../../src/contracts/auth.ts'
import type { Db } from '../../../src/contracts/db.ts'
import type { Handler, Http } from '../../../src/contracts/http.ts'
import type { BodyParts, BodyStream, HttpContext } from '../../../src/contracts/http-request.ts'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import { type Guard, Plugin, plugin, type Tools, type ToolsIn } from '../../../src/index.ts'
import type { ProcessDied } from '../../../src/primary/supervision/process-deaths.ts'

/** The compiler is the judge: a line marked `@ts-expect-error` that has none fails `npm run check:types`. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

const routes: string[] = []

const http: Pick<Http, 'addEndpoint'> = { addEndpoint: (path) => void routes.push(path) }

const newUser = z.object({ name: z.string(), age: z.coerce.number().default(0) })

const validateToken = async (token: string): Promise<Claims | null> => (token === '' ? null : { sub: token, exp: 0 })

test("a handler's data has the types of its route's path, schemas and claims", () => {
  http.addEndpoint('/users/:id/posts/:post', 'GET', ({ id, post }) => {
    same<[typeof id, typeof post], [string, string]>()
  })
  http.addEndpoint('/files/*', 'GET', (data) => same<(typeof data)['*'], string>())
  http.addEndpoint(
    '/users/:id',
    'PUT',
    ({ id, name, age }) => same<[typeof id, typeof name, typeof age], [string, string, number]>(),
    {
      body: newUser,
    },
  )
  http.addEndpoint('/users/:id', 'GET', ({ id, page }) => same<[typeof id, typeof page], [number, number]>(), {
    params: z.object({ id: z.coerce.number() }),
    query: z.object({ page: z.coerce.number() }),
  })
  http.addEndpoint('/me', 'GET', ({ _auth }) => same<typeof _auth, Claims>(), { authValidator: validateToken })
  assert.equal(routes.length, 5)
})

test("a handler's data has what a schema has checked, and nothing else", () => {
  const id = z.object({ id: z.coerce.number() })
  http.addEndpoint('/a/:id', 'PATCH', (data) => same<keyof typeof data, 'id' | 'name' | 'age'>(), { body: newUser })
  http.addEndpoint('/b/:id', 'PATCH', (data) => same<keyof typeof data, 'id'>(), { params: id })
  http.addEndpoint('/c/:id', 'PATCH', (data) => same<keyof typeof data, 'id' | 'page'>(), {
    params: id,
    query: z.object({ page: z.string() }),
  })
  http.addEndpoint('/d/:id', 'PATCH', ({ id, ...changes }) => same<keyof typeof changes, 'name' | 'age'>(), {
    body: newUser,
  })
  // @ts-expect-error no schema gives a role
  http.addEndpoint('/e/:id', 'PATCH', ({ id, role }) => [id, role], { params: id })
  // Nothing is checked: anything may come.
  http.addEndpoint('/f/:id', 'PATCH', ({ id, role }) => [id, role])
  assert.ok(routes.length > 6)
})

test("a handler's context has the body as its route wants to read it", () => {
  http.addEndpoint('/a', 'POST', (_data, { body }) => same<typeof body, BodyStream>(), { body: 'stream' })
  http.addEndpoint('/b', 'POST', (_data, { body }) => same<typeof body, BodyParts>(), { body: 'multipart' })
  http.addEndpoint('/c', 'POST', (_data, { body }) => same<typeof body, unknown>(), { body: newUser })
  http.addEndpoint('/d', 'POST', ({ id }: { id?: string }, { body }: HttpContext<BodyStream>) => [id, body], {
    body: 'stream',
  })
  // @ts-expect-error the parts are not asked for
  http.addEndpoint('/e', 'POST', (_data, { body }: HttpContext<BodyParts>) => body, { body: 'stream' })
  // @ts-expect-error there is no such kind
  http.addEndpoint('/f', 'POST', () => 0, { body: 'form' })
  assert.ok(routes.length >= 6)
})

test('a handler with a type of its own must fit its route', () => {
  const create = (user: { name: string; age: number }, context: HttpContext) => [user, context.requestId]
  const untyped: Handler = (data) => data.anything
  http.addEndpoint('/users', 'POST', create, { body: newUser })
  http.addEndpoint('/users', 'POST', untyped, { body: newUser, tags: ['users'] })
  http.addEndpoint('/search', 'GET', ({ term }) => term)
  // @ts-expect-error the schema gives no e-mail
  http.addEndpoint('/users', 'POST', ({ email }: { email: string }) => email, { body: newUser })
  // @ts-expect-error the schema gives no e-mail
  http.addEndpoint('/users', 'POST', ({ email }) => email, { body: newUser })
  // @ts-expect-error a parameter of the path is a string
  http.addEndpoint('/users/:id', 'GET', ({ id }: { id: number }) => id)
  // @ts-expect-error nobody asks for a token
  http.addEndpoint('/users', 'POST', ({ _auth }) => _auth, { body: newUser })
})

const withShop: Guard<{ shop: string }> = (_data, context) => {
  context.shop = 'here'
}

test('a short form types data, context and answer by its path and its schemas', () => {
  let count = 0
  const add = () => void count++
  const http = { get: add, post: add, put: add, patch: add, delete: add } as unknown as Http
  http.get('/hello/:name', ({ name }) => {
    same<typeof name, string>()
    return { hello: name }
  })
  http.get('/users/:id', { params: z.object({ id: z.coerce.number() }) }, ({ id }) => same<typeof id, number>())
  http.post('/users', { body: newUser }, ({ name, age }, context) => {
    same<[typeof name, typeof age, typeof context.body], [string, number, unknown]>()
    same<typeof context.query, Readonly<Record<string, string | string[]>>>()
    context.setStatus(201)
  })
  http.put('/users/:id', { body: newUser }, ({ id, age }) => same<[typeof id, typeof age], [string, number]>())
  http.patch('/me', { authValidator: validateToken }, ({ _auth }) => same<typeof _auth, Claims>())
  http.post('/upload', { body: 'stream' }, (_data, { body }) => same<typeof body, BodyStream>())
  http.get('/shop', { guards: [withShop] }, (_data, { shop }) => same<typeof shop, string>())
  http.delete('/users/:id', { response: z.object({ gone: z.boolean() }) }, async () => ({ gone: true }))
  // @ts-expect-error the answer has another shape
  http.delete('/users/:id', { response: z.object({ gone: z.boolean() }) }, async () => ({ gone: 'yes' }))
  // @ts-expect-error the path has no such parameter, and the schema no such field
  http.post('/users', { body: newUser }, ({ email }) => email)
  // @ts-expect-error the options stand before the handler
  http.get('/hello/:name', ({ name }: { name: string }) => name, { tags: ['hello'] })
  // @ts-expect-error there is no such option
  http.get('/hello/:name', { tag: 'hello' }, ({ name }) => name)
  assert.equal(count, 12)
})

test('what a hook adds is known to the short forms', () => {
  const http = {} as Http
  const use = (): void =>
    http
      .identify(() => ({ id: 'ada', isAdmin: true }))
      .get('/me', (_data, { user }) => {
        const isAdmin = user?.isAdmin
        same<typeof isAdmin, boolean | undefined>()
      })
  assert.equal(typeof use, 'function')
})

test('a plugin as a function has the tools, typed as those of a class', () => {
  const shop = ({ http }: Tools) =>
    http.before<{ shop: string }>((_data, context) => {
      context.shop = 'here'
    })
  const plain = plugin(({ http, db }) => {
    same<[typeof http, typeof db], [Http, Db]>()
  })
  const hooked = plugin(({ http }: ToolsIn<typeof shop>) => {
    http.get('/shop', (_data, context) => same<typeof context.shop, string>())
  })
  const living = plugin(async ({ logger }) => ({ onStop: () => logger.info('over') }), { thread: 'primary' })
  // @ts-expect-error there is no such part of its life
  plugin(() => ({ onShutdown: () => {} }))
  // @ts-expect-error there is no such thread
  plugin(() => {}, { thread: 'main' })
  // @ts-expect-error there is no such tool
  plugin(({ https }) => void https)
  // @ts-expect-error a plugin is a function
  assert.throws(() => plugin({}), /plugin takes a function/)
  assert.deepEqual(
    [plain, hooked, living].map((each) => [each.prototype instanceof Plugin, each.thread, each.name]),
    [
      [true, 'worker', ''],
      [true, 'worker', ''],
      [true, 'primary', ''],
    ],
  )
})

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
