import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { clientText } from '../../../src/devtools/client/write.ts'
import { folderOf } from '../../support/folder.ts'
import { ODD_ROUTES, ODD_SCHEMAS, routeInfo } from './routes.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
/** Everything that a careful project may ask of its files. */
const STRICT =
  'strict noUncheckedIndexedAccess exactOptionalPropertyTypes verbatimModuleSyntax isolatedModules erasableSyntaxOnly noImplicitOverride noImplicitReturns noUnusedLocals noUnusedParameters noPropertyAccessFromIndexSignature noFallthroughCasesInSwitch noEmit'

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

function compile(folder: string, options: string[]): void {
  const files = ['odd.ts', 'user.ts', 'client.ts', 'page.ts']
  const strict = STRICT.split(' ').map((name) => `--${name}`)
  const args = [...strict, '--target', 'es2022', '--module', 'nodenext', '--allowImportingTsExtensions', ...options]
  execFileSync(process.execPath, [TSC, ...args, ...files], { cwd: folder, encoding: 'utf8' })
}

test('the strictest compiler takes the client of any service, in Node and in browsers', async (t) => {
  const page = readFileSync(join(ROOT, 'src/devtools/client/README.md'), 'utf8')
  const folder = await folderOf(t, {
    'page.ts': /```ts\n(.*?)```/s.exec(page)![1]!,
    'odd.ts': clientText("odd */ 'things'\n", ODD_ROUTES, EVENTS),
    'user.ts': USER,
  })
  cpSync(join(ROOT, 'test/rooms/client/shop-client.ts'), join(folder, 'client.ts'))
  try {
    compile(folder, ['--lib', 'es2022,dom,dom.iterable,dom.asynciterable', '--types', ''])
    compile(folder, ['--lib', 'es2023', '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')])
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout)
  }
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
