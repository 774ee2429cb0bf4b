import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { reportOf, type Use } from '../../../src/devtools/cli/permissions.ts'
import { run } from '../../support/command.ts'
import { folderOf } from '../../support/folder.ts'

const HEDDLE = fileURLToPath(new URL('../../../src/heddle.cjs', import.meta.url))
const TELLS = process.allowedNodeEnvironmentFlags.has('--permission-audit')

const PLUGIN = `
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { plugin } from 'heddle'
import { next } from '../../../library/next.ts'

export default plugin(({ db, http }) => {
  http.get('/use', async () => {
    mkdirSync('uploads', { recursive: true })
    for (const name of ['one', 'two']) writeFileSync('uploads/' + name + next(1), readFileSync('templates/' + name))
    await db.execute('CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY)')
    return { text: execFileSync('echo', ['said'], { encoding: 'utf8' }) }
  })
})
`
const TEST = `
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { boot, plugin } from 'heddle/testing'
import useThings from '../domains/use/plugins/use-things.ts'

test('in lanes', async (t) => {
  readFileSync('test/of-tests.txt')
  assert.equal((await (await boot(t)).get('/use')).status, 200)
})
test('alone', async (t) => assert.equal((await (await plugin(t, useThings)).get('/use')).status, 200))
`

const application = (t: TestContext): Promise<string> =>
  folderOf(t, {
    'domains/use/plugins/use-things.ts': PLUGIN,
    'library/next.ts': 'export const next = (n: number): number => n + 1\n',
    'templates/one': '1',
    'templates/two': '2',
    'test/of-tests.txt': '',
    'test/use.test.ts': TEST,
  })

test('heddle permissions prints what plugins used in tests, alone and in lanes, as a line for .env', async (t) => {
  const { code, output } = await run(process.execPath, [HEDDLE, 'permissions'], await application(t))
  if (!TELLS) {
    assert.deepEqual(
      [code, output.trim()],
      [1, `Node ${process.versions.node} does not tell what plugins use: run this on Node 24 or 26`],
    )
    return
  }
  assert.equal(code, 0, output)
  assert.match(output, /pass 2\b/)
  assert.match(output, /^ {2}child +domains\/use\/plugins\/use-things\.ts$/m)
  const line = 'LANE_PERMISSIONS=addons,child,fs-read:./library/next.ts,fs-read:./templates,fs-write:./uploads'
  assert.equal(output.trimEnd().split('\n').at(-1), line)
})

test('a file stands for itself, and its folder for several, and for those that are gone', () => {
  const here = (path: string): string => join(process.cwd(), path)
  const use = (item: string, path?: string): Use => ({ item, by: 'a.ts', ...(path === undefined ? {} : { path }) })
  const report = reportOf(
    [
      use('fs-read', here('package.json')),
      use('fs-read', here('src/index.ts')),
      use('fs-read', here('test/run.ts')),
      use('fs-read', here('test/README.md')),
      use('fs-write', here('data/gone/1.png')),
      use('fs-read', '/etc/hosts'),
      use('worker'),
    ],
    ['addons'],
  )
  const items =
    'addons,fs-read:./package.json,fs-read:./src/index.ts,fs-read:./test,fs-read:/etc/hosts,fs-write:./data/gone,worker'
  assert.equal(report.split('\n').at(-1), `LANE_PERMISSIONS=${items}`)
  assert.match(report, /^ {2}addons +every lane$/m)
  assert.match(reportOf([], []), /^LANE_PERMISSIONS=none$/m)
})
