import assert from 'node:assert/strict'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Development } from '../../../src/devtools/development.ts'
import { folderOf } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

const PATIENCE_MS = 20_000
const plugin = (n: number): string => `export default class P${n} {}`

/** Domains that somebody changes, and the reloads that were asked for; each ends when it is let go. */
async function developed(t: TestContext) {
  const domains = await folderOf(t, {
    'shop/plugins/sell.ts': plugin(0),
    'shop/plugins/watch.ts': `import { line } from '../line.ts'\nexport default class Watch { static thread = 'primary' }`,
    'shop/line.ts': `import type { T } from './types.ts'\nexport const line = 1`,
    'shop/types.ts': 'export type T = 1',
    'shop/migrations/001_shop.sql': 'SELECT 1',
  })
  const tools = await folderOf(t, { 'mine/index.ts': '' })
  const reloads: string[] = []
  const migrations: string[] = []
  const ends: (() => void)[] = []
  const log: string[] = []
  const end = new Development({
    settings: { domainsDir: [domains], toolsDir: tools, dbAutoMigrate: true },
    migrate: async () => {
      migrations.push(await readFile(join(domains, 'shop/migrations/001_shop.sql'), 'utf8'))
      if (migrations.at(-1) === 'SELECT') throw new Error('Migration shop/001_shop failed')
    },
    reload: (why) => {
      reloads.push(why)
      return new Promise((resolve) => ends.push(resolve))
    },
    log: (level, message) => void log.push(`${level} ${message}`),
  }).start()
  t.after(end)
  const reloaded = (times: number) => until(() => reloads.length >= times, `reload ${times}`, PATIENCE_MS)
  const said = (text: string) => until(() => log.some((line) => line.includes(text)), text, PATIENCE_MS)
  return { domains, tools, migrations, reloads, ends, log, reloaded, said }
}

test('many changes at once are one reload, and those during a reload are one more after it', async (t) => {
  const { domains, reloads, ends, reloaded } = await developed(t)
  const parts = await folderOf(
    t,
    Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`plugins/part-${n}.ts`, plugin(n)])),
  )
  await cp(join(parts, 'plugins'), join(domains, 'shop/plugins'), { recursive: true })
  await reloaded(1)
  const file = join(domains, 'shop/plugins/sell.ts')
  for (let n = 1; n < 4; n++) await writeFile(file, plugin(n))
  assert.equal(reloads.length, 1)
  ends.shift()!()
  await reloaded(2)
  ends.shift()!()
  // Of a slow copy some files may come in reloads of their own, and one of them with this change: the change is made once more then.
  const isAlone = (): boolean => reloads.at(-1)!.endsWith('shop/plugins/sell.ts has changed')
  for (let n = 0; n < 10 && (n === 0 || !isAlone()); n++) {
    const before = reloads.length
    await writeFile(file, plugin(9 + n))
    const isNext = (): boolean => {
      ends.shift()?.()
      return reloads.length > before
    }
    await until(isNext, 'a change alone', PATIENCE_MS)
  }
  assert.ok(isAlone(), reloads.join('\n'))
  assert.ok(reloads.length <= 12, reloads.join('\n'))
})

test('a plugin outside of a folder of plugins is told, with the place where it belongs, and other files are not', async (t) => {
  const { domains, log, said } = await developed(t)
  await writeFile(join(domains, 'shop/sell-more.ts'), 'export default plugin(() => {})')
  await said('shop/sell-more.ts is not loaded: a plugin belongs in')
  await writeFile(
    join(domains, 'buy.ts'),
    "import { Plugin } from 'heddle'\nexport default class Buy extends Plugin {}",
  )
  await said('<domain>/plugins/buy.ts')
  assert.ok(log.some((line) => line.endsWith('/shop/plugins/sell-more.ts')))
  assert.equal(log.filter((line) => line.includes('is not loaded')).length, 2, log.join('\n'))
})

test('what a reload does not bring is told, once for each file, and what it brings is not', async (t) => {
  const { domains, tools, log, reloads, ends, said, reloaded } = await developed(t)
  await writeFile(join(tools, 'mine/index.ts'), '// 2')
  await said('mine/index.ts (part of the process')
  assert.deepEqual(reloads, [])
  await writeFile(join(domains, 'shop/line.ts'), 'export const line = 2')
  await said('shop/line.ts (the primary thread keeps')
  await reloaded(1)
  ends.shift()!()
  const before = log.length
  await writeFile(join(domains, 'shop/line.ts'), 'export const line = 3')
  await reloaded(2)
  ends.shift()!()
  for (const file of ['shop/types.ts', 'shop/plugins/sell.ts']) await writeFile(join(domains, file), 'export {}')
  await reloaded(3)
  assert.deepEqual(log.slice(before), [])
})

test('migrations are applied as they appear, and one that fails is told', async (t) => {
  const { domains, migrations, reloads, said } = await developed(t)
  const file = join(domains, 'shop/migrations/001_shop.sql')
  await writeFile(file, 'SELECT')
  await said(
    'ERROR Migration shop/001_shop failed. Save it again, or begin anew: stop this process, npm run migrate -- reset, and start it again',
  )
  await writeFile(file, 'SELECT 2')
  await until(() => migrations.at(-1) === 'SELECT 2', 'the second text', PATIENCE_MS)
  assert.deepEqual(reloads, [])
})
