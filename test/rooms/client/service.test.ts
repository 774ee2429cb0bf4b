import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { clientFrom } from '../../../src/devtools/client/sources.ts'
import { clientText } from '../../../src/devtools/client/write.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { ODD_EVENTS, ODD_ROUTES } from './routes.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const COMMAND = join(ROOT, 'src/heddle.cjs')
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const SHOP = fileURLToPath(new URL('../../fixtures/client', import.meta.url))
const SOURCE = readFileSync(new URL('./uses.ts', import.meta.url), 'utf8')

/** Everything that a careful project may ask of its files. */
const STRICT =
  'strict noUncheckedIndexedAccess exactOptionalPropertyTypes verbatimModuleSyntax isolatedModules erasableSyntaxOnly noImplicitOverride noImplicitReturns noUnusedLocals noUnusedParameters noPropertyAccessFromIndexSignature noFallthroughCasesInSwitch noEmit'
const LIBRARIES = {
  browser: ['--lib', 'es2022,dom,dom.iterable,dom.asynciterable', '--types', ''],
  node: ['--lib', 'es2023', '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')],
}

/** The program of the page of the client. */
const PAGE = /```ts\n(.*?)```/s.exec(readFileSync(join(ROOT, 'src/devtools/client/README.md'), 'utf8'))![1]!

/** A program that uses the client of odd routes. */
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

/** Of `uses.ts`, where a client stands beside it. */
interface Uses {
  Client: new (options: object) => unknown
  USES: Record<string, (client: unknown, options: object) => Promise<void>>
  isGone(client: unknown): Promise<void>
}

test('the client of a running service', async (t) => {
  const heddle = await startHeddle(t, { domains: [SHIPPED, SHOP], lanes: 1, env: { API_TITLE: 'the shop' } })
  const text = await (await heddle.fetch('/system/client.ts')).text()
  const odd = clientText("odd */ 'things'\n", ODD_ROUTES, ODD_EVENTS)
  const texts = { 'client.ts': text, 'page.ts': PAGE, 'uses.ts': SOURCE, 'odd.ts': odd, 'user.ts': USER }
  const folder = await folderOf(t, texts)

  await t.test('is text that depends on routes and events alone, so that it can be committed', async () => {
    assert.equal(await (await heddle.fetch('/system/client.ts')).text(), text)
    const whole = await (await heddle.fetch('/system/client.ts?system=true')).text()
    assert.match(whole, /getSystemStatus.*RuntimeFailure/)
    assert.match(whole, /'runtime\.lane\.died': RuntimeLaneDiedEvent/)
    assert.doesNotMatch(text, /getSystemStatus|runtime\.lane\.died/)
  })

  await t.test('is taken by the strictest compiler, with the programs that use it, as that of any service is', () => {
    assertCompiles(folder, Object.keys(texts), 'node')
    assertCompiles(folder, ['client.ts', 'page.ts', 'odd.ts', 'user.ts'], 'browser')
  })

  const { Client, isGone, USES }: Uses = await import(join(folder, 'uses.ts'))
  const options = { baseUrl: heddle.url, WebSocket }
  const client = new Client({ baseUrl: heddle.url })
  for (const [name, use] of Object.entries(USES)) await t.test(name, () => use(client, options))

  await t.test('the command writes the same text, of the process that runs and of the sources', async (t) => {
    const out = join(await folderOf(t, {}), 'api/client.ts')
    const env = { DOMAINS_DIR: [SHIPPED, SHOP].join(delimiter), API_TITLE: 'the shop', HTTP_PORT: String(heddle.port) }
    const command = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, 'client', ...args], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      })
      return { status, output: stdout + stderr }
    }
    const running = command('--out', out)
    assert.match(running.output, /is written, from http:\/\/127\.0\.0\.1:\d+\n$/)
    assert.equal(readFileSync(out, 'utf8'), text)
    const booted = command('--boot')
    assert.equal(booted.status, 0, booted.output)
    assert.ok(booted.output === text)
    writeFileSync(out, 'old')
    const stale = command('--out', out, '--check', '--url', `${heddle.url}/`)
    assert.deepEqual([stale.status, readFileSync(out, 'utf8')], [1, 'old'])
    await assert.rejects(clientFrom('http://127.0.0.1:1', undefined, false), /cannot be reached/)
  })

  await heddle.stop()
  await isGone(client)
})

/** The strictest compiler takes these files, as they are loaded by Node or by a browser. */
function assertCompiles(folder: string, files: readonly string[], library: keyof typeof LIBRARIES): void {
  const strict = STRICT.split(' ').map((name) => `--${name}`)
  const args = [...strict, '--target', 'es2022', '--module', 'nodenext', '--allowImportingTsExtensions']
  try {
    execFileSync(process.execPath, [TSC, ...args, ...LIBRARIES[library], ...files], { cwd: folder, encoding: 'utf8' })
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout)
  }
}
