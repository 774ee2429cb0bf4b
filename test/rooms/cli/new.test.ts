import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readProject } from '../../../src/devtools/lint/project.ts'
import { scaffoldDomain } from '../../../src/devtools/scaffolding/domain.ts'
import { scaffoldMigration } from '../../../src/devtools/scaffolding/migration.ts'
import { scaffoldPlugin } from '../../../src/devtools/scaffolding/plugin.ts'
import { type Scaffold, write } from '../../../src/devtools/scaffolding/templates.ts'
import { scaffoldTool } from '../../../src/devtools/scaffolding/tool.ts'
import type { Workplace } from '../../../src/devtools/scaffolding/workplace.ts'
import { INHERITED, run } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const HEDDLE = join(ROOT, 'src/heddle.cjs')

/** A project with the sources and packages of this one, but its own domains, tools and tests. */
async function project(t: TestContext) {
  const root = temporaryFolder(t)
  for (const name of ['package.json', 'tsconfig.json', 'biome.json', '.gitignore'])
    await copyFile(join(ROOT, name), join(root, name))
  for (const name of ['src', 'node_modules']) await symlink(join(ROOT, name), join(root, name))
  const tools = join(root, 'tools')
  for (const name of readdirSync(join(ROOT, 'src/tools')).filter((folder) => folder !== 's3')) {
    await mkdir(join(tools, name), { recursive: true })
    await symlink(join(ROOT, 'src/tools', name, 'index.ts'), join(tools, name, 'index.ts'))
  }
  await mkdir(join(root, 'domains'))
  const runHere = (args: string[], env: Record<string, string> = {}) =>
    run(process.execPath, args, root, { ...INHERITED, TOOLS_DIR: tools, ...env })
  return { root, tools, run: runHere, make: (...args: string[]) => runHere([HEDDLE, 'new', ...args]) }
}

test('what is written passes the checks and its own tests', async (t) => {
  const { root, tools, run, make } = await project(t)
  const written: string[] = []
  await writeFile(join(root, 'others.ts'), 'export  const  untouched = 1')
  for (const [what, name, ...flags] of [
    ['domain', 'orders'],
    ['plugin', 'orders/create-order'],
    ['plugin', 'orders/rename-order'],
    ['plugin', 'orders/list-orders', '--class'],
    ['plugin', 'orders/place-order', '--class'],
    ['migration', 'orders/add_total'],
    ['hooks', 'orders'],
    ['hooks', 'app'],
    ['tool', 's3'],
  ] as const) {
    const { code, stdout, stderr } = await make(what, name, ...flags)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Wrote\n( {2}\S+\n)+Next\n/)
    written.push(...stdout.slice(0, stdout.indexOf('Next')).match(/(?<=^ {2})\S+$/gm)!)
  }
  assert.deepEqual(written, [
    'domains/orders/events.ts',
    'domains/orders/migrations/001_orders.sql',
    'domains/orders/plugins/add-order.ts',
    'test/orders/add-order.test.ts',
    'domains/orders/plugins/create-order.ts',
    'test/orders/create-order.test.ts',
    'domains/orders/plugins/rename-order.ts',
    'test/orders/rename-order.test.ts',
    'domains/orders/plugins/list-orders.ts',
    'test/orders/list-orders.test.ts',
    'domains/orders/plugins/place-order.ts',
    'test/orders/place-order.test.ts',
    'domains/orders/migrations/002_add_total.sql',
    'domains/orders/domain.ts',
    'domains/app.ts',
    'tools/s3/index.ts',
    'tools/s3/README.md',
    'test/tools/s3.test.ts',
  ])
  assert.match(
    await readFile(join(root, 'domains/orders/migrations/002_add_total.sql'), 'utf8'),
    /^-- depends: orders\/001_orders\n[\s\S]*^ALTER TABLE orders ADD COLUMN total INTEGER;\n$/m,
  )

  assert.equal(await readFile(join(root, 'others.ts'), 'utf8'), 'export  const  untouched = 1')

  await writeFile(
    join(root, 'tsconfig.json'),
    JSON.stringify({
      ...JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8')),
      include: ['domains', 'test', 'tools/s3'],
    }),
  )
  const checks = await Promise.all([
    run([join(ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit']),
    run([
      join(ROOT, 'node_modules/@biomejs/biome/bin/biome'),
      'check',
      '--error-on-warnings',
      'domains',
      'test',
      join(tools, 's3'),
    ]),
    run([HEDDLE, 'lint']),
  ])
  for (const { code, stdout, stderr } of checks) assert.equal(code, 0, stdout + stderr)
  const tests = await run([...LOADER, '--test', ...written.filter((file) => file.endsWith('.test.ts'))])
  assert.equal(tests.code, 0, tests.stdout + tests.stderr)
})

test('what cannot be made is refused with the reason, and nothing is written over', async (t) => {
  const { root, tools, make } = await project(t)
  const open = async (...folders: string[]): Promise<Workplace> => {
    const domainsDirs = (folders.length === 0 ? ['domains'] : folders).map((folder) => join(root, folder))
    return { root, domainsDirs, toolsDir: tools, testsDir: join(root, 'test'), project: await readProject(domainsDirs) }
  }
  const domain = async (name: string, within?: string) => scaffoldDomain(await open(), name, within)
  const plugin = async (name: string) => scaffoldPlugin(await open(), name, undefined)
  const migration = async (name: string, ...depends: string[]) =>
    scaffoldMigration(await open(), name, undefined, depends)
  const tool = async (name: string) => scaffoldTool(await open(), name)
  write((await domain('orders')).files)

  const refusals: [() => Promise<Scaffold>, RegExp][] = [
    [() => domain('orders'), /^There is a domain orders already: .*domains\/orders$/],
    [() => domain('Orders'), /small letters with hyphens, like orders: not "Orders"/],
    [() => domain('../orders'), /small letters/],
    [() => domain('plugins'), /that word is reserved/],
    [() => domain('a'.repeat(61)), /at most 60 characters/],
    [() => domain('others', 'elsewhere'), /--in elsewhere: not one of DOMAINS_DIR/],
    [() => plugin('create-order'), /<domain>\/<verb-noun>, like orders\/create-order: not "create-order"/],
    [() => plugin('orders/create'), /a verb and a noun, like create-order: not "create"/],
    [() => plugin('orders/CreateOrder'), /small letters with hyphens/],
    [() => plugin('orders/plugins/create-order'), /not "orders\/plugins\/create-order"/],
    [() => plugin('people/create-person'), /There is no domain people in .*: npm run new -- domain people/],
    [() => migration('orders/AddTotal'), /small letters with underscores/],
    [() => migration('orders/001_total'), /without a number/],
    [() => migration('orders/orders'), /a migration of this name already: 001_orders\.sql/],
    [() => migration('orders/add_total', 'users/001_users'), /no such migration; there are orders\/001_orders/],
    [() => tool('db'), /There is a tool db already: .*tools\/sqlite/],
    [() => tool('event-bus'), /There is a tool event_bus already/],
    [() => tool('S3'), /small letters/],
  ]
  for (const [ask, reason] of refusals)
    await assert.rejects(ask, (error: Error) => reason.test(error.message) || assert.fail(error.message))

  const again = await plugin('orders/add-order')
  assert.throws(
    () => write(again.files),
    /^Error: Nothing was written: .*add-order\.ts, .*add-order\.test\.ts are there already$/,
  )

  await t.test('names lead to text that fits them', async () => {
    const twin = await domain('order')
    const texts = twin.files.map(({ text }) => text).join('\n')
    assert.match(texts, /CREATE TABLE order_entries/, 'no word of SQL')
    assert.match(texts, /'order\.new_order_added'/, 'a contract of its own')
    assert.match(
      (await plugin('orders/add-line')).files[0]!.text,
      /http\.post\('\/orders\/add-line', options,/,
      'a route of its own',
    )
    assert.match((await plugin('orders/show-order')).files[0]!.text, /http\.get\('\/orders\/:id', options,/)
    assert.match((await migration('orders/tidy_up')).files[0]!.path, /002_tidy_up\.sql$/)
  })

  await t.test('a domain goes to the first of several folders, the rest where the domain is', async () => {
    const both = await open('more', 'domains')
    assert.equal(scaffoldDomain(both, 'people', undefined).files[0]!.path, join(root, 'more/people/events.ts'))
    assert.equal(
      scaffoldDomain(both, 'people', join(root, 'domains')).files[0]!.path,
      join(root, 'domains/people/events.ts'),
    )
    const { files } = scaffoldPlugin(both, 'orders/show-order', undefined)
    assert.equal(files[0]!.path, join(root, 'domains/orders/plugins/show-order.ts'))
    write(scaffoldDomain(both, 'people', undefined).files)
    const inMore = scaffoldPlugin(both, 'people/show-person', undefined)
    assert.match(inMore.files[1]!.text, /domain: new URL\('\.\.\/\.\.\/more\/people', import\.meta\.url\)/)
    await mkdir(join(root, 'more/orders'))
    assert.throws(
      () => scaffoldPlugin(both, 'orders/show-order', undefined),
      /Several folders hold the domain orders: say which by --in/,
    )
  })

  await t.test('the command says how it is used, and fails where it must', async () => {
    const help = await make('--help')
    assert.equal(help.code, 0)
    assert.match(help.stdout, /^Usage: npm run new -- /)
    for (const [args, exit, reason] of [
      [['house', 'big'], 2, /^There is no "house" to make\n/],
      [['plugn', 'orders/add-order'], 2, /^There is no "plugn" to make: was plugin meant\?/],
      [['plugin', 'orders/add-order', '--dep', 'x'], 2, /^Unknown option '--dep'/],
      [['plugin'], 2, /^plugin: a name is missing/],
      [['domain', 'people', '--class'], 2, /^--class applies to a plugin alone/],
      [['plugin', 'orders/add-order'], 1, /^Nothing was written: /],
    ] as const) {
      const { code, stderr } = await make(...args)
      assert.equal(code, exit, stderr)
      assert.match(stderr, reason)
    }
    assert.ok(!existsSync(join(root, 'domains/house')))
  })
})
