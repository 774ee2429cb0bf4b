import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertFindings, fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'dual-write'
const apart = (event: string) =>
  `warning ${event} is published apart from the SQL that the same function writes: a crash between the two leaves one without the other`
const outside = (call: string) =>
  `error ${call} within a transaction does not belong to it: what it ${call.startsWith('event_bus') ? 'sends' : 'does'} stays when the transaction is rolled back`
const FETCH = 'error fetch within a transaction holds it open, and is made again when the transaction is repeated'

test('a function that writes and publishes is found at the publish, however it writes', (t) => {
  const writes = [
    "await this.#db.execute('INSERT INTO orders (id) VALUES ($1)', [1])",
    'await this.#db.execute(statement)',
    "await this.#db.query('UPDATE orders SET paid = 1 RETURNING id')",
    "await this.#db.query('WITH gone AS (DELETE FROM orders RETURNING id) SELECT id FROM gone')",
    "await this.#db.transaction(async (tx) => { await tx.execute('DELETE FROM orders') })",
    'await this.#db.transaction(work)',
    "await Promise.all([1].map((id) => this.#db.execute('INSERT INTO orders (id) VALUES ($1)', [id])))",
  ]
  const bodies = writes.map(
    (write, n) => `} async m${n}(work, statement) { ${write}
await this.#bus.publish('order.paid', {}) //! ${apart("'order.paid'")}`,
  )
  return assertFindings(t, RULE, { 'shop/plugins/pay.ts': plugin('Pay', bodies.join('\n')) })
})

test('reading and publishing, or writing in one handler and publishing in another, is fine', (t) => {
  const body = `const row = await this.#db.queryOne('SELECT id FROM orders FOR UPDATE')
await this.#db.execute('WITH a AS (SELECT 1) SELECT * FROM a')
await this.#bus.publish('order.seen', {})
this.#http.addEndpoint('/a', 'POST', async () => this.#db.execute('DELETE FROM orders'))
this.#http.addEndpoint('/b', 'POST', async () => this.#bus.publish('order.b', {}))
setInterval(() => this.#db.execute('DELETE FROM orders'), 1000)
} async either(isNew) {
if (isNew) await this.#db.execute('INSERT INTO orders (id) VALUES (1)')
else await this.#bus.publish('order.b', {})
} async both() {
await this.#db.transaction(async (tx) => {
  await tx.execute('INSERT INTO orders (id) VALUES (1)')
  await tx.publish('order.placed', { id: 1 })
})
await this.#bus.request('order.ask', {})`
  return assertFindings(t, RULE, { 'shop/plugins/pay.ts': plugin('Pay', body) })
})

test('functions that a function calls count for it, also those of other files, and the fault is told once', (t) =>
  assertFindings(t, RULE, {
    'shop/store.ts': `import type { Db, EventBus, Queryable } from '#heddle'
export const add = (db: Queryable, id: string) => db.execute('INSERT INTO orders (id) VALUES ($1)', [id])
export class Orders {
  #db
  constructor(db: Db) { this.#db = db }
  async remove(id: string) { await this.#db.execute('DELETE FROM orders WHERE id = $1', [id]) }
}
export async function addAndTell(db: Db, bus: EventBus) {
  await add(db, 'a')
  await bus.publish('order.placed', {}) //! ${apart("'order.placed'")}
}
`,
    'shop/plugins/pay.ts': `import { add, addAndTell, Orders } from '../store.ts'
${plugin(
  'Pay',
  `await add(this.#db, 'a')
await this.#tell() //! ${apart('an event')}
await this.#outer()
} async #tell() { await this.#bus.publish(\`order.\${name}\`, {})
} async #outer() { await addAndTell(this.#db, this.#bus)
} async remove() { const orders = new Orders(this.#db)
await orders.remove('a')
await this.#bus.publish('order.removed', {}) //! ${apart("'order.removed'")}`,
)}`,
  }))

test('within a transaction only its tx may be called', (t) => {
  const body = `await this.#db.transaction(async (tx) => {
  await tx.execute('INSERT INTO orders (id) VALUES (1)')
  await this.#bus.publish('order.placed', {}) //! ${outside('event_bus.publish')}
  await this.#bus.request('order.ask', {}) //! ${outside('event_bus.request')}
  await this.#db.queryOne('SELECT 1') //! ${outside('db.queryOne')}
  await fetch('http://localhost') //! ${FETCH}
  for (const id of [1]) await Promise.all([id].map((each) => this.#db.execute('DELETE FROM orders'))) //! ${outside('db.execute')}
  await this.#log() //! ${outside('db.execute')}
})
} async #log() { await this.#db.execute('INSERT INTO log (id) VALUES (1)')`
  return assertFindings(t, RULE, { 'shop/plugins/pay.ts': plugin('Pay', body) })
})

test('a helper that takes the database or a transaction may be called with either', (t) =>
  assertFindings(t, RULE, {
    'shop/store.ts': `import type { Queryable, Tx } from '#heddle'
export const add = (db: Queryable) => db.execute('INSERT INTO orders (id) VALUES (1)')
export const addIn = (tx: Tx) => tx.publish('order.placed', {})
`,
    'shop/plugins/pay.ts': `import { add, addIn } from '../store.ts'
${plugin(
  'Pay',
  `await add(this.#db)
await this.#add(this.#db)
await this.#db.transaction(async (tx) => {
  await add(tx)
  await addIn(tx)
  await this.#add(tx)
  function fetch() {}
  fetch()
})
} #add(db) { return db.execute('INSERT INTO orders (id) VALUES (2)')`,
)}`,
  }))

test('what a transaction publishes is held against its contract like any other event', async (t) => {
  const body = `await this.#db.transaction((tx) => tx.publish('order.placed', { number: 1 }))
await this.#db.transaction(({ publish }) => publish('order.unknown', {}))`
  const { findings } = await fixture(t, {
    'shop/events.ts': "import { z } from 'zod'\nexport default { 'order.placed': z.object({ id: z.string() }) }\n",
    'shop/plugins/pay.ts': plugin('Pay', body),
  })
  const lines = (await findings('event-contract')).map((line) => line.split(' ').slice(0, 2).join(' '))
  assert.deepEqual(lines, [
    'shop/plugins/pay.ts:9 error',
    'shop/plugins/pay.ts:9 error',
    'shop/plugins/pay.ts:10 error',
  ])
})

test('a transactional subscriber and context.commit are transactions, too', (t) => {
  const body = `this.#bus.subscribe('order.placed', this.bill, { transaction: true })
this.#bus.subscribe('order.placed', this.mail)
this.#http.addEndpoint('/orders', 'POST', this.create)
} async bill(data, event, tx) {
await tx.execute('INSERT INTO bills (id) VALUES (1)')
await this.#bus.publish('bill.made', {}) //! ${outside('event_bus.publish')}
} async mail() {
await fetch('http://localhost')
} async create(data, context) {
await context.commit(async (tx) => {
  await tx.execute('INSERT INTO orders (id) VALUES (1)')
  await this.#db.query('SELECT 1') //! ${outside('db.query')}
})`
  return assertFindings(t, RULE, { 'shop/plugins/pay.ts': plugin('Pay', body) })
})

test('a statement that sql`…` has made writes or reads as its text does, and composing it in a transaction is no call', (t) => {
  const body = `await this.#db.query(this.#db.sql\`SELECT id FROM orders WHERE id = \${1}\`)
await this.#bus.publish('order.seen', {})
} async write(id) {
await this.#db.query(this.#db.sql\`UPDATE orders SET paid = \${1} RETURNING id\`)
await this.#bus.publish('order.paid', {}) //! ${apart("'order.paid'")}
} async both(id) {
await this.#db.transaction(async (tx) => { await tx.execute(this.#db.sql\`DELETE FROM orders WHERE \${this.#db.sql.and([])}\`) })`
  return assertFindings(t, RULE, { 'shop/plugins/pay.ts': plugin('Pay', body) })
})
