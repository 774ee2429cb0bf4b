import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { activeTools } from '../../../src/runtime/kernel/discover.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'

const SHIPPED_TOOLS = fileURLToPath(new URL('../../../src/tools', import.meta.url))
const tool = (name: string, answer: string): string =>
  `export default class Oracle {\n  name = '${name}'\n  async answer() { return '${answer}' }\n}\n`
const asks = (thread: string): string => `export default class Ask${thread} {
  static thread = '${thread}'
  constructor({ http, oracle }) { Object.assign(this, { http, oracle }) }
  onBoot() { this.http.addEndpoint('/${thread}', 'GET', async () => ({ success: true, data: await this.oracle.answer() })) }
}
`

test('TOOLS takes an implementation that is parked, in every thread, and moves nothing', async (t) => {
  const shipped = readdirSync(SHIPPED_TOOLS).map((name) => [
    `tools/${name}/index.ts`,
    `export { default } from ${JSON.stringify(join(SHIPPED_TOOLS, name, 'index.ts'))}\n`,
  ])
  const folder = await folderOf(t, {
    ...Object.fromEntries(shipped),
    'tools/plain/index.ts': tool('oracle', 'plain'),
    'extras/fancy/index.ts': tool('oracle', 'fancy'),
    'extras/other/index.ts': tool('prophet', 'other'),
    'domains/a/plugins/ask-lane.ts': asks('worker'),
    'domains/a/plugins/ask-primary.ts': asks('primary').replace(
      "static thread = 'primary'",
      "static thread = 'primary' as const",
    ),
  })
  const toolsDir = join(folder, 'tools')
  const names = (choice?: string) => activeTools(toolsDir, choice).map(({ path }) => basename(path))
  assert.ok(names().includes('plain') && !names().includes('fancy'))
  assert.deepEqual(names('fancy, other'), [...names().filter((name) => name !== 'plain'), 'fancy', 'other'].sort())
  assert.deepEqual(names('oracle=fancy'), names('fancy'))
  assert.deepEqual(names('plain'), names())
  assert.throws(() => names('fancier'), /TOOLS: there is no implementation fancier, but auth, .*fancy/)
  assert.throws(() => names('db=fancy'), /TOOLS: fancy is an implementation of oracle, not of db/)

  const env = { TOOLS_DIR: toolsDir, TOOLS: 'fancy' }
  const { json, stop } = await startHeddle(t, { domains: [join(folder, 'domains')], lanes: 1, env })
  assert.deepEqual((await json('/worker')).body.data, 'fancy')
  assert.deepEqual((await json('/primary')).body.data, 'fancy')
  assert.equal(await stop(), 0)
  assert.ok(readdirSync(toolsDir).includes('plain') && readdirSync(join(folder, 'extras')).includes('fancy'))
})
