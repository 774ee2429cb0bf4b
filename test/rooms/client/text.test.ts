import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientText } from '../../../src/devtools/client/write.ts'
import { folderOf } from '../../support/folder.ts'
import { assertCompiles } from './compiled.ts'
import { ODD_ROUTES, ODD_SCHEMAS, routeInfo } from './routes.ts'

const EVENTS = new Map(
  Object.entries(ODD_SCHEMAS).map(([name, schema]) => [`odd.${name}-*/'`, { domain: 'odd', schema }] as const),
)

const USER = `import { ApiError, Client, type Call, type PostOddTreeAnswer } from './odd.ts'
const client = new Client({ token: async () => null })
const call: Call<PostOddTreeAnswer, unknown> = client.postOddTree({ body: { kids: [{ kids: [] }] } })
export const names: Promise<number> = call.then(({ kids }) => kids.length)
// @ts-expect-error kids are wanted
client.postOddTree({ body: {} })
export async function all(): Promise<unknown> {
  const result = await client.postOddTuple({ body: ['a', null, true] }, { timeoutMs: 1 }).result()
  if (result.ok) return result.answer[0].length
  if (result.status === 409) return result.code === "it's" || result.code === '\\\\' ? result.details[0] : undefined
  if (result.status === 422) return result.details.map(({ path }) => path)
  // @ts-expect-error no runtime answers so
  if (result.status === 418) return 'a teapot'
  for await (const { n } of client.getStream<{ n: number }>({ query: { n: '1' } })) return n
  return result instanceof ApiError ? result.retryAfterMs : result.code
}
`

test('the strictest compiler takes the client of any service, in Node and in browsers', async (t) => {
  const folder = await folderOf(t, { 'odd.ts': clientText("odd */ 'things'\n", ODD_ROUTES, EVENTS), 'user.ts': USER })
  for (const library of ['browser', 'node'] as const) assertCompiles(folder, ['odd.ts', 'user.ts'], library)
})

test('the text is the same in whatever order plugins register their routes', () => {
  const text = clientText('odd', ODD_ROUTES, EVENTS)
  assert.equal(clientText('odd', ODD_ROUTES.toReversed(), new Map([...EVENTS].reverse())), text)
})

test('500 routes take less than a second', () => {
  const schema = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`field${n}`, ODD_SCHEMAS.tree])),
  }
  const routes = Array.from({ length: 500 }, (_, n) =>
    routeInfo(n % 2 === 0 ? 'POST' : 'PUT', `/things${n}/:id`, { schemas: { body: schema, response: schema } }),
  )
  const before = process.cpuUsage()
  const text = clientText('many', routes, EVENTS)
  const { user, system } = process.cpuUsage(before)
  assert.equal(text.match(/this\.#transport\.call\(/g)?.length, 500)
  assert.ok(user + system < 1_000_000, `${user + system} µs`)
})
