import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Claims } from '../../../src/contracts/auth.ts'
import type { Db } from '../../../src/contracts/db.ts'
import type { Http } from '../../../src/contracts/http.ts'
import type { BodyStream } from '../../../src/contracts/http-request.ts'
import { type Guard, Plugin, plugin, type Tools, type ToolsIn } from '../../../src/index.ts'

/** The compiler is the judge: a line marked `@ts-expect-error` that has none fails `npm run check:types`. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

const newUser = z.object({ name: z.string(), age: z.coerce.number().default(0) })
const validateToken = async (token: string): Promise<Claims | null> => (token === '' ? null : { sub: token, exp: 0 })
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
  http.post('/users', { body: newUser, query: z.object({}) }, ({ name, age }, context) => {
    same<[typeof name, typeof age, typeof context.body], [string, number, unknown]>()
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
