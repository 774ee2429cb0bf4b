import assert from 'node:assert/strict'
import { test } from 'node:test'
import { displayPath } from '../../../src/devtools/lint/finding.ts'
import { fixture, plugin } from '../../support/lint-fixture.ts'

/** A plugin as a function, whose first line is line 3. */
const setup = (body: string): string => `import { plugin } from '#heddle'
export default plugin(async ({ http, db, event_bus }) => {
${body}
})
`

const APART =
  "warning 'order.paid' is published apart from the SQL that the same function writes: a crash between the two leaves one without the other"

const stays = (call: string, what: string): string =>
  `error ${call} within a transaction does not belong to it: what it ${what} stays when the transaction is rolled back`

test('the tools of a plugin as a function are followed: routes, events, tables, and what is written and published apart', async (t) => {
  const { lint, domains } = await fixture(t, {
    'stock/migrations/001_stock.sql': 'CREATE TABLE stock (item TEXT PRIMARY KEY);',
    'shop/events.ts': `import { z } from 'zod'
export default { 'order.paid': z.object({ id: z.string() }) }`,
    'shop/plugins/pay-order.ts': setup(`const pay = async ({ id }, context) => {
  await db.execute('INSERT INTO orders (id) VALUES ($1)', [id])
  await event_bus.publish('order.paid', { id: 1 })
}
http.post('/orders/:id', pay)
http.put('/orders/:id', { tags: ['shop'] }, async ({ id }, context) => {
  await context.commit(async (tx) => {
    await tx.execute('INSERT INTO orders (id) VALUES ($1)', [id])
    await event_bus.publish('order.paid', { id })
  })
})
http.get('/stock', () => db.query('SELECT item FROM stock'))
event_bus.subscribe('nobody.says', () => {})`),
    'shop/plugins/pay-again.ts': plugin('PayAgain', "this.#http.addEndpoint('/orders/:number', 'POST', this.pay)"),
    'shop/plugins/named.ts': `import { plugin, type Tools } from '#heddle'
import { store } from '../store.ts'
const register = ({ http, db: database }) => {
  http.delete('/orders/:id', { timeoutMs: 5 }, async function remove({ id }) {
    await database.transaction(async (tx) => {
      await database.execute('DELETE FROM orders')
    })
  })
  http.patch('/orders/:id', store(database))
}
export default plugin(register)`,
    'shop/store.ts': `import type { Db } from '#heddle'
export const store = (db: Db) => async () => db.execute('UPDATE stock SET item = 1')`,
  })
  const { findings, checked } = await lint()
  const prefix = `${displayPath(domains)}/`
  const told = findings.map(({ rule, file, line, severity, message }) =>
    `${rule} ${file}:${line} ${severity} ${message}`.replaceAll(prefix, ''),
  )
  const STOCK =
    "SQL of the domain 'shop' touches the table 'stock' of the domain 'stock' (stock/migrations/001_stock.sql:1)"
  assert.deepEqual(told, [
    `dual-write shop/plugins/named.ts:6 ${stays('db.execute', 'does')}`,
    `dual-write shop/plugins/pay-order.ts:5 ${APART}`,
    "event-contract shop/plugins/pay-order.ts:5 error the payload of 'order.paid' has a number for 'id', not a string",
    'route-collision shop/plugins/pay-order.ts:7 error POST /orders/:id of shop.PayOrder collides with POST /orders/:number of shop.PayAgain (shop/plugins/pay-again.ts:9)',
    `dual-write shop/plugins/pay-order.ts:11 ${stays('event_bus.publish', 'sends')}`,
    `table-ownership shop/plugins/pay-order.ts:14 error ${STOCK}`,
    "event-contract shop/plugins/pay-order.ts:15 warning nobody publishes the event 'nobody.says' subscribed to here",
    `table-ownership shop/store.ts:2 error ${STOCK}`,
  ])
  assert.deepEqual(checked, { plugins: 3, migrations: 1, routes: 6, events: 2 })
})

test('files of a domain that import each other are a warning with the whole circle, and imports of types, or when code runs, are none', async (t) => {
  const { findings, lint } = await fixture(t, {
    'shop/a.ts': "import './fine.ts'\nimport './b.ts'\nexport const a = 1\n",
    'shop/b.ts': "export * from './c.ts'\n",
    'shop/c.ts': "export { a } from './a.ts'\n",
    'shop/fine.ts': "import type { B } from './b.ts'\nimport './self.ts'\nexport const late = () => import('./a.ts')\n",
    'shop/self.ts': "import './self.ts'\n",
  })
  assert.deepEqual(await findings('module-circle'), [
    'shop/a.ts:2 warning files import each other in a circle: shop/a.ts → shop/b.ts → shop/c.ts → shop/a.ts',
    'shop/self.ts:1 warning files import each other in a circle: shop/self.ts → shop/self.ts',
  ])
  assert.equal((await lint()).ok, true)
})
