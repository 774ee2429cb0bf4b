import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Claims } from '../../../src/contracts/auth.ts'
import type { Handler, Http } from '../../../src/contracts/http.ts'
import type { BodyParts, BodyStream, HttpContext } from '../../../src/contracts/http-request.ts'

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
