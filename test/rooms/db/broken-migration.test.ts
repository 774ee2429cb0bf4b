import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type StartOptions, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const PLUGIN = `import { Plugin } from '#heddle'
export default class ListOrders extends Plugin {
  constructor({ http, db, registry }) {
    super()
    http.addEndpoint('/orders', 'GET', async () => ({ success: true, data: await db.query('SELECT id FROM orders') }))
    http.addEndpoint('/ready', 'GET', () => registry.getReadiness())
  }
}
`

test('a migration that fails at the start is told with its place, is named where its table is missing, and is applied when it is mended', async (t) => {
  const domains = await folderOf(t, {
    'shop/migrations/001_orders.sql': 'CREATE TABLE orders (\n  id TEXT PRIMARY KEY,\n  item TEXT NOT NUL\n);\n',
    'shop/plugins/list-orders.ts': PLUGIN,
  })
  const file = join(domains, 'shop/migrations/001_orders.sql')
  const options: StartOptions & { args: string[] } = { domains: [domains], lanes: 1, args: ['--watch'] }
  const heddle = await startHeddle(t, options)
  const logged = (text: string) =>
    until(() => heddle.logs.find(({ msg }) => msg.includes(text)) as Record<string, string> | undefined, text)

  const { msg } = await logged('Tool db did not boot: Migration shop/001_orders failed and was rolled back')
  const [head, ...rest] = msg!.replaceAll(file, 'FILE').split('\n')
  assert.match(head!, /near "NUL": syntax error in line 3 \(FILE\)$/)
  assert.deepEqual(rest.slice(0, 3), ['  FILE:3:17', '    3 | item TEXT NOT NUL', '                      ^'])
  assert.match(rest.at(-1)!, /^ {2}Fix: nothing of it was applied/)
  const { ready, reasons } = (await heddle.json('/ready')).body
  assert.equal(ready, false)
  assert.match(reasons.join(), /tool db did not boot: Migration shop\/001_orders failed.* in line 3 \(.*\)$/)

  assert.equal((await heddle.json('/orders')).status, 500)
  const { fix, line } = await logged('/orders failed: ')
  assert.match(fix!, /^shop\/001_orders makes the table orders and is not applied to this database: apply it/)
  assert.match(line!, /list-orders\.ts:5:/)

  await writeFile(file, 'CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL);')
  await until(async () => (await heddle.json('/orders')).status === 200, 'the table')
  await until(async () => (await heddle.json('/ready')).body.ready, 'the readiness')
})
