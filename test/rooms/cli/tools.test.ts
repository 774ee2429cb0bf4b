import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OUTER, run } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const USES_NOTHING = "throw new Error('a listed tool must not run')\n"

/** A project's `src` with folders as given, for example `tools/sqlite`: the text of its index.ts. */
async function sourceFolder(t: TestContext, folders: Record<string, string>): Promise<string> {
  const src = temporaryFolder(t)
  await mkdir(join(src, 'tools'))
  for (const [folder, text] of Object.entries(folders)) {
    await mkdir(join(src, folder), { recursive: true })
    await writeFile(join(src, folder, 'index.ts'), text)
  }
  return src
}

function tool(name: string): string {
  return `${USES_NOTHING}export default class Some { readonly name = '${name}' }\n`
}

const runTools = (src: string, ...args: string[]) =>
  run(process.execPath, ['src/heddle.cjs', 'tools', ...args], ROOT, { ...OUTER, TOOLS_DIR: join(src, 'tools') })

/** The rows `tool implementation state`, without the heading. */
function rowsOf(stdout: string): string[] {
  const [, ...rows] = stdout.trimEnd().split('\n')
  return rows.map((row) => row.split(/\s+/).join(' '))
}

async function placesOf(src: string): Promise<Record<string, string[]>> {
  const places: Record<string, string[]> = {}
  for (const place of (await readdir(src)).sort()) places[place] = (await readdir(join(src, place))).sort()
  return places
}

test('tools are listed by name, active and parked, without running any of them', async (t) => {
  const src = await sourceFolder(t, {
    'tools/sqlite': tool('db'),
    'tools/auth': "class Auth {\n  name = 'auth' as const\n}\nexport default Auth\n",
    'extras/postgres': `import pg from 'not-installed'\n${tool('db')}`,
    'extras/nameless': 'export default class Nameless {}\n',
  })
  const { code, stdout } = await runTools(src)
  assert.equal(code, 0)
  assert.deepEqual(rowsOf(stdout), [
    '(no name) nameless parked',
    'auth auth active',
    'db postgres parked',
    'db sqlite active',
  ])
})

test('tools are listed when nothing is parked, and when the folder for it is missing', async (t) => {
  const src = await sourceFolder(t, { 'tools/sqlite': tool('db') })
  assert.deepEqual(rowsOf((await runTools(src)).stdout), ['db sqlite active'])
  await mkdir(join(src, 'extras'))
  assert.deepEqual(rowsOf((await runTools(src)).stdout), ['db sqlite active'])
})

test('the tools of the project itself all have a name', async () => {
  const { code, stdout } = await runTools(join(ROOT, 'src'))
  assert.equal(code, 0)
  const rows = rowsOf(stdout)
  assert.ok(rows.some((row) => /^db \S+ active$/.test(row)))
  assert.deepEqual(
    rows.filter((row) => row.startsWith('(no name)')),
    [],
  )
})

test('use moves the active implementation out and the other one in, and back', async (t) => {
  const src = await sourceFolder(t, {
    'tools/sqlite': tool('db'),
    'tools/memory-state': tool('state'),
    'extras/postgres': tool('db'),
  })
  const there = await runTools(src, 'use', 'postgres')
  assert.equal(there.code, 0, there.stderr)
  assert.match(there.stdout, /^db is postgres from the next start on, sqlite is parked in .*extras\n$/)
  assert.deepEqual(await placesOf(src), { extras: ['sqlite'], tools: ['memory-state', 'postgres'] })
  assert.ok(existsSync(join(src, 'extras/sqlite/index.ts')))

  assert.equal((await runTools(src, 'use', 'sqlite')).code, 0)
  assert.deepEqual(await placesOf(src), { extras: ['postgres'], tools: ['memory-state', 'sqlite'] })
})

test('use brings in a tool that no folder holds yet', async (t) => {
  const src = await sourceFolder(t, { 'tools/sqlite': tool('db'), 'extras/smtp': tool('mailer') })
  assert.equal((await runTools(src, 'use', 'smtp')).stdout, 'mailer is smtp from the next start on\n')
  assert.deepEqual(await placesOf(src), { extras: [], tools: ['smtp', 'sqlite'] })
})

test('use refuses what it cannot do, says why, and moves nothing', async (t) => {
  const src = await sourceFolder(t, {
    'tools/sqlite': tool('db'),
    'tools/redis-state': tool('state'),
    'extras/postgres': tool('db'),
    'extras/redis-state': tool('state'),
    'extras/memory-state': tool('state'),
    'extras/nameless': 'export default class Nameless {}\n',
  })
  const before = await placesOf(src)
  const refusals: [string[], RegExp][] = [
    [['use', 'sqlite'], /^sqlite is active already$/],
    [
      ['use', 'oracle'],
      /^There is no implementation oracle in .*extras; parked there: memory-state, nameless, postgres, redis-state$/,
    ],
    [['use', 'db'], /^db is a tool; name an implementation of it: sqlite, postgres$/],
    [['use', 'nameless'], /nameless has no default-exported class with a literal `name`$/],
    [['use', 'redis-state'], /^redis-state is both in .*tools and in .*extras: remove one of them$/],
    [['use', 'memory-state'], /^redis-state cannot be parked: there is a folder .*redis-state already$/],
    [['use', '../extras/postgres'], /^There is no implementation/],
    [['use'], /^Usage: npm run tools/],
    [['use', 'postgres', 'sqlite'], /^Usage: npm run tools/],
    [['remove', 'sqlite'], /^There is no command remove\n[\s\S]*Usage: npm run tools/],
    [['use', 'sqlite', '--now'], /^Unknown option '--now'[\s\S]*Usage: npm run tools/],
  ]
  for (const [args, message] of refusals) {
    const { code, stdout, stderr } = await runTools(src, ...args)
    assert.equal(code, message.source.includes('Usage') ? 2 : 1, `${args}: ${stdout}${stderr}`)
    assert.match(stderr.trimEnd(), message)
    assert.equal(stdout, '')
  }
  assert.deepEqual(await placesOf(src), before)
})

test('a tools folder that is not there is a fault of the environment', async (t) => {
  const src = await sourceFolder(t, {})
  const { code, stderr } = await runTools(join(src, 'none'))
  assert.equal(code, 78)
  assert.match(stderr, /^TOOLS_DIR: there is no folder .*none.tools\n$/)
  assert.equal(existsSync(dirname(join(src, 'none', 'tools'))), false)
})
